//! Times at which people and rooms are free together.

use std::collections::BTreeMap;

use super::{BusyKind, BusyPeriod};
use crate::series::InstantRange;
use crate::zone::Instant;

/// Slots that one question looks at.
const SLOTS_MAX: i64 = 20_000;
/// Slots that one question is answered with.
const ANSWERS_MAX: usize = 200;

/// Somebody, or a room, and when he is taken.
#[derive(Clone, Debug)]
pub struct Participant {
    /// Merged periods, as of [`super::BusyTime::periods`].
    pub busy: Vec<BusyPeriod>,
    /// Whether the meeting cannot be without him.
    pub is_required: bool,
    /// Of rooms one is enough. `None` for people.
    pub room_seats: Option<u32>,
}

/// Which times are wanted.
#[derive(Clone, Copy, Debug)]
pub struct SlotQuestion {
    /// Where to look.
    pub range: InstantRange,
    /// How long the meeting takes, in seconds.
    pub length_s: i64,
    /// From one start that is looked at to the next, in seconds: at least a minute. Starts are at whole steps of UTC.
    pub step_s: i64,
    /// Whether a room is wanted, and for how many.
    pub room_for: Option<u32>,
    /// Answers, at most 200.
    pub most: usize,
}

/// A time, and for whom it is not free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeSlot {
    /// The time.
    pub range: InstantRange,
    /// Places of those among the participants whom the meeting can be without and who are not free.
    pub missing: Vec<usize>,
    /// Places of those who are tentatively taken.
    pub tentative: Vec<usize>,
    /// The smallest room that is free and large enough.
    pub room: Option<usize>,
}

/// Times for a meeting, the best first: with the fewest who are missing, then with the fewest who are tentatively taken, then
/// the earliest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommonTimes {
    /// Best first.
    pub slots: Vec<FreeSlot>,
    /// The span held more starts than are looked at: ask for the rest.
    pub looked_until: Option<Instant>,
}

impl CommonTimes {
    /// Looks for them: O(periods + starts × participants).
    #[must_use]
    pub fn find(question: &SlotQuestion, participants: &[Participant]) -> Self {
        let step_s = question.step_s.max(60);
        let most = question.most.min(ANSWERS_MAX);
        let mut found = Self::default();
        if question.length_s <= 0 || most == 0 {
            return found;
        }
        let mut best: BTreeMap<(usize, usize, Instant), FreeSlot> = BTreeMap::new();
        let mut cursors = vec![0_usize; participants.len()];
        let first =
            question.range.from.0.saturating_add(step_s - 1).div_euclid(step_s).saturating_mul(step_s);
        for number in 0.. {
            let from = first.saturating_add(step_s.saturating_mul(number));
            let range =
                InstantRange { from: Instant(from), to: Instant(from.saturating_add(question.length_s)) };
            if range.to > question.range.to || range.to <= range.from {
                break;
            }
            if number >= SLOTS_MAX {
                found.looked_until = Some(range.from);
                break;
            }
            if let Some(slot) = slot(question, participants, range, &mut cursors) {
                best.insert((slot.missing.len(), slot.tentative.len(), range.from), slot);
                if best.len() > most {
                    best.pop_last();
                }
            }
        }
        found.slots = best.into_values().collect();
        found
    }
}

/// Who is free in a span; `None` if it will not do. Cursors only move on: spans come in order.
fn slot(
    question: &SlotQuestion,
    participants: &[Participant],
    range: InstantRange,
    cursors: &mut [usize],
) -> Option<FreeSlot> {
    let mut slot = FreeSlot { range, missing: Vec::new(), tentative: Vec::new(), room: None };
    let mut is_possible = true;
    let mut best_seats = u32::MAX;
    for (place, (participant, cursor)) in participants.iter().zip(cursors).enumerate() {
        let kind = taken(&participant.busy, range, cursor);
        match participant.room_seats {
            Some(seats) => {
                let is_better = seats < best_seats || slot.room.is_none();
                if kind == BusyKind::Free
                    && question.room_for.is_some_and(|needed| seats >= needed)
                    && is_better
                {
                    best_seats = seats;
                    slot.room = Some(place);
                }
            }
            None if kind == BusyKind::Free => {}
            None if kind == BusyKind::Tentative => slot.tentative.push(place),
            None if participant.is_required => is_possible = false,
            None => slot.missing.push(place),
        }
    }
    (is_possible && (question.room_for.is_none() || slot.room.is_some())).then_some(slot)
}

fn taken(busy: &[BusyPeriod], range: InstantRange, cursor: &mut usize) -> BusyKind {
    while busy.get(*cursor).is_some_and(|period| period.range.to <= range.from) {
        *cursor += 1;
    }
    let within = busy.iter().skip(*cursor).take_while(|period| period.range.from < range.to);
    within.map(|period| period.kind).max().unwrap_or_default()
}
