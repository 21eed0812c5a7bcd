//! What a rule of recurrence gives (RFC 5545, section 3.3.10; RFC 7529).
//!
//! A rule cuts civil time into periods (years, months, weeks, days, hours ...) of which every INTERVALth counts. The period that
//! holds a time is found by a division, so a series is entered anywhere at the same cost, and nothing counts from its start. Within
//! a period the days that fit are listed (366 at most), and times of the day are never listed at all: the n-th time is
//! computed from n, so that a rule with all hours, minutes and seconds needs no more memory than another one.
//!
//! A rule that never fits is found in bounded time: after 150,000 days that do not fit, which is more than the calendar's
//! cycle of 400 years has, there are no others.

mod days;
mod period;
mod walk;

use scrinium_dav_wire::recurrence::{Frequency, RecurrenceRule};
use thiserror::Error;

use crate::civil::{CivilTime, DAY_S};
use days::DayFilter;
pub use walk::RuleWalk;

/// After this many days without an occurrence there are none. A cycle of the calendar has 146,097 days; months are counted
/// with 31 and years with 366.
pub(crate) const STEPS_MAX: i64 = 150_000;

/// One walk looks at this many days (hours, minutes, seconds that were not jumped over), which is more than there are from the year 1 to
/// 9999. Rules finer than a day that hardly ever fit end here.
pub(crate) const WALK_MAX: i64 = 4_000_000;

/// Why a rule cannot be expanded. The event is shown at its own start, and at its explicit dates.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RuleError {
    #[error("the rule counts in the calendar {0}; only GREGORIAN is known here")]
    OtherCalendar(String),
    #[error("SKIP={0} is not OMIT, BACKWARD or FORWARD")]
    UnknownSkip(String),
    #[error("SKIP stands without RSCALE")]
    SkipAlone,
    #[error("the rule has a part {0}, which is not known here")]
    UnknownPart(String),
    #[error("an event of whole days cannot recur more often than daily")]
    FinerThanADay,
    #[error("the event begins before the year 1 or after 9999")]
    OutOfRange,
    #[error("the rule has more than {0} occurrences; use UNTIL, or fewer")]
    CountTooLarge(u32),
    #[error("the rule is not valid")]
    Malformed,
    #[error("the event has more than {0} rules")]
    TooManyRules(usize),
}

/// What becomes of a day that a month or year does not have (RFC 7529, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    Omit,
    Backward,
    Forward,
}

/// A rule with the start that it counts from, ready to be asked. It knows nothing of its end (UNTIL, COUNT), which depends on a
/// zone: a time that a change of clocks skips is not counted.
#[derive(Clone, Debug)]
pub struct Rule {
    frequency: Frequency,
    interval: i64,
    start: CivilTime,
    days: DayFilter,
    skip: Skip,
    /// Of the start: its year, month, day of a week's beginning, or what [`Rule::unit_s`] divides.
    first_unit: i64,
    /// Which times of the day may be, as bits: hours, minutes, seconds. Each has one at least.
    limits: (u32, u64, u64),
    /// Hours, minutes and seconds within a period, in order; each has one at least.
    clock: (Vec<u8>, Vec<u8>, Vec<u8>),
    /// BYSETPOS.
    positions: Vec<i16>,
    /// INTERVAL never meets the times of the day.
    never: bool,
}

impl Rule {
    /// A rule that begins at `start`. Times of the day are ignored for an event of whole days (RFC 5545, section 3.3.10).
    ///
    /// # Errors
    /// [`RuleError`]
    pub fn new(rule: &RecurrenceRule, start: CivilTime, is_all_day: bool) -> Result<Self, RuleError> {
        if !(CivilTime::MIN..=CivilTime::MAX).contains(&start) {
            return Err(RuleError::OutOfRange);
        }
        if is_all_day && rule.frequency < Frequency::Daily {
            return Err(RuleError::FinerThanADay);
        }
        let days = DayFilter::new(rule, start);
        let (limits, clock) = times(rule, start, is_all_day);
        let mut compiled = Self {
            frequency: rule.frequency,
            interval: i64::from(rule.interval.max(1)),
            start,
            days,
            skip: skip(rule)?,
            first_unit: 0,
            limits,
            clock,
            positions: rule.by_position.clone(),
            never: false,
        };
        compiled.first_unit = compiled.unit_of(start);
        compiled.never = !compiled.meets_a_time();
        Ok(compiled)
    }

    /// Occurrences at or after a time, in order and without end; not before the start.
    #[must_use]
    pub fn walk_from(&self, from: CivilTime) -> RuleWalk<'_> {
        RuleWalk::new(self, from.max(self.start))
    }

    /// Whether there is an occurrence at this time.
    #[must_use]
    pub fn contains(&self, time: CivilTime) -> bool {
        time >= self.start && time <= CivilTime::MAX && !self.never && self.is_in_its_period(time)
    }

    /// Seconds of a period, where all are of the same length and begin with the clock.
    fn unit_s(&self) -> Option<i64> {
        match self.frequency {
            Frequency::Secondly => Some(1),
            Frequency::Minutely => Some(60),
            Frequency::Hourly => Some(3600),
            Frequency::Daily => Some(DAY_S),
            Frequency::Weekly | Frequency::Monthly | Frequency::Yearly => None,
        }
    }

    /// Whether steps of INTERVAL can meet a time of the day that is allowed. They meet those that differ from the start by a
    /// multiple of what INTERVAL and the day have in common.
    fn meets_a_time(&self) -> bool {
        let Some(unit) = self.unit_s().filter(|unit| *unit < DAY_S) else { return true };
        let common = usize::try_from(greatest_common_divisor(self.interval * unit, DAY_S)).unwrap_or(1);
        let first = (self.first_unit * unit).rem_euclid(DAY_S) % i64::try_from(common).unwrap_or(1);
        (first..DAY_S).step_by(common.max(1)).any(|second| self.is_time_allowed(second))
    }

    fn is_time_allowed(&self, second: i64) -> bool {
        let (hours, minutes, seconds) = self.limits;
        hours >> (second / 3600) & 1 == 1
            && minutes >> (second / 60 % 60) & 1 == 1
            && seconds >> (second % 60) & 1 == 1
    }
}

fn greatest_common_divisor(one: i64, other: i64) -> i64 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// RSCALE and SKIP (RFC 7529). Other parts that nobody knows would change what the rule gives.
fn skip(rule: &RecurrenceRule) -> Result<Skip, RuleError> {
    let mut skip = None;
    let mut scale = None;
    for (name, value) in &rule.other {
        match name.as_str() {
            "RSCALE" => scale = Some(value.to_ascii_uppercase()),
            "SKIP" => skip = Some(value.to_ascii_uppercase()),
            name if name.starts_with("X-") => {}
            name => return Err(RuleError::UnknownPart(name.to_owned())),
        }
    }
    match scale.as_deref() {
        None if skip.is_some() => return Err(RuleError::SkipAlone),
        // The second is CLDR's name for it.
        None | Some("GREGORIAN" | "GREGORY") => {}
        Some(other) => return Err(RuleError::OtherCalendar(other.to_owned())),
    }
    match skip.as_deref() {
        None | Some("OMIT") => Ok(Skip::Omit),
        Some("BACKWARD") => Ok(Skip::Backward),
        Some("FORWARD") => Ok(Skip::Forward),
        Some(other) => Err(RuleError::UnknownSkip(other.to_owned())),
    }
}

type Limits = (u32, u64, u64);
type Clock = (Vec<u8>, Vec<u8>, Vec<u8>);

/// Which times of the day may be, and which a period has. A part that is coarser than the frequency limits, a finer one
/// expands; what is not given is the start's (RFC 5545, section 3.3.10).
fn times(rule: &RecurrenceRule, start: CivilTime, is_all_day: bool) -> (Limits, Clock) {
    let second = start.second_of_day();
    let own = [second / 3600, second / 60 % 60, second % 60].map(crate::civil::small);
    if is_all_day {
        return ((1, 1, 1), (vec![0], vec![0], vec![0]));
    }
    let parts = [
        (&rule.by_hour, Frequency::Hourly, 23),
        (&rule.by_minute, Frequency::Minutely, 59),
        // A leap second is the one before it.
        (&rule.by_second, Frequency::Secondly, 59),
    ];
    let mut limits = [u64::MAX; 3];
    let mut clock = [vec![0], vec![0], vec![0]];
    for (((given, frequency, most), own), (limit, expanded)) in
        parts.into_iter().zip(own).zip(limits.iter_mut().zip(clock.iter_mut()))
    {
        let mut numbers: Vec<u8> =
            given.iter().map(|number| crate::civil::small(i64::from(*number).clamp(0, most))).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let bits = numbers.iter().fold(0, |bits, number| bits | 1_u64 << number);
        if rule.frequency <= frequency {
            *limit = if numbers.is_empty() { u64::MAX } else { bits };
        } else {
            *expanded = if numbers.is_empty() { vec![own] } else { numbers };
        }
    }
    let [hour_limits, minute_limits, second_limits] = limits;
    let [hours, minutes, seconds] = clock;
    let hour_limits = u32::try_from(hour_limits & 0xff_ffff).unwrap_or(u32::MAX);
    ((hour_limits, minute_limits, second_limits), (hours, minutes, seconds))
}
