//! An attendee's changes (RFC 6638, section 3.2.2).

use scrinium_dav_wire::Parameter;
use scrinium_dav_wire::content::{Component, ContentLine};

use super::meeting::{Meeting, is_cancelled, is_server_scheduled, lines_named, set, set_stamp, version};
use super::{Change, ItipOutcome, Message, Method, Person, Reason, Storing};
use crate::address::{answer_of, attendee, attendee_mut, attendees, comparable};
use crate::time::CalendarTime;
use crate::zone::Instant;

/// Lines that are the organizer's.
const ORGANIZERS: [&str; 7] = ["DTSTART", "DTEND", "DURATION", "DUE", "RRULE", "RDATE", "ORGANIZER"];
/// What a reply has of its part (RFC 5546, section 3.2.3); Google and Exchange want times and the title too.
const REPLIED: [&str; 12] = [
    "UID",
    "RECURRENCE-ID",
    "SEQUENCE",
    "ORGANIZER",
    "DTSTART",
    "DTEND",
    "DURATION",
    "DUE",
    "SUMMARY",
    "LOCATION",
    "COMMENT",
    "PERCENT-COMPLETE",
];

/// An answer to an invitation.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// PARTSTAT: `ACCEPTED`, `DECLINED`, `TENTATIVE`, `DELEGATED`.
    pub partstat: String,
    /// One instance; else all.
    pub instance: Option<CalendarTime>,
    /// Who comes instead, where it is delegated.
    pub delegate: Option<String>,
}

/// A copy with somebody's answer.
pub(super) fn answered(stored: &Component, answer: &Answer, person: &Person) -> Result<Component, Reason> {
    let mut meeting = Meeting::read(stored, &person.zone)?;
    let instance = answer.instance.as_ref().map(CalendarTime::key);
    if instance.is_some() && !meeting.parts.contains_key(&instance) {
        let part = meeting.at(instance).ok_or(Reason::UnknownInstance)?;
        meeting.put(instance, part);
    }
    let own_answer = |part: &Component| attendee(part, &person.addresses).map(answer_of);
    let of_series = meeting.master().and_then(own_answer);
    let mut has_answered = false;
    for (place, part) in &mut meeting.parts {
        // An answer to the series is one to its instances, but for those that had another one.
        let is_meant = match instance {
            Some(_) => *place == instance,
            None => place.is_none() || of_series.is_none() || own_answer(part) == of_series,
        };
        if is_meant {
            has_answered |= set_answer(part, answer, person)?;
        }
    }
    if !has_answered {
        return Err(Reason::NotInvited);
    }
    meeting.to_calendar().ok_or(Reason::NothingToSchedule)
}

fn set_answer(part: &mut Component, answer: &Answer, person: &Person) -> Result<bool, Reason> {
    let Some(line) = attendee_mut(part, &person.addresses) else { return Ok(false) };
    line.set_parameter("PARTSTAT", Some(&answer.partstat.to_ascii_uppercase()));
    line.set_parameter("RSVP", None);
    let Some(delegate) = &answer.delegate else { return Ok(true) };
    let address = format!("mailto:{}", comparable(delegate));
    line.set_parameter("DELEGATED-TO", Some(&address));
    let own = line.value().to_owned();
    if attendee(part, &[comparable(delegate)]).is_none() {
        let parameters = [("PARTSTAT", "NEEDS-ACTION"), ("RSVP", "TRUE"), ("DELEGATED-FROM", own.as_str())];
        let parameters = parameters.map(|(name, value)| Parameter::new(name, value)).to_vec();
        part.push(ContentLine::new("ATTENDEE", parameters, &address).ok_or(Reason::NoAttendee)?);
    }
    Ok(true)
}

pub(super) fn change(
    old: Option<&Meeting>,
    new: Option<Meeting>,
    change: Change<'_>,
    person: &Person,
    now: Instant,
) -> Result<ItipOutcome, Reason> {
    let new = match (old, new) {
        (Some(old), Some(new)) => Some(permitted(old, new)?),
        (_, new) => new,
    };
    let Some(meeting) = new.as_ref().or(old) else { return Err(Reason::NothingToSchedule) };
    let own = meeting.parts.values().find_map(|part| attendee(part, &person.addresses));
    let own = own.map(|line| comparable(line.value()));
    let mut messages = Vec::new();
    // The organizer's line says who answers.
    let is_ours = meeting.organizer_line().is_none_or(is_server_scheduled);
    if let (Some(own), true) = (&own, change.informs && is_ours) {
        let changed = changed_parts(old, new.as_ref(), person);
        messages.extend(reply(meeting, &changed, own, person, now));
        messages.extend(delegations(meeting, &changed, own, person, now));
    }
    let reason = if messages.is_empty() { Reason::Silent } else { Reason::Informed };
    let storing = new.and_then(|new| new.to_calendar()).map_or(Storing::Delete, Storing::Put);
    Ok(ItipOutcome { storing, messages, reason })
}

/// What an attendee may change: not the organizer's lines, nor SEQUENCE, which stays (RFC 6638, section 3.2.2.1).
fn permitted(old: &Meeting, mut new: Meeting) -> Result<Meeting, Reason> {
    for (instance, part) in &mut new.parts {
        let before = old.at(*instance).ok_or(Reason::UnknownInstance)?;
        for name in ORGANIZERS {
            let values = |part| {
                lines_named(part, &[name]).iter().map(|line| line.value().to_owned()).collect::<Vec<_>>()
            };
            if values(&before) != values(part) {
                return Err(Reason::OrganizersLine { line: name.to_owned() });
            }
        }
        let (sequence, _) = version(&before);
        if version(part).0 != sequence {
            set(part, "SEQUENCE", &sequence.to_string());
        }
        // When the organizer wrote it is what decides between messages; a client's clock is nothing to it.
        if let Some(stamp) = before.line("DTSTAMP").map(|line| line.value().to_owned()) {
            set(part, "DTSTAMP", &stamp);
        }
    }
    Ok(new)
}

/// Parts with another answer than before, as they are to be told.
fn changed_parts(old: Option<&Meeting>, new: Option<&Meeting>, person: &Person) -> Vec<Component> {
    let line_of = |part: &Component| attendee(part, &person.addresses).cloned();
    let answer = |part: &Component| {
        line_of(part).map(|line| (answer_of(&line), line.parameter("DELEGATED-TO").map(str::to_owned)))
    };
    let Some(new) = new else { return old.map_or_else(Vec::new, |old| left(old, person)) };
    let mut changed = Vec::new();
    for (instance, part) in &new.parts {
        let before = old.and_then(|old| old.effective(*instance)).and_then(answer);
        let is_forced = line_of(part).is_some_and(|line| line.parameter("SCHEDULE-FORCE-SEND").is_some());
        let is_unanswered = answer(part).is_none_or(|(answer, _)| answer == "NEEDS-ACTION");
        let is_new = if old.is_none() { !is_unanswered } else { before != answer(part) };
        if is_new || is_forced {
            changed.push(part.clone());
        }
    }
    // An instance that an attendee takes out is declined (RFC 6638, section 3.2.2.1).
    if let Some(old) = old {
        changed.extend(taken_out(old, new).into_iter().filter_map(|part| declined(&part, person)));
    }
    changed
}

fn taken_out(old: &Meeting, new: &Meeting) -> Vec<Component> {
    let (Some(before), Some(after)) = (old.master(), new.master()) else { return Vec::new() };
    let known: Vec<&str> =
        before.lines().filter(|line| line.name() == "EXDATE").map(ContentLine::value).collect();
    let fresh = after.lines().filter(|line| line.name() == "EXDATE" && !known.contains(&line.value()));
    let Some(calendar) = old.to_calendar() else { return Vec::new() };
    let utc = crate::zone::Zone::utc();
    let mut zones = crate::zone::ZoneNames::new(&calendar, utc);
    let times = fresh.flat_map(|line| crate::event::times(line, &mut zones)).map(|(time, _)| time.key());
    let keys: Vec<i64> = times.take(1_000).collect();
    keys.into_iter()
        .filter(|key| old.gives(*key))
        .filter_map(|key| old.parts.get(&Some(key)).cloned().or_else(|| old.instance(key)))
        .collect()
}

/// Who deletes an invitation declines it, unless it was never answered, is cancelled, or was declined before.
fn left(old: &Meeting, person: &Person) -> Vec<Component> {
    let is_open = |part: &&Component| !is_cancelled(part);
    old.parts.values().filter(is_open).filter_map(|part| declined(part, person)).collect()
}

fn declined(part: &Component, person: &Person) -> Option<Component> {
    let mut part = part.clone();
    let line = attendee_mut(&mut part, &person.addresses)?;
    if matches!(answer_of(line).as_str(), "NEEDS-ACTION" | "DECLINED" | "DELEGATED") {
        return None;
    }
    line.set_parameter("PARTSTAT", Some("DECLINED"));
    Some(part)
}

/// REPLY with one attendee, and the delegate where there is one (RFC 5546, section 3.2.3).
pub(super) fn reply(
    meeting: &Meeting,
    parts: &[Component],
    own: &str,
    person: &Person,
    now: Instant,
) -> Option<Message> {
    let organizer = meeting.organizer().filter(|organizer| !person.addresses.contains(organizer))?;
    let parts: Vec<Component> = parts.iter().filter_map(|part| reply_part(part, person, now)).collect();
    if parts.is_empty() {
        return None;
    }
    meeting.message(Method::Reply, own, &organizer, parts)
}

fn reply_part(part: &Component, person: &Person, now: Instant) -> Option<Component> {
    let mut reply = Component::new(part.name())?;
    let is_own = |address: &str| person.addresses.contains(&comparable(address));
    let own = attendees(part)
        .filter(|line| is_own(line.value()) || line.parameter("DELEGATED-FROM").is_some_and(is_own));
    part.lines()
        .filter(|line| REPLIED.contains(&line.name()))
        .chain(own)
        .cloned()
        .for_each(|line| reply.push(line));
    for line in reply.lines_mut() {
        for name in ["SCHEDULE-AGENT", "SCHEDULE-STATUS", "SCHEDULE-FORCE-SEND", "RSVP"] {
            line.set_parameter(name, None);
        }
    }
    set_stamp(&mut reply, now);
    Some(reply)
}

/// The person who comes instead is invited by who delegates (RFC 5546, section 3.2.2.3).
fn delegations(
    meeting: &Meeting,
    changed: &[Component],
    own: &str,
    person: &Person,
    now: Instant,
) -> Vec<Message> {
    let delegates = changed.iter().filter_map(|part| {
        let line = attendee(part, &person.addresses)?;
        (answer_of(line) == "DELEGATED").then(|| line.parameter("DELEGATED-TO").map(comparable))?
    });
    let mut delegates: Vec<String> = delegates.collect();
    delegates.sort_unstable();
    delegates.dedup();
    let invite = |to: String| {
        let parts = meeting.view(&to).into_iter().map(|mut part| {
            // The organizer's own stamp: an update of theirs is later.
            if part.line("DTSTAMP").is_none() {
                set_stamp(&mut part, now);
            }
            part
        });
        meeting.message(Method::Request, own, &to, parts.collect())
    };
    delegates.into_iter().filter_map(invite).collect()
}
