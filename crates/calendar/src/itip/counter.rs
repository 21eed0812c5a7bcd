//! Proposals of another time (RFC 5546, sections 3.2.7 and 3.2.8).

use scrinium_dav_wire::content::{Component, ContentLine};

use super::meeting::{Meeting, set_stamp};
use super::{ItipOutcome, Message, Method, Person, Reason};
use crate::address::attendee;
use crate::zone::Instant;

/// Lines that a proposal may change.
const PROPOSED: [&str; 5] = ["DTSTART", "DTEND", "DURATION", "DUE", "LOCATION"];

/// A proposal at the organizer's. The chair decides; where the meeting allows none it is refused.
pub(super) fn receive(
    old: &Meeting,
    new: &Meeting,
    sender: &str,
    now: Instant,
) -> Result<ItipOutcome, Reason> {
    let is_invited = old.attendees().iter().any(|one| one == sender);
    if !is_invited {
        return Err(Reason::Stranger { attendee: sender.to_owned() });
    }
    let forbids = |part: &Component| {
        part.line("X-MICROSOFT-DISALLOW-COUNTER")
            .is_some_and(|line| line.value().trim().eq_ignore_ascii_case("TRUE"))
    };
    if old.parts.values().any(forbids) {
        let declined = declined(old, new, sender, now);
        return Ok(ItipOutcome {
            messages: declined.into_iter().collect(),
            ..ItipOutcome::nothing(Reason::ProposalRefused)
        });
    }
    Ok(ItipOutcome::nothing(Reason::Proposal { from: sender.to_owned() }))
}

fn declined(old: &Meeting, new: &Meeting, to: &str, now: Instant) -> Option<Message> {
    let parts = new.parts.keys().filter_map(|instance| {
        let known = old.effective(*instance)?;
        let mut part = Component::new(known.name())?;
        let lines =
            known.lines().filter(|line| matches!(line.name(), "UID" | "ORGANIZER" | "SEQUENCE" | "SUMMARY"));
        let own = attendee(known, &[to]);
        let id = new.parts.get(instance)?.line("RECURRENCE-ID");
        lines.chain(own).chain(id).cloned().for_each(|line| part.push(line));
        set_stamp(&mut part, now);
        Some(part)
    });
    old.message(Method::DeclineCounter, &old.organizer()?, to, parts.collect())
}

/// The meeting with the proposed times, for [`super::change`]: all are asked again.
///
/// # Errors
/// What it does not fit to.
pub fn accept_counter(stored: &Component, counter: &Component, person: &Person) -> Result<Component, Reason> {
    let mut meeting = Meeting::read(stored, &person.zone)?;
    let proposed = Meeting::read(counter, &person.zone)?;
    if proposed.uid != meeting.uid {
        return Err(Reason::UnknownMeeting);
    }
    for (instance, part) in &proposed.parts {
        let mut known = meeting.at(*instance).ok_or(Reason::UnknownInstance)?;
        for name in PROPOSED {
            let lines: Vec<ContentLine> = part.lines().filter(|line| line.name() == name).cloned().collect();
            // A place that nobody names stays; of an end and a length one goes.
            if !lines.is_empty() || matches!(name, "DTEND" | "DURATION") {
                known.replace(name, lines);
            }
        }
        meeting.put(*instance, known);
    }
    meeting.take_zones(&proposed);
    meeting.to_calendar().ok_or(Reason::NothingToSchedule)
}

/// The chair's no, to the one who proposed.
///
/// # Errors
/// What it does not fit to.
pub fn decline_counter(
    stored: &Component,
    counter: &Component,
    to: &str,
    person: &Person,
    now: Instant,
) -> Result<Message, Reason> {
    let meeting = Meeting::read(stored, &person.zone)?;
    let proposed = Meeting::read(counter, &person.zone)?;
    declined(&meeting, &proposed, to, now).ok_or(Reason::NothingToSchedule)
}
