//! What the organizer sends, at an attendee's (RFC 5546, sections 3.2.1, 3.2.2, 3.2.4 and 3.2.5).

use scrinium_dav_wire::content::{Component, ContentItem, ContentLine};

use super::meeting::{Instance, Meeting, lines_named, remove_alarms, set, set_stamp, version};
use super::{ItipOutcome, Message, Method, Person, Reason, Storing, attendee as own};
use crate::address::{answer_of, attendee, attendee_mut, attendees, comparable};
use crate::zone::Instant;

pub(super) fn request(
    old: Option<Meeting>,
    new: &Meeting,
    method: Method,
    person: &Person,
    now: Instant,
) -> Result<ItipOutcome, Reason> {
    let organizer = new.organizer().ok_or(Reason::NoOrganizer)?;
    if person.addresses.contains(&organizer) {
        return Err(Reason::OwnMeeting);
    }
    let is_listed = new.parts.values().any(|part| attendee(part, &person.addresses).is_some());
    if method == Method::Request && !is_listed {
        return Err(Reason::NotInvited);
    }
    let is_new = old.is_none();
    let old = old.unwrap_or_else(|| new.without_parts());
    let mut merged = old.clone();
    merged.take_zones(new);
    let mut is_changed = false;
    if let Some(master) = new.master()
        && is_later(master, old.master())
    {
        is_changed = true;
        merged.put(None, master.clone());
        // A series takes the place of all instances that are not newer than it.
        merged.retain(|instance, part| instance.is_none() || version(part).1 > version(master).1);
    }
    for (instance, part) in new.parts.iter().filter(|(instance, _)| instance.is_some()) {
        let is_outdated = merged.master().is_some_and(|master| version(master).1 > version(part).1);
        let known = merged.parts.get(instance);
        if !is_outdated && is_later(part, known) {
            is_changed = true;
            merged.put(*instance, part.clone());
        }
    }
    if !is_changed {
        let is_older = new.parts.iter().any(|(instance, part)| {
            old.effective(*instance).is_some_and(|known| version(part) < version(known))
        });
        return Err(if is_older { Reason::Outdated } else { Reason::NothingNew });
    }
    let differing = keep_own(&old, &mut merged, person);
    let messages = repeated_answer(&merged, &differing, person, now);
    let reason = if is_new { Reason::FiledNew } else { Reason::FiledChange };
    Ok(ItipOutcome { storing: put(&merged)?, messages, reason })
}

fn put(meeting: &Meeting) -> Result<Storing, Reason> {
    meeting.to_calendar().map(Storing::Put).ok_or(Reason::NothingToSchedule)
}

/// A higher SEQUENCE, or the same with a later DTSTAMP. The same again is nothing new.
fn is_later(part: &Component, known: Option<&Component>) -> bool {
    known.is_none_or(|known| version(part) > version(known))
}

/// What is the attendee's own stays: alarms, whether it takes time, and the answer, unless the time is another one. Says which
/// instances the organizer has another answer to.
fn keep_own(old: &Meeting, merged: &mut Meeting, person: &Person) -> Vec<Instance> {
    let mut differing = Vec::new();
    keep_answered_instances(old, merged, person);
    let instances: Vec<Instance> = merged.parts.keys().copied().collect();
    for instance in instances {
        let before = old.at(instance);
        let (Some(before), Some(part)) = (before, merged.parts.get(&instance)) else { continue };
        if before == *part {
            continue;
        }
        let is_same_time = old.time_of(&before) == merged.time_of(part)
            && lines_named(&before, &["RRULE"]) == lines_named(part, &["RRULE"]);
        let Some(part) = merged.parts.get_mut(&instance) else { continue };
        keep_lines(&before, part);
        let Some(mine) = attendee(&before, &person.addresses).cloned() else { continue };
        let Some(line) = attendee_mut(part, &person.addresses) else { continue };
        if is_same_time && answer_of(&mine) != "NEEDS-ACTION" && answer_of(&mine) != answer_of(line) {
            for name in ["PARTSTAT", "DELEGATED-TO", "RSVP"] {
                line.set_parameter(name, mine.parameter(name));
            }
            differing.push(instance);
        }
    }
    differing
}

/// An answer to one instance of which the organizer does not know yet: it stays if the instance does.
fn keep_answered_instances(old: &Meeting, merged: &mut Meeting, person: &Person) {
    let answer = |part: &Component| attendee(part, &person.addresses).map(answer_of);
    let Some(of_series) = old.master().and_then(answer) else { return };
    for (instance, part) in &old.parts {
        let Some(key) = instance.filter(|_| !merged.parts.contains_key(instance)) else { continue };
        let is_own = answer(part).is_some_and(|mine| mine != of_series && mine != "NEEDS-ACTION");
        if !is_own || !merged.gives(key) {
            continue;
        }
        let Some(new) = merged.instance(key) else { continue };
        if old.time_of(part) == merged.time_of(&new) {
            merged.put(*instance, new);
        }
    }
}

fn keep_lines(before: &Component, part: &mut Component) {
    remove_alarms(part);
    let alarms = before.components().filter(|inner| inner.name() == "VALARM").cloned();
    part.items.extend(alarms.map(ContentItem::Component));
    for name in ["TRANSP", "X-MOZ-LASTACK", "X-APPLE-TRAVEL-ADVISORY-BEHAVIOR"] {
        let lines: Vec<ContentLine> = before.lines().filter(|line| line.name() == name).cloned().collect();
        if !lines.is_empty() {
            part.replace(name, lines);
        }
    }
}

/// The organizer shows another answer than was given: it was lost, or has crossed this message. It is given again, once.
fn repeated_answer(merged: &Meeting, differing: &[Instance], person: &Person, now: Instant) -> Vec<Message> {
    let parts: Vec<Component> =
        differing.iter().filter_map(|instance| merged.parts.get(instance)).cloned().collect();
    let line = parts.iter().find_map(|part| attendee(part, &person.addresses));
    let Some(address) = line.map(|line| comparable(line.value())) else { return Vec::new() };
    own::reply(merged, &parts, &address, person, now).into_iter().collect()
}

pub(super) fn cancel(old: Option<Meeting>, new: &Meeting, person: &Person) -> Result<ItipOutcome, Reason> {
    let is_new = old.is_none();
    let mut old = old.unwrap_or_else(|| new.without_parts());
    if new.organizer().is_some_and(|organizer| person.addresses.contains(&organizer)) {
        return Err(Reason::OwnMeeting);
    }
    // It may name those alone who are no longer wanted (RFC 5546, section 3.2.5).
    let names_others =
        |part: &Component| attendees(part).next().is_some() && attendee(part, &person.addresses).is_none();
    let (mut is_changed, mut is_known) = (false, false);
    for (instance, part) in new.parts.iter().filter(|(_, part)| !names_others(part)) {
        // It has overtaken the invitation, which must not be taken for a later one.
        if is_new && attendee(part, &person.addresses).is_some() {
            let mut part = part.clone();
            set(&mut part, "STATUS", "CANCELLED");
            old.put(*instance, part);
            is_changed = true;
            continue;
        }
        let Some(known) = old.effective(*instance).cloned() else { continue };
        is_known = true;
        // What is over already takes the later version: an invitation from between must not revive it.
        if version(part) <= version(&known) {
            continue;
        }
        match instance {
            None => end_all(&mut old, part),
            Some(key) => {
                let Some(mut one) = old.at(Some(*key)) else { continue };
                end(&mut one, part);
                old.put(*instance, one);
            }
        }
        is_changed = true;
    }
    match (is_changed, is_known) {
        (true, _) => {
            Ok(ItipOutcome { storing: put(&old)?, messages: Vec::new(), reason: Reason::FiledCancellation })
        }
        (false, true) => Err(Reason::Outdated),
        (false, false) => Err(Reason::NotInvited),
    }
}

/// Of the series and of all instances that are not newer.
fn end_all(old: &mut Meeting, by: &Component) {
    for part in old.parts.values_mut().filter(|part| version(part).1 <= version(by).1) {
        end(part, by);
    }
}

fn end(part: &mut Component, by: &Component) {
    set(part, "STATUS", "CANCELLED");
    let sequence = version(part).0.max(version(by).0);
    set(part, "SEQUENCE", &sequence.to_string());
    set_stamp(part, Instant(version(by).1));
    remove_alarms(part);
}

/// ADD (RFC 5546, section 3.2.4): one more instance. Who misses what it adds to asks for the whole.
pub(super) fn add(
    old: Option<Meeting>,
    new: &Meeting,
    person: &Person,
    now: Instant,
) -> Result<ItipOutcome, Reason> {
    let added = new.master().ok_or(Reason::NothingToSchedule)?;
    let line = attendee(added, &person.addresses).ok_or(Reason::NotInvited)?;
    let own = comparable(line.value());
    let is_behind = |old: &Meeting| {
        old.master().is_none_or(|master| version(added).0 > version(master).0.saturating_add(1))
    };
    let Some(mut old) = old.filter(|old| !is_behind(old)) else {
        let refresh = refresh(new, added, &own, person, now);
        return Ok(ItipOutcome {
            messages: refresh.into_iter().collect(),
            ..ItipOutcome::nothing(Reason::AskedOrganizer)
        });
    };
    let key = new.time_of(added).map(|(key, ..)| key).ok_or(Reason::UnreadableTime)?;
    if old.parts.contains_key(&Some(key)) || old.gives(key) {
        return Err(Reason::NothingNew);
    }
    let start = added.line("DTSTART").ok_or(Reason::UnreadableTime)?;
    let line = |name| ContentLine::new(name, start.parameters().to_vec(), start.value());
    let mut master = old.master().cloned().ok_or(Reason::UnknownMeeting)?;
    if version(added) <= version(&master) {
        return Err(Reason::Outdated);
    }
    line("RDATE").into_iter().for_each(|line| master.push(line));
    let sequence = version(added).0.max(version(&master).0);
    set(&mut master, "SEQUENCE", &sequence.to_string());
    set_stamp(&mut master, Instant(version(added).1));
    let mut part = added.clone();
    part.replace("RECURRENCE-ID", line("RECURRENCE-ID").into_iter().collect());
    old.put(None, master);
    old.put(Some(key), part);
    old.take_zones(new);
    Ok(ItipOutcome { storing: put(&old)?, messages: Vec::new(), reason: Reason::FiledChange })
}

/// REFRESH (RFC 5546, section 3.2.6).
fn refresh(new: &Meeting, added: &Component, own: &str, person: &Person, now: Instant) -> Option<Message> {
    let mut part = Component::new(added.name())?;
    let lines = added.lines().filter(|line| matches!(line.name(), "UID" | "ORGANIZER"));
    let own_line = attendee(added, &person.addresses);
    lines.chain(own_line).cloned().for_each(|line| part.push(line));
    set_stamp(&mut part, now);
    new.message(Method::Refresh, own, &new.organizer()?, vec![part])
}
