//! Whether a room or another resource may be booked: its rules, and what is booked already.
//!
//! [`decide`] is pure. The caller holds the resource meanwhile, so that of two bookings at once one wins.

use crate::series::InstantRange;
use crate::zone::Instant;

/// Occurrences of one booking.
const OCCURRENCES_MAX: usize = 10_000;

/// Who may book (Domino's five kinds of ownership).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OwnerRule {
    /// Everybody.
    #[default]
    None,
    /// The owners alone; others' requests wait for an owner.
    OwnersApprove,
    /// These, and owners.
    Only(Vec<String>),
    /// These book at once; others' requests wait for an owner.
    OnlyOthersAsk(Vec<String>),
    /// Nobody.
    Disabled,
}

/// The rules of a resource. Addresses as of [`crate::address::comparable`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomRules {
    /// Seats; `None` for what has none.
    pub capacity: Option<u32>,
    /// Owners.
    pub owners: Vec<String>,
    /// Who may book.
    pub rule: OwnerRule,
    /// How far ahead, in seconds. What a series has beyond it is booked when it comes near.
    pub ahead_s: Option<i64>,
    /// How long at most, in seconds.
    pub longest_s: Option<i64>,
    /// Series are refused.
    pub refuses_series: bool,
    /// How many bookings at once: 1 for a room, more for what there are several of.
    pub lanes: usize,
    /// Of a series, conflicts that are declined by themselves, in a hundred occurrences; with more all is refused. 0: all or
    /// nothing.
    pub conflicts_percent: u8,
}

/// A booking.
#[derive(Clone, Debug)]
pub struct BookingRequest<'a> {
    /// Who books.
    pub organizer: &'a str,
    /// How many people come, with the organizer.
    pub people: u32,
    /// When: as far as the horizon goes.
    pub occurrences: &'a [InstantRange],
    /// It is a series.
    pub is_series: bool,
    /// Now.
    pub now: Instant,
}

/// What is booked in a lane, in order and apart. The booking that is changed is left out.
pub type Lane = Vec<InstantRange>;

/// Why a booking is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BookingRefusal {
    #[error("it is booked at {} of the times asked for", conflicts.len())]
    Conflict { conflicts: Vec<InstantRange> },
    #[error("it has {capacity} seats, and {people} people are invited")]
    TooSmall { capacity: u32, people: u32 },
    #[error("only some people may book it")]
    NotPermitted,
    #[error("it cannot be booked")]
    Disabled,
    #[error("it can be booked {days} days ahead at most")]
    TooFarAhead { days: i64 },
    #[error("it can be booked for {minutes} minutes at most")]
    TooLong { minutes: i64 },
    #[error("it cannot be booked for repeating meetings")]
    NoSeries,
    #[error("the meeting is over, or has no time")]
    NoTime,
    #[error("it cannot be booked for more than 10,000 occurrences")]
    TooMany,
}

/// What becomes of a booking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BookingDecision {
    /// Booked.
    Accepted(Booking),
    /// Held until an owner says yes or no: PARTSTAT is TENTATIVE meanwhile.
    AwaitsOwner(Booking),
    /// Refused.
    Declined(BookingRefusal),
}

/// What to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Booking {
    /// Each occurrence and its lane.
    pub slots: Vec<(InstantRange, usize)>,
    /// Occurrences of a series that are declined by themselves.
    pub declined: Vec<InstantRange>,
}

/// Decides a booking: O(occurrences × lanes × log of what is booked).
#[must_use]
pub fn decide(rules: &RoomRules, request: &BookingRequest<'_>, booked: &[Lane]) -> BookingDecision {
    let awaits_owner = match permitted(rules, request) {
        Ok(awaits_owner) => awaits_owner,
        Err(refusal) => return BookingDecision::Declined(refusal),
    };
    let mut occurrences: Vec<InstantRange> = request
        .occurrences
        .iter()
        .copied()
        .filter(|range| range.to > request.now && range.from < range.to)
        .collect();
    occurrences.sort_unstable_by_key(|range| (range.from, range.to));
    let horizon = rules.ahead_s.map(|ahead_s| Instant(request.now.0.saturating_add(ahead_s)));
    if let Some(horizon) = horizon.filter(|_| request.is_series) {
        occurrences.retain(|range| range.from <= horizon);
    }
    if occurrences.is_empty() {
        return BookingDecision::Declined(BookingRefusal::NoTime);
    }
    let mut booking = Booking::default();
    let mut taken = vec![Instant(i64::MIN); rules.lanes.max(1)];
    for range in occurrences {
        let lane = taken.iter().enumerate().position(|(lane, until)| {
            *until <= range.from && booked.get(lane).is_none_or(|booked| is_free(booked, range))
        });
        match lane.and_then(|lane| Some((lane, taken.get_mut(lane)?))) {
            Some((lane, until)) => {
                *until = range.to;
                booking.slots.push((range, lane));
            }
            None => booking.declined.push(range),
        }
    }
    let all = booking.slots.len() + booking.declined.len();
    let too_many = booking.declined.len() * 100 > all * usize::from(rules.conflicts_percent.min(100));
    if booking.slots.is_empty() || too_many {
        return BookingDecision::Declined(BookingRefusal::Conflict { conflicts: booking.declined });
    }
    if awaits_owner { BookingDecision::AwaitsOwner(booking) } else { BookingDecision::Accepted(booking) }
}

/// Whether the rules permit it, and whether an owner has to.
fn permitted(rules: &RoomRules, request: &BookingRequest<'_>) -> Result<bool, BookingRefusal> {
    let names = |list: &[String]| list.iter().any(|one| one == request.organizer);
    let is_owner = names(&rules.owners);
    let awaits_owner = match &rules.rule {
        OwnerRule::Disabled => return Err(BookingRefusal::Disabled),
        OwnerRule::Only(list) if !is_owner && !names(list) => return Err(BookingRefusal::NotPermitted),
        OwnerRule::OnlyOthersAsk(list) => !is_owner && !names(list),
        OwnerRule::OwnersApprove => !is_owner,
        OwnerRule::None | OwnerRule::Only(_) => false,
    };
    if let Some(capacity) = rules.capacity.filter(|capacity| *capacity < request.people) {
        return Err(BookingRefusal::TooSmall { capacity, people: request.people });
    }
    if request.is_series && rules.refuses_series {
        return Err(BookingRefusal::NoSeries);
    }
    if request.occurrences.len() > OCCURRENCES_MAX {
        return Err(BookingRefusal::TooMany);
    }
    let first = request.occurrences.iter().map(|range| range.from).min().ok_or(BookingRefusal::NoTime)?;
    if let Some(ahead_s) = rules.ahead_s.filter(|ahead_s| first.0 > request.now.0.saturating_add(*ahead_s)) {
        return Err(BookingRefusal::TooFarAhead { days: ahead_s / crate::civil::DAY_S });
    }
    let longest = request.occurrences.iter().map(|range| range.to.0.saturating_sub(range.from.0)).max();
    match (longest, rules.longest_s) {
        (Some(length), Some(most)) if length > most => Err(BookingRefusal::TooLong { minutes: most / 60 }),
        (_, _) => Ok(awaits_owner),
    }
}

/// The last booking that begins before the end is the only one that can be in the way.
fn is_free(booked: &[InstantRange], range: InstantRange) -> bool {
    let before = booked.partition_point(|other| other.from < range.to);
    before.checked_sub(1).and_then(|last| booked.get(last)).is_none_or(|last| last.to <= range.from)
}
