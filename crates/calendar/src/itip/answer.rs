//! An attendee's answer at the organizer's (RFC 5546, section 3.2.3). Nobody else is sent anything: the others see it when the
//! organizer changes something.

use scrinium_dav_wire::content::{Component, ContentLine};

use super::meeting::{Answered, Meeting, version};
use super::{ItipOutcome, Reason, Storing};
use crate::address::{answer_of, attendee, attendee_mut, attendees, comparable};

pub(super) fn reply(mut old: Meeting, new: &Meeting, sender: &str) -> Result<ItipOutcome, Reason> {
    let mut filed = None;
    let mut refused = None;
    for (instance, part) in &new.parts {
        let line = answering(part, sender)?;
        match take(&mut old, *instance, part, line) {
            Ok(()) if instance.is_none() => {
                spread(&mut old, new, line);
                filed = Some((comparable(line.value()), answer_of(line)));
            }
            Ok(()) => filed = Some((comparable(line.value()), answer_of(line))),
            Err(reason) => refused = Some(reason),
        }
    }
    let Some((attendee, answer)) = filed else { return Err(refused.unwrap_or(Reason::NoAttendee)) };
    let calendar = old.to_calendar().ok_or(Reason::NothingToSchedule)?;
    Ok(ItipOutcome {
        storing: Storing::Put(calendar),
        messages: Vec::new(),
        reason: Reason::FiledAnswer { attendee, answer },
    })
}

/// The attendee who answers: the sender, or whom the sender acts for.
fn answering<'a>(part: &'a Component, sender: &str) -> Result<&'a ContentLine, Reason> {
    let first = attendees(part).next().ok_or(Reason::NoAttendee)?;
    let acts = |line: &&ContentLine| {
        comparable(line.value()) == sender
            || line.parameter("SENT-BY").map(comparable).as_deref() == Some(sender)
    };
    attendees(part).find(acts).ok_or_else(|| Reason::SenderIsNotAttendee {
        sender: sender.to_owned(),
        attendee: comparable(first.value()),
    })
}

fn take(
    old: &mut Meeting,
    instance: Option<i64>,
    part: &Component,
    line: &ContentLine,
) -> Result<(), Reason> {
    let address = [comparable(line.value())];
    let mut known = old.at(instance).ok_or(Reason::UnknownInstance)?;
    let delegator = line.parameter("DELEGATED-FROM").map(|from| [comparable(from)]);
    let is_delegate = delegator.as_ref().is_some_and(|from| {
        attendee(&known, from)
            .is_some_and(|line| line.parameter("DELEGATED-TO").map(comparable).as_ref() == address.first())
    });
    if attendee(&known, &address).is_none() {
        if !is_delegate {
            return Err(Reason::Stranger { attendee: address.concat() });
        }
        known.push(line.clone());
    }
    // The answer is to what the attendee saw: an earlier version, or another time, is not what is asked now.
    let has_time = part.line("DTSTART").is_some();
    if version(part).0 < version(&known).0 || (has_time && start_of(old, part) != start_of(old, &known)) {
        return Err(Reason::OutdatedAnswer);
    }
    let stamp_s = version(part).1;
    let Some(own) = attendee_mut(&mut known, &address) else { return Err(Reason::NoAttendee) };
    let is_own = instance.is_some();
    // What was said to the series says nothing against what was said to the instance.
    match Answered::read(own).filter(|before| before.is_own == is_own) {
        Some(before) if before.stamp_s > stamp_s => return Err(Reason::Outdated),
        Some(before) if before.stamp_s == stamp_s && answer_of(own) == answer_of(line) => {
            return Err(Reason::NothingNew);
        }
        _ => {}
    }
    Answered { stamp_s, is_own }.write(own);
    own.set_parameter("PARTSTAT", Some(&answer_of(line)));
    own.set_parameter("RSVP", None);
    own.set_parameter("DELEGATED-TO", line.parameter("DELEGATED-TO"));
    // 2.0: it has been delivered, and was answered (RFC 6638, section 3.2.9).
    own.set_parameter("SCHEDULE-STATUS", Some("2.0"));
    add_delegates(&mut known, part, &address);
    old.put(instance, known);
    Ok(())
}

fn start_of(old: &Meeting, part: &Component) -> Option<i64> {
    old.time_of(part).map(|(start, ..)| start)
}

/// Whom an attendee sends instead joins the others.
fn add_delegates(known: &mut Component, part: &Component, from: &[String]) {
    let is_theirs = |line: &&ContentLine| {
        line.parameter("DELEGATED-FROM").is_some_and(|delegator| from.contains(&comparable(delegator)))
    };
    for line in attendees(part).filter(is_theirs) {
        if attendee(known, &[comparable(line.value())]).is_none() {
            known.push(line.clone());
        }
    }
}

/// An answer to the series is one to its instances that have a part only because others answered them by themselves.
fn spread(old: &mut Meeting, new: &Meeting, line: &ContentLine) {
    let address = [comparable(line.value())];
    let Some(now) = old.master().and_then(|master| attendee(master, &address)).cloned() else { return };
    let follows = |old: &Meeting, key: i64, part: &Component| {
        let own = attendee(part, &address);
        let is_unmoved = old.instance(key).is_some_and(|made| old.time_of(&made) == old.time_of(part));
        own.is_some_and(|own| Answered::read(own).is_none_or(|answered| !answered.is_own))
            && is_unmoved
            && !new.parts.contains_key(&Some(key))
    };
    let following: Vec<i64> = old
        .parts
        .iter()
        .filter_map(|(instance, part)| Some(((*instance)?, part)))
        .filter(|(key, part)| follows(old, *key, part))
        .map(|(key, _)| key)
        .collect();
    for key in following {
        let Some(own) = old.parts.get_mut(&Some(key)).and_then(|part| attendee_mut(part, &address)) else {
            continue;
        };
        for parameter in now.parameters() {
            own.set_parameter(&parameter.name, parameter.values.first().map(String::as_str));
        }
        if now.parameter("RSVP").is_none() {
            own.set_parameter("RSVP", None);
        }
    }
}
