//! Why a member takes no part any more. Each is something that an engine, a disk or a person did, and that going on would make worse.

use scrinium_log::Sequence;

use crate::{EntryError, Epoch, Revision};

/// Why a member has stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StopReason {
    /// The engine does not hold what this member has from it.
    #[error(
        "the engine has lost records: this member holds up to {}, the engine up to {}; compare the members with `scrinium \
         cluster verify`", mine.0, newest.0
    )]
    EngineLost {
        /// The last record of this member.
        mine: Sequence,
        /// The last that the engine has before that, 0 if none.
        newest: Sequence,
    },
    /// The engine's records are not those that this member has.
    #[error("the engine's records differ from this member's at or before record {}; nothing of them was applied", at.0)]
    Differs {
        /// The first record of the entry that does not fit.
        at: Sequence,
    },
    /// Records between two that are there are missing.
    #[error("the engine lacks the records {} to {}", from.0, before.0.saturating_sub(1))]
    Gap {
        /// The first that is missing.
        from: Sequence,
        /// The first that is there again.
        before: Sequence,
    },
    /// An answer was older than an earlier one.
    #[error("the engine went back in time: revision {} after {}", found.0, seen.0)]
    WentBack {
        /// What was seen before.
        seen: Revision,
        /// What it said now.
        found: Revision,
    },
    /// A former leadership stands where there was a later one.
    #[error("the engine went back to epoch {}, after epoch {}", found.0, seen.0)]
    EpochWentBack {
        /// What was seen before.
        seen: Epoch,
        /// What it said now.
        found: Epoch,
    },
    /// The engine was begun again, or is another one.
    #[error(
        "this is another engine, or it was begun again: its incarnation is not the one that this member belongs to"
    )]
    OtherEngine,
    /// An entry cannot be used.
    #[error("the entry at record {} cannot be used: {error}", at.0)]
    Entry {
        /// Where it should begin.
        at: Sequence,
        /// Why.
        error: EntryError,
    },
    /// A key's value cannot be read.
    #[error("the engine's key {key:?} holds something else than was written")]
    Damaged {
        /// The key.
        key: &'static str,
    },
    /// An answer has another form than was asked for, or what it says cannot be.
    #[error("the engine contradicts itself: {0}")]
    Contradiction(&'static str),
}
