//! Scheduling (RFC 5546, RFC 6638): what a change of somebody's meeting, or a message about it, makes of what is stored, and who is
//! to be sent what.
//!
//! [`change`] is what somebody does to an own object, [`receive()`] a message that came, however it came. Both are pure: they say
//! what to store, which messages to send, and for what [`Reason`]. A message carries all that its recipient is invited to, so that
//! messages may be lost, doubled and come in any order: of each part the one with the higher SEQUENCE, then the later DTSTAMP holds
//! (RFC 5546, section 2.1.5), and the last message alone says everything.

mod answer;
mod attendee;
mod autoprocess;
mod counter;
mod meeting;
mod merge;
mod organizer;
mod receive;

use scrinium_dav_wire::content::Component;
use thiserror::Error;

use crate::zone::{Instant, Zone};
pub use attendee::Answer;
pub use autoprocess::{Autoprocess, AutoprocessAction, SenderRule};
pub use counter::{accept_counter, decline_counter};
pub use receive::{FilingRule, Incoming, receive};

/// What a message is (RFC 5546, section 1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Method {
    Publish,
    Request,
    Reply,
    Add,
    Cancel,
    Refresh,
    Counter,
    DeclineCounter,
}

impl Method {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Publish, "PUBLISH"),
        (Self::Request, "REQUEST"),
        (Self::Reply, "REPLY"),
        (Self::Add, "ADD"),
        (Self::Cancel, "CANCEL"),
        (Self::Refresh, "REFRESH"),
        (Self::Counter, "COUNTER"),
        (Self::DeclineCounter, "DECLINECOUNTER"),
    ];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(method, _)| *method == self).map_or("PUBLISH", |(_, name)| *name)
    }

    /// In any case.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let known = Self::ALL.iter().find(|(_, known)| known.eq_ignore_ascii_case(name.trim()));
        known.map(|(method, _)| *method)
    }
}

/// Somebody here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// All addresses, aliases too, as of [`crate::address::comparable`].
    pub addresses: Vec<String>,
    /// Of days and floating times.
    pub zone: Zone,
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it is; METHOD of the calendar is the same.
    pub method: Method,
    /// As of [`crate::address::comparable`].
    pub from: String,
    /// As of [`crate::address::comparable`].
    pub to: String,
    /// The calendar, with its METHOD.
    pub calendar: Component,
}

impl Message {
    /// What tells it from all other messages: who sends the same again has the same. To be hashed where it becomes an id.
    #[must_use]
    pub fn identity(&self) -> String {
        let text = String::from_utf8_lossy(&self.calendar.to_bytes()).into_owned();
        format!("{}\n{}\n{}\n{text}", self.method.name(), self.from, self.to)
    }
}

/// What to do with what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Storing {
    Keep,
    Put(Component),
    Delete,
}

/// What comes of a change or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ItipOutcome {
    pub storing: Storing,
    pub messages: Vec<Message>,
    /// Why it was, or was not, filed.
    pub reason: Reason,
}

impl ItipOutcome {
    fn nothing(reason: Reason) -> Self {
        Self { storing: Storing::Keep, messages: Vec::new(), reason }
    }
}

/// Why a message or change was filed, or was not. The text is for the person; who asks gets the same.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Reason {
    #[error("filed: a new meeting")]
    FiledNew,
    #[error("filed: the meeting was changed")]
    FiledChange,
    #[error("filed: {attendee} answered {answer}")]
    FiledAnswer { attendee: String, answer: String },
    #[error("filed: the meeting, or an instance of it, is cancelled")]
    FiledCancellation,
    #[error("the change was stored, and nobody else needs to know")]
    Silent,
    #[error("the change was stored, and those concerned are informed")]
    Informed,
    #[error("{from} proposes another time; the chair decides")]
    Proposal { from: String },
    #[error("the proposal was refused: the chair allows none")]
    ProposalRefused,
    #[error("the chair declined the proposal")]
    ProposalDeclined,
    #[error("{to} was sent the meeting again")]
    SentAgain { to: String },
    #[error("the meeting is not known here; its organizer was asked for it")]
    AskedOrganizer,
    #[error("not filed: a later version is there already")]
    Outdated,
    #[error("not filed: the answer is to an earlier version of the meeting")]
    OutdatedAnswer,
    #[error("not filed: the same is there already")]
    NothingNew,
    #[error("not filed: {sender} is not the organizer {organizer}, and does not act for them")]
    SenderIsNotOrganizer { sender: String, organizer: String },
    #[error("not filed: {sender} is not the attendee {attendee}, and does not act for them")]
    SenderIsNotAttendee { sender: String, attendee: String },
    #[error("not filed: the sender's address was not proven")]
    SenderNotAuthenticated,
    #[error("not filed: {sender} is not known here, and only known senders' invitations are filed")]
    SenderUnknown { sender: String },
    #[error("not filed: you are not among those invited")]
    NotInvited,
    #[error("not filed: {attendee} was not invited; the chair may add them")]
    Stranger { attendee: String },
    #[error("not filed: the meeting belongs to another organizer, {organizer}")]
    OtherOrganizer { organizer: String },
    #[error("not filed: you are the organizer yourself")]
    OwnMeeting,
    #[error("not filed: you are not the organizer")]
    NotOrganizer,
    #[error("not filed: no such meeting is here")]
    UnknownMeeting,
    #[error("not filed: the meeting has no such instance")]
    UnknownInstance,
    #[error("not filed: the message holds several meetings")]
    SeveralMeetings,
    #[error("not filed: the meeting has more than 2,000 instances of their own")]
    TooManyParts,
    #[error("not filed: there is no event or to-do in it")]
    NothingToSchedule,
    #[error("not filed: there is no UID")]
    NoUid,
    #[error("not filed: there is no organizer")]
    NoOrganizer,
    #[error("not filed: there is no attendee")]
    NoAttendee,
    #[error("not filed: a time cannot be read")]
    UnreadableTime,
    #[error("not filed: the method \"{0}\" is not known")]
    UnknownMethod(String),
    #[error("refused: {line} of a meeting may be changed by its organizer alone")]
    OrganizersLine { line: String },
    #[error("refused: the organizer of a meeting cannot be changed")]
    OrganizerChanged,
    #[error("refused: the UID of a meeting cannot be changed")]
    UidChanged,
    #[error("not filed: your settings leave invitations alone")]
    FilingOff,
}

/// What somebody does to an own object.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// What is stored.
    pub stored: Option<&'a Component>,
    /// What it is to be; `None` deletes it.
    pub new: Option<&'a Component>,
    /// The client saw an earlier state in which others had not answered: answers that it does not know stay (RFC 6638, section
    /// 3.2.10).
    pub keeps_answers: bool,
    /// Whether those concerned are informed; `Schedule-Reply: F` says no (RFC 6638, section 8.1).
    pub informs: bool,
}

/// What a change by its owner makes of an object (RFC 6638, section 3.2). `now` is later at each change.
///
/// # Errors
/// Why it must be refused.
pub fn change(change: Change<'_>, person: &Person, now: Instant) -> Result<ItipOutcome, Reason> {
    let read =
        |calendar: Option<&Component>| match calendar.map(|one| meeting::Meeting::read(one, &person.zone)) {
            None | Some(Err(Reason::NothingToSchedule)) => Ok(None),
            Some(read) => read.map(Some),
        };
    let (old, new) = (read(change.stored)?, read(change.new)?);
    if let (Some(old), Some(new)) = (&old, &new)
        && old.uid != new.uid
    {
        return Err(Reason::UidChanged);
    }
    let organizer = |one: &Option<meeting::Meeting>| one.as_ref().and_then(meeting::Meeting::organizer);
    let is_own =
        |organizer: &Option<String>| organizer.as_ref().is_some_and(|one| person.addresses.contains(one));
    let (before, after) = (organizer(&old), organizer(&new));
    match (is_own(&before), is_own(&after)) {
        (false, false) if before.is_some() || after.is_some() => {
            if old.is_some() && new.is_some() && before.is_some() && before != after {
                return Err(Reason::OrganizerChanged);
            }
            attendee::change(old.as_ref(), new, change, person, now)
        }
        (true, false) if after.is_some() => Err(Reason::OrganizerChanged),
        (false, true) if before.is_some() => Err(Reason::OrganizerChanged),
        (false, false) => Ok(ItipOutcome {
            storing: change.new.map_or(Storing::Delete, |new| Storing::Put(new.clone())),
            messages: Vec::new(),
            reason: Reason::Silent,
        }),
        (_, _) => Ok(organizer::change(old.as_ref(), new, change, person, now)),
    }
}

/// Sets somebody's answer to a meeting, or to one of its instances, as if a client had written it.
///
/// # Errors
/// Why it must be refused.
pub fn answer(
    stored: &Component,
    answer: &Answer,
    person: &Person,
    now: Instant,
) -> Result<ItipOutcome, Reason> {
    let new = attendee::answered(stored, answer, person)?;
    change(Change { stored: Some(stored), new: Some(&new), keeps_answers: false, informs: true }, person, now)
}
