//! A message that came (RFC 5546, section 3): whether it may be filed, and by whom it is handled.

use scrinium_dav_wire::content::{Component, ContentLine};

use super::meeting::Meeting;
use super::{ItipOutcome, Method, Person, Reason, answer, counter, merge, organizer};
use crate::address::{answer_of, attendee, comparable};
use crate::zone::Instant;

/// A message as it came.
#[derive(Clone, Debug)]
pub struct Incoming<'a> {
    /// The calendar.
    pub calendar: &'a Component,
    /// `method` of the MIME part, which must be METHOD of the calendar (RFC 6047, section 2.4); `None` within this server.
    pub mime_method: Option<&'a str>,
    /// Who sent it, as of [`comparable`].
    pub sender: &'a str,
    /// The sender's address is proven: by DMARC, or because the sender is here.
    pub is_authenticated: bool,
    /// The sender is in the directory or in an address book, or was written to before.
    pub is_known: bool,
}

/// Whose invitations are filed without a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum FilingRule {
    /// Those of known senders with a proven address.
    #[default]
    Known,
    /// Those of all senders with a proven address.
    Authenticated,
    Nobody,
}

/// What a message makes of what is stored. It is handled under the lock of what is stored: between this and storing nothing else is.
#[must_use]
pub fn receive(
    stored: Option<&Component>,
    message: &Incoming<'_>,
    rule: FilingRule,
    person: &Person,
    now: Instant,
) -> ItipOutcome {
    handled(stored, message, rule, person, now).unwrap_or_else(ItipOutcome::nothing)
}

fn handled(
    stored: Option<&Component>,
    message: &Incoming<'_>,
    rule: FilingRule,
    person: &Person,
    now: Instant,
) -> Result<ItipOutcome, Reason> {
    let method = method(message)?;
    let new = Meeting::read(message.calendar, &person.zone)?;
    let old = match stored.map(|stored| Meeting::read(stored, &person.zone)) {
        None => None,
        // A stored object of another kind has nothing to do with it.
        Some(read) => Some(read?).filter(|old| old.uid == new.uid),
    };
    let known = permitted(old.as_ref(), message, rule);
    // An answer about a meeting of one's own is awaited from those invited, known or not.
    let is_about_own = matches!(method, Method::Reply | Method::Refresh | Method::Counter);
    match known {
        Err(Reason::SenderUnknown { .. } | Reason::FilingOff) if is_about_own => {}
        known => known?,
    }
    match method {
        Method::Request | Method::Publish => {
            from_organizer(old.as_ref(), &new, message)?;
            merge::request(old, &new, method, person, now)
        }
        Method::Cancel => {
            from_organizer(old.as_ref(), &new, message)?;
            merge::cancel(old, &new, person)
        }
        Method::Add => {
            from_organizer(old.as_ref(), &new, message)?;
            merge::add(old, &new, person, now)
        }
        Method::DeclineCounter => {
            from_organizer(old.as_ref(), &new, message)?;
            Ok(ItipOutcome::nothing(Reason::ProposalDeclined))
        }
        Method::Reply => answer::reply(own(old, person)?, &new, message.sender),
        Method::Counter => counter::receive(&own(old, person)?, &new, message.sender, now),
        Method::Refresh => {
            let old = own(old, person)?;
            let organizer = old.organizer().unwrap_or_default();
            let stranger = || Reason::Stranger { attendee: message.sender.to_owned() };
            let again = organizer::again(&old, &organizer, message.sender, now).ok_or_else(stranger)?;
            let reason = Reason::SentAgain { to: message.sender.to_owned() };
            Ok(ItipOutcome { messages: vec![again], ..ItipOutcome::nothing(reason) })
        }
    }
}

fn method(message: &Incoming<'_>) -> Result<Method, Reason> {
    let name =
        message.calendar.line("METHOD").map(ContentLine::value).or(message.mime_method).unwrap_or_default();
    let method = Method::of_name(name).ok_or_else(|| Reason::UnknownMethod(name.to_owned()))?;
    match message.mime_method {
        Some(other) if Method::of_name(other) != Some(method) => {
            Err(Reason::UnknownMethod(format!("{other}, and {name}")))
        }
        _ => Ok(method),
    }
}

fn permitted(old: Option<&Meeting>, message: &Incoming<'_>, rule: FilingRule) -> Result<(), Reason> {
    if !message.is_authenticated {
        return Err(Reason::SenderNotAuthenticated);
    }
    match rule {
        FilingRule::Nobody if old.is_none() => Err(Reason::FilingOff),
        FilingRule::Known if !message.is_known && old.is_none() => {
            Err(Reason::SenderUnknown { sender: message.sender.to_owned() })
        }
        FilingRule::Nobody | FilingRule::Known | FilingRule::Authenticated => Ok(()),
    }
}

/// What only an organizer may send. Who delegates an invitation sends it on (RFC 5546, section 3.2.2.3).
fn from_organizer(old: Option<&Meeting>, new: &Meeting, message: &Incoming<'_>) -> Result<(), Reason> {
    let organizer = new.organizer().ok_or(Reason::NoOrganizer)?;
    if let Some(known) = old.and_then(Meeting::organizer).filter(|known| *known != organizer) {
        return Err(Reason::OtherOrganizer { organizer: known });
    }
    let acts_for =
        |line: &ContentLine| line.parameter("SENT-BY").map(comparable).as_deref() == Some(message.sender);
    let is_sent_by = new.organizer_line().is_some_and(acts_for)
        // Who acts for the organizer is believed where the meeting is known to be run so.
        && old.is_none_or(|old| old.organizer_line().is_some_and(acts_for));
    let delegates = |part: &Component| {
        attendee(part, &[message.sender]).is_some_and(|line| answer_of(line) == "DELEGATED")
    };
    if organizer == message.sender || is_sent_by || (old.is_none() && new.parts.values().any(delegates)) {
        return Ok(());
    }
    Err(Reason::SenderIsNotOrganizer { sender: message.sender.to_owned(), organizer })
}

/// A meeting of which the person is the organizer.
fn own(old: Option<Meeting>, person: &Person) -> Result<Meeting, Reason> {
    let old = old.ok_or(Reason::UnknownMeeting)?;
    match old.organizer() {
        Some(organizer) if person.addresses.contains(&organizer) => Ok(old),
        _ => Err(Reason::NotOrganizer),
    }
}
