//! Rooms and other resources: an invitation is a booking, and is answered at once.
//!
//! The router files one message after the other, and each is durable before the next is looked at. So of two bookings of the same
//! time the one whose message came first is accepted, and the other one sees it.

use scrinium_calendar::address::{attendee, attendees, comparable};
use scrinium_calendar::itip::{self, Answer, ItipOutcome, Message, Reason, Storing};
use scrinium_calendar::rooms::{
    Booking, BookingDecision, BookingRefusal, BookingRequest, Lane, RoomRules, decide,
};
use scrinium_calendar::series::{InstantRange, Occurrence, Series};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav::place::Area;
use scrinium_dav_wire::content::{Component, ContentLine};
use scrinium_dav_wire::value::escape_text;

use super::filing::{Filing, awaits_answer, uid_of};
use crate::refusal::Result;
use crate::service::DavService;

/// A booking has no more occurrences: what has more is refused.
const OCCURRENCES_MAX: usize = 10_001;

/// Of a series no more dates are declined by themselves: each takes a message of its own.
const DECLINED_MAX: usize = 100;

/// How far a series is looked at that no rule of the resource cuts off.
const HORIZON_S: i64 = 400 * 86_400;

impl DavService {
    /// The outcome of an invitation with the resource's answer.
    pub(super) fn booked(
        &self,
        filing: &Filing<'_>,
        outcome: ItipOutcome,
        rules: &RoomRules,
    ) -> Result<ItipOutcome> {
        let is_invitation = matches!(outcome.reason, Reason::FiledNew | Reason::FiledChange);
        let addresses = &filing.person.addresses;
        let (Storing::Put(meeting), true) = (&outcome.storing, is_invitation) else { return Ok(outcome) };
        // What was answered and has not moved stays booked.
        if !awaits_answer(meeting, addresses) {
            return Ok(outcome);
        }
        let zone = &filing.person.zone;
        let Some(series) = Series::read_all(meeting, zone).into_iter().next() else { return Ok(outcome) };
        let now = self.now();
        let horizon_s = rules.ahead_s.unwrap_or(HORIZON_S);
        let span = InstantRange { from: now, to: Instant(now.0.saturating_add(horizon_s)) };
        // One that is not repeated is asked about wherever it is.
        let span =
            if series.is_recurring() { span } else { InstantRange { from: now, to: Instant(i64::MAX) } };
        let found = series.occurrences(span, zone, OCCURRENCES_MAX).occurrences;
        let times: Vec<InstantRange> = found.iter().map(|one| range_of(one, zone)).collect();
        let organizer = meeting.components().find_map(|part| part.line("ORGANIZER"));
        let organizer = organizer.map(|line| comparable(line.value())).unwrap_or_default();
        let request = BookingRequest {
            organizer: &organizer,
            people: people_of(meeting, addresses),
            occurrences: &times,
            is_series: series.is_recurring(),
            now,
        };
        let lanes = self.lanes(filing, &times, (meeting, rules.lanes))?;
        let answers = Answers { meeting, person: &filing.person, now };
        let decision = match decide(rules, &request, &lanes) {
            BookingDecision::Accepted(Booking { declined, .. })
            | BookingDecision::AwaitsOwner(Booking { declined, .. })
                if declined.len() > DECLINED_MAX =>
            {
                BookingDecision::Declined(BookingRefusal::Conflict { conflicts: declined })
            }
            decision => decision,
        };
        Ok(match decision {
            BookingDecision::Accepted(booking) => answers
                .give("ACCEPTED", &declined(&found, &booking.declined, zone), outcome.clone())
                .unwrap_or(outcome),
            BookingDecision::AwaitsOwner(booking) => answers
                .give("TENTATIVE", &declined(&found, &booking.declined, zone), outcome.clone())
                .unwrap_or(outcome),
            // What was booked before stays.
            BookingDecision::Declined(refusal) => match answers.refuse(&refusal.to_string()) {
                Some(messages) => ItipOutcome {
                    storing: Storing::Keep,
                    messages: outcome.messages.into_iter().chain(messages).collect(),
                    reason: outcome.reason,
                },
                None => outcome,
            },
        })
    }

    /// What is booked while a meeting is, but for the meeting itself.
    fn lanes(
        &self,
        filing: &Filing<'_>,
        times: &[InstantRange],
        (meeting, count): (&Component, usize),
    ) -> Result<Vec<Lane>> {
        let from = times.iter().map(|time| time.from).min();
        let to = times.iter().map(|time| time.to).max();
        let (Some(from), Some(to)) = (from, to) else { return Ok(Vec::new()) };
        let range = InstantRange { from, to };
        let own = uid_of(meeting);
        let mut taken: Vec<InstantRange> = Vec::new();
        for shelf in filing.home.shelves(Area::Calendars)? {
            if shelf.is_inbox() {
                continue;
            }
            let floating = filing.home.floating(&shelf);
            let contents = filing.home.collection(self, &shelf).contents()?;
            let left_out = own.as_deref().map(|uid| contents.with_object(uid)).transpose()?.flatten();
            let of = (filing.person.addresses.as_slice(), &floating);
            contents.each_taken(range, of, left_out.map(|member| member.uid), |entry| {
                let (from, to) = entry.instants(&floating);
                taken.push(InstantRange { from, to });
            })?;
        }
        Ok(in_lanes(taken, count.max(1)))
    }
}

/// Bookings by lane: each into the first one that is free, which needs no more lanes than there are bookings at once.
fn in_lanes(mut taken: Vec<InstantRange>, count: usize) -> Vec<Lane> {
    taken.sort_unstable_by_key(|range| (range.from, range.to));
    let mut lanes: Vec<Lane> = vec![Lane::new(); count];
    for range in taken {
        let is_free = |lane: &&mut Lane| lane.last().is_none_or(|last| last.to <= range.from);
        match lanes.iter_mut().find(is_free) {
            Some(lane) => lane.push(range),
            // More than there are lanes: somebody has put it there by hand. The last one is taken for longer.
            None => {
                if let Some(last) = lanes.last_mut().and_then(|lane| lane.last_mut()) {
                    last.to = last.to.max(range.to);
                }
            }
        }
    }
    lanes
}

fn range_of(occurrence: &Occurrence, zone: &Zone) -> InstantRange {
    let (from, to) = occurrence.instants(zone);
    InstantRange { from, to }
}

/// How many come: the organizer, and those who are invited, but for the resource and others of its kind.
fn people_of(meeting: &Component, own: &[String]) -> u32 {
    let mut people: Vec<String> = meeting
        .components()
        .flat_map(attendees)
        .filter(|line| {
            let kind = line.parameter("CUTYPE").unwrap_or("INDIVIDUAL");
            !["ROOM", "RESOURCE"].iter().any(|other| kind.eq_ignore_ascii_case(other))
        })
        .map(|line| comparable(line.value()))
        .chain(
            meeting
                .components()
                .filter_map(|part| part.line("ORGANIZER"))
                .map(|line| comparable(line.value())),
        )
        .filter(|address| !own.contains(address))
        .collect();
    people.sort_unstable();
    people.dedup();
    u32::try_from(people.len()).unwrap_or(u32::MAX)
}

/// Occurrences that are declined by themselves.
fn declined<'a>(found: &'a [Occurrence], declined: &[InstantRange], zone: &Zone) -> Vec<&'a Occurrence> {
    found.iter().filter(|one| declined.contains(&range_of(one, zone))).collect()
}

/// Answers of a resource.
struct Answers<'a> {
    meeting: &'a Component,
    person: &'a itip::Person,
    now: Instant,
}

impl Answers<'_> {
    /// The answer to all, and another one to some occurrences. `None`: nobody was asked.
    fn give(&self, partstat: &str, declined: &[&Occurrence], outcome: ItipOutcome) -> Option<ItipOutcome> {
        let mut messages = outcome.messages;
        let mut stored = self.meeting.clone();
        let to_all = Answer { partstat: partstat.to_owned(), ..Answer::default() };
        let to_some = declined.iter().filter_map(|one| one.recurrence_id.clone()).map(|instance| Answer {
            partstat: "DECLINED".to_owned(),
            instance: Some(instance),
            delegate: None,
        });
        for answer in std::iter::once(to_all).chain(to_some) {
            let answered = itip::answer(&stored, &answer, self.person, self.now).ok()?;
            messages.extend(answered.messages);
            if let Storing::Put(next) = answered.storing {
                stored = next;
            }
        }
        Some(ItipOutcome { storing: Storing::Put(stored), messages, reason: outcome.reason })
    }

    /// A refusal of all, with its reason.
    fn refuse(&self, reason: &str) -> Option<Vec<Message>> {
        let mut commented = self.meeting.clone();
        for part in commented.components_mut() {
            if attendee(part, &self.person.addresses).is_some() {
                let line = ContentLine::new("COMMENT", Vec::new(), &escape_text(reason));
                part.replace("COMMENT", line.into_iter().collect());
            }
        }
        let answer = Answer { partstat: "DECLINED".to_owned(), ..Answer::default() };
        itip::answer(&commented, &answer, self.person, self.now).ok().map(|outcome| outcome.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: i64, to: i64) -> InstantRange {
        InstantRange { from: Instant(from), to: Instant(to) }
    }

    #[test]
    fn bookings_need_as_many_lanes_as_there_are_at_once() {
        let lanes = in_lanes(vec![range(5, 9), range(0, 4), range(2, 6), range(4, 5)], 2);
        assert_eq!(lanes, [vec![range(0, 4), range(4, 5), range(5, 9)], vec![range(2, 6)]]);
        // A third at once takes the last lane for longer, and nothing is free there.
        let lanes = in_lanes(vec![range(0, 4), range(1, 3), range(2, 8)], 2);
        assert_eq!(lanes, [vec![range(0, 4)], vec![range(1, 8)]]);
    }
}
