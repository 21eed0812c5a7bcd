//! What a group hears, and what it asks to be done.

use bytes::Bytes;
use scrinium_log::{Chain, Sequence};

use crate::{CallId, Epoch, MemberId, NoAnswer, ReadId, Reply, StopReason, SubmissionId, Transaction};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Time has passed; wanted ten times a second or so.
    Tick,
    /// The engine may have something new. That nothing wakes is no harm, nor is waking in vain.
    Wake,
    /// An answer of the engine, or that none will come.
    Answered {
        /// Which call.
        call: CallId,
        /// Its answer.
        reply: Result<Reply, NoAnswer>,
    },
    /// Records are to be agreed on. One submission is under way at a time.
    Submit {
        /// By what its outcome is known.
        submission: SubmissionId,
        /// The records; they get the next numbers.
        records: Vec<Bytes>,
    },
    /// Everything up to this record is in the member's own log, synced, and in its store.
    Applied {
        /// The record.
        through: Sequence,
    },
    /// Somebody wants to read.
    ReadBegun {
        /// By what the answer is known.
        read: ReadId,
        /// How new it must be.
        freshness: Freshness,
    },
    /// The snapshot that [`Output::TakeSnapshot`] asked for was taken.
    SnapshotTaken {
        /// Whose.
        read: ReadId,
    },
    /// Another member is to lead.
    HandOver {
        /// Which.
        to: MemberId,
    },
    /// Nothing is to come after this in this engine.
    Seal,
    /// Whether this member may claim: not if its clock is far from the others', or it is to follow only.
    AllowClaims(bool),
    /// Records that the engine no longer holds were taken from another member, and applied.
    Restored {
        /// All records that the member has now.
        applied: Chain,
    },
}

/// How new a reader's snapshot must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// As it is.
    Stale,
    /// With this record at least: what the session has seen or written.
    Session(Sequence),
    /// With everything that was answered before the reader began.
    Latest,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Ask the engine.
    Call {
        /// The call's number.
        call: CallId,
        /// What to ask.
        transaction: Transaction,
    },
    /// Write agreed records into the member's log, sync, apply; then say [`Input::Applied`].
    Apply {
        /// The number of the first.
        first: Sequence,
        /// The records.
        records: Vec<Bytes>,
        /// All records up to the last of these, to be noted with the store's position.
        chain: Chain,
    },
    /// The outcome of a submission.
    Submitted {
        /// Which.
        submission: SubmissionId,
        /// The outcome.
        outcome: SubmissionOutcome,
    },
    /// Take the reader's snapshot, then say [`Input::SnapshotTaken`].
    TakeSnapshot {
        /// Whose.
        read: ReadId,
    },
    /// The reader may be answered from its snapshot.
    AnswerRead {
        /// Which.
        read: ReadId,
    },
    /// The reader is refused.
    RefuseRead {
        /// Which.
        read: ReadId,
        /// Why.
        refusal: Refusal,
    },
    /// The member has another role. A store that hears so reads again what it holds in memory for its next batch.
    Role(Role),
    /// Entries that are needed next were let go of: take the records from another member, then say [`Input::Restored`].
    Behind {
        /// The number that is needed next.
        next: Sequence,
        /// The first that the engine still has.
        oldest: Sequence,
    },
    /// Another member's report does not fit: its records, or this member's, are not what was agreed on.
    MemberDiffers {
        /// Which.
        member: MemberId,
        /// Up to this record.
        at: Sequence,
    },
    /// The member takes no part any more until somebody has looked into it.
    Stopped(StopReason),
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SubmissionOutcome {
    /// The engine has it. The submitter writes it into its own log, syncs, applies, says [`Input::Applied`].
    Agreed {
        /// All records up to its last.
        chain: Chain,
    },
    /// It is not there, and never will be.
    Refused(Refusal),
    /// It may be there or not. If it is, it comes as [`Output::Apply`].
    Unknown,
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Another member leads, or none.
    #[error("this member does not lead the group; ask {}", leader.map_or("again in a moment".to_owned(), |leader| format!("member {}", leader.0)))]
    NotLeader {
        /// Who does, as far as is known.
        leader: Option<MemberId>,
    },
    /// Something else must be finished first.
    #[error("an earlier change of this group is not settled yet; try again")]
    Busy,
    /// The member has not yet what the session has seen.
    #[error("this member has record {}, and record {} was asked for; try again or ask the leader", applied.0, wanted.0)]
    Behind {
        /// What it has.
        applied: Sequence,
        /// What was asked for.
        wanted: Sequence,
    },
    /// The engine did not answer in time.
    #[error("the engine did not confirm in time that this member leads; try again")]
    NotConfirmed,
    /// The records do not fit into an entry.
    #[error("the records take {bytes} bytes, more than one entry holds; split the batch")]
    TooLarge {
        /// What they would take.
        bytes: usize,
    },
    /// Nothing more is written here: the group goes on in another engine.
    #[error("the group was sealed in this engine")]
    Sealed,
    /// The member was removed from the group.
    #[error("this member does not belong to the group")]
    Removed,
    /// The member has stopped.
    #[error("this member has stopped: {0}")]
    Stopped(StopReason),
}

/// What a member is to its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It applies what others write.
    Follower,
    /// It writes.
    Leader(Epoch),
    /// It does not belong to the group.
    Removed,
    /// It has stopped.
    Stopped,
}

/// A record of the cluster's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// The group begins.
    Begin {
        /// Its first leader.
        leader: MemberId,
    },
    /// A member leads from here on.
    Claim {
        /// Which.
        leader: MemberId,
        /// The number of its leadership.
        epoch: Epoch,
    },
    /// The leader gives up.
    HandOver {
        /// For whom.
        to: MemberId,
        /// In which leadership.
        epoch: Epoch,
    },
    /// Nothing follows.
    Seal {
        /// In which leadership.
        epoch: Epoch,
    },
}
