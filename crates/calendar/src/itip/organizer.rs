//! The organizer's changes (RFC 6638, section 3.2.1).

use std::collections::{BTreeMap, BTreeSet};

use scrinium_dav_wire::content::{Component, ContentLine};

use super::meeting::{
    Answered, Meeting, essence, is_cancelled, is_server_scheduled, lines_named, set, set_stamp, version,
};
use super::{Change, ItipOutcome, Message, Method, Person, Reason, Storing};
use crate::address::{answer_of, attendee, attendees, attendees_mut, comparable};
use crate::zone::Instant;

/// A change of these has to raise SEQUENCE (RFC 5546, section 2.1.4).
const WEIGHTY: [&str; 8] = ["DTSTART", "DTEND", "DURATION", "DUE", "RRULE", "RDATE", "EXDATE", "STATUS"];
/// Of these, what asks all attendees again (RFC 6638, section 3.2.8). An exception asks nobody about other instances.
const TIMES: [&str; 6] = ["DTSTART", "DTEND", "DURATION", "DUE", "RRULE", "RDATE"];

pub(super) fn change(
    old: Option<&Meeting>,
    new: Option<Meeting>,
    change: Change<'_>,
    person: &Person,
    now: Instant,
) -> ItipOutcome {
    let own = old.or(new.as_ref()).and_then(Meeting::organizer).unwrap_or_default();
    let new = new.map(|new| prepared(new, old, change, person));
    let mut messages = Vec::new();
    if change.informs {
        let mut all: Vec<String> =
            [old, new.as_ref()].into_iter().flatten().flat_map(Meeting::attendees).collect();
        all.sort_unstable();
        all.dedup();
        for to in all.into_iter().filter(|to| !person.addresses.contains(to)) {
            messages.extend(message(old, new.as_ref(), &own, &to, now));
        }
    }
    let new = new.map(|new| told(new, &messages));
    let reason = if messages.is_empty() { Reason::Silent } else { Reason::Informed };
    let storing = new.and_then(|new| new.to_calendar()).map_or(Storing::Delete, Storing::Put);
    ItipOutcome { storing, messages, reason }
}

/// What came, with SEQUENCE and answers as they must be.
fn prepared(mut new: Meeting, old: Option<&Meeting>, change: Change<'_>, person: &Person) -> Meeting {
    let Some(old) = old else { return new };
    for (instance, part) in &mut new.parts {
        let before = old.parts.get(instance).cloned().or_else(|| old.instance((*instance)?));
        let Some(before) = before else { continue };
        let is_weighty = lines_named(&before, &WEIGHTY) != lines_named(part, &WEIGHTY);
        let is_moved = lines_named(&before, &TIMES) != lines_named(part, &TIMES);
        let least = version(&before).0.saturating_add(u32::from(is_weighty));
        if version(part).0 < least {
            set(part, "SEQUENCE", &least.to_string());
        }
        let mut known: BTreeMap<String, &ContentLine> = BTreeMap::new();
        for line in attendees(&before) {
            known.entry(comparable(line.value())).or_insert(line);
        }
        for line in attendees_mut(part) {
            let address = comparable(line.value());
            if person.addresses.contains(&address) {
                continue;
            }
            if is_moved {
                line.set_parameter("PARTSTAT", Some("NEEDS-ACTION"));
                line.set_parameter("RSVP", Some("TRUE"));
            } else if let Some(known) = known.get(&address) {
                keep_answer(line, known, change.keeps_answers);
            }
        }
    }
    raise_for_dropped(&mut new, old);
    new
}

/// An instance that goes back to what the series says is one more change of it: an answer to what it was before must not be taken for
/// one to what it is now.
fn raise_for_dropped(new: &mut Meeting, old: &Meeting) {
    let dropped = old.parts.iter().filter(|(instance, _)| !new.parts.contains_key(instance));
    let moved = dropped.filter(|(instance, part)| {
        let made = instance.and_then(|key| old.instance(key));
        made.is_some_and(|made| lines_named(&made, &WEIGHTY) != lines_named(part, &WEIGHTY))
    });
    let Some(least) = moved.map(|(_, part)| version(part).0.saturating_add(1)).max() else { return };
    let Some(master) = new.parts.get_mut(&None).filter(|master| version(master).0 < least) else { return };
    set(master, "SEQUENCE", &least.to_string());
}

/// What an attendee answered is the attendee's, whatever a client knows of it.
fn keep_answer(line: &mut ContentLine, known: &ContentLine, keeps_answers: bool) {
    if let Some(answered) = Answered::read(known) {
        answered.write(line);
    }
    let is_unaware = answer_of(line) == "NEEDS-ACTION" && answer_of(known) != "NEEDS-ACTION";
    if (keeps_answers || is_unaware) && answer_of(line) != answer_of(known) {
        for name in ["PARTSTAT", "DELEGATED-TO", "RSVP"] {
            line.set_parameter(name, known.parameter(name));
        }
    }
}

/// What somebody has to know, if there is anything.
fn message(
    old: Option<&Meeting>,
    new: Option<&Meeting>,
    own: &str,
    to: &str,
    now: Instant,
) -> Option<Message> {
    let view = |meeting: Option<&Meeting>| meeting.map_or_else(Vec::new, |meeting| meeting.view(to));
    let (before, after) = (view(old), view(new));
    let meeting = new.filter(|_| !after.is_empty()).or(old)?;
    let line = [new, old].into_iter().flatten().find_map(|one| own_line(one, to))?;
    let is_forced =
        line.parameter("SCHEDULE-FORCE-SEND").is_some_and(|what| what.eq_ignore_ascii_case("REQUEST"));
    if !is_server_scheduled(line) {
        return None;
    }
    let was_cancelled = !before.is_empty() && before.iter().all(is_cancelled);
    let is_over = after.is_empty() || after.iter().all(is_cancelled);
    let (method, mut parts) = match (is_over, was_cancelled) {
        (true, true) => return None,
        (true, false) if before.is_empty() => return None,
        (true, false) => (Method::Cancel, cancelled(&before, new)),
        (false, _) if !is_forced && same(&before, &after) => return None,
        (false, _) => (Method::Request, after),
    };
    parts.iter_mut().for_each(|part| set_stamp(part, now));
    meeting.message(method, own, to, parts)
}

fn own_line<'a>(meeting: &'a Meeting, to: &str) -> Option<&'a ContentLine> {
    meeting.parts.values().find_map(|part| attendee(part, &[to]))
}

fn same(before: &[Component], after: &[Component]) -> bool {
    before.len() == after.len() && before.iter().zip(after).all(|(one, other)| essence(one) == essence(other))
}

/// The end of what somebody was invited to (RFC 5546, section 3.2.5): the series, or else the instances.
fn cancelled(before: &[Component], new: Option<&Meeting>) -> Vec<Component> {
    let has_master = before.iter().any(|part| part.line("RECURRENCE-ID").is_none());
    let parts = before.iter().filter(|part| !has_master || part.line("RECURRENCE-ID").is_none());
    let highest = before.iter().map(|part| version(part).0).max().unwrap_or_default();
    let current = new.and_then(Meeting::master).map(|master| version(master).0);
    let end = |part: &Component| {
        let mut part = part.clone();
        set(&mut part, "STATUS", "CANCELLED");
        let sequence = match (new, current) {
            // Somebody is left out; the meeting goes on, and may have this one again.
            (Some(_), Some(current)) => current,
            (Some(_), None) => version(&part).0,
            (None, _) => highest.saturating_add(1),
        };
        set(&mut part, "SEQUENCE", &sequence.to_string());
        part
    };
    parts.map(end).collect()
}

/// The attendees' lines say that they were informed, and no longer that they must be (RFC 6638, section 7.3).
fn told(mut meeting: Meeting, messages: &[Message]) -> Meeting {
    let informed: BTreeSet<&str> = messages.iter().map(|message| message.to.as_str()).collect();
    for part in meeting.parts.values_mut() {
        for line in attendees_mut(part) {
            line.set_parameter("SCHEDULE-FORCE-SEND", None);
            let address = comparable(line.value());
            if informed.contains(address.as_str()) {
                // 1.0: on its way (RFC 6638, section 3.2.9).
                line.set_parameter("SCHEDULE-STATUS", Some("1.0"));
            }
        }
    }
    meeting
}

/// All that somebody is invited to, sent once more (RFC 5546, section 3.2.6).
pub(super) fn again(meeting: &Meeting, own: &str, to: &str, now: Instant) -> Option<Message> {
    let mut parts = meeting.view(to);
    if parts.is_empty() {
        return None;
    }
    parts.iter_mut().for_each(|part| set_stamp(part, now));
    let method = if parts.iter().all(is_cancelled) { Method::Cancel } else { Method::Request };
    meeting.message(method, own, to, parts)
}
