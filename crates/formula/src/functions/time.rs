//! Dates and times.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::{Arguments, Body, Category, Function, Native, flags};
use crate::datetime::{Adjustment, DateTime, moment_of};
use crate::machine::{Fault, Machine, MachineResult};
use crate::number::{from_count, whole};
use crate::operators::pairs;
use crate::range::DateTimeRange;
use crate::value::Value;

/// A row of the table: a function of date-times.
pub(super) const fn time(
    name: &'static str,
    native: Native,
    arguments: &'static str,
    help: &'static str,
    examples: &'static [(&'static str, &'static str)],
    flags: u16,
) -> Function {
    Function { name, category: Category::Time, arguments, help, examples, flags, body: Body::Native(native) }
}

// The examples are evaluated at 2026-11-21 10:00 in UTC.
pub(super) const FUNCTIONS: &[Function] = &[
    time(
        "@Now",
        |machine, _| Ok(Value::time(machine.now()?)),
        "",
        "The date and time.",
        &[("@Now", "[2026-11-21 10:00]")],
        flags::TIME_VARIANT,
    ),
    time(
        "@Today",
        |machine, _| day(machine, 0),
        "",
        "The date.",
        &[("@Today", "[2026-11-21]")],
        flags::TIME_VARIANT,
    ),
    time(
        "@Tomorrow",
        |machine, _| day(machine, 1),
        "",
        "The date of tomorrow.",
        &[("@Tomorrow", "[2026-11-22]")],
        flags::TIME_VARIANT,
    ),
    time(
        "@Yesterday",
        |machine, _| day(machine, -1),
        "",
        "The date of yesterday.",
        &[("@Yesterday", "[2026-11-20]")],
        flags::TIME_VARIANT,
    ),
    time(
        "@Date",
        date,
        "date-time or year; [month]; [day]; [hour]; [minute]; [second]",
        "The date of a date-time, or the date or moment made of these numbers.",
        &[
            ("@Date([2026-11-21 10:00])", "[2026-11-21]"),
            (r#"@Date("2026-11-21T10:00:00Z")"#, "[2026-11-21]"),
            ("@Date(2026; 2; 28)", "[2026-02-28]"),
            ("@Date(2026; 2; 28; 23; 59; 0)", "[2026-02-28 23:59]"),
        ],
        flags::PURE,
    ),
    time(
        "@Time",
        time_of_day,
        "date-time or hour or year; [minute or month]; [second or day]; [hour]; [minute]; [second]",
        "The time of day of a date-time, or the one made of hour, minute and second.",
        &[
            ("@Time([2026-11-21 10:30])", "[10:30]"),
            ("@Time(17; 5; 9)", "[17:05:09]"),
            ("@Time(2026; 2; 28; 23; 59; 0)", "[2026-02-28 23:59]"),
        ],
        flags::PURE,
    ),
    time(
        "@Year",
        |machine, arguments| part(machine, arguments, |date, _| date.map(|date| i32::from(date.year()))),
        "date-time",
        "The year; -1 for a time of day.",
        &[
            ("@Year([2026-11-21])", "2026"),
            (r#"@Year("2026-01-31T23:59:59Z")"#, "2026"),
            ("@Year([10:00])", "-1"),
        ],
        flags::PURE,
    ),
    time(
        "@Month",
        |machine, arguments| part(machine, arguments, |date, _| date.map(|date| i32::from(date.month()))),
        "date-time",
        "The month, 1 to 12; -1 for a time of day.",
        &[("@Month([2026-11-21]:[2025-02-01])", "11:2")],
        flags::PURE,
    ),
    time(
        "@Day",
        |machine, arguments| part(machine, arguments, |date, _| date.map(|date| i32::from(date.day()))),
        "date-time",
        "The day of the month; -1 for a time of day.",
        &[("@Day([2026-11-21])", "21")],
        flags::PURE,
    ),
    time(
        "@Weekday",
        |machine, arguments| {
            part(machine, arguments, |date, _| {
                date.map(|date| i32::from(date.weekday().to_sunday_one_offset()))
            })
        },
        "date-time",
        "The day of the week, 1 for Sunday to 7 for Saturday; -1 for a time of day.",
        &[("@Weekday([2026-11-21])", "7"), ("@Weekday([2026-11-22])", "1")],
        flags::PURE,
    ),
    time(
        "@Hour",
        |machine, arguments| part(machine, arguments, |_, time| time.map(|time| i32::from(time.hour()))),
        "date-time",
        "The hour, 0 to 23; -1 for a date.",
        &[("@Hour([5:30 PM])", "17"), ("@Hour([2026-11-21])", "-1")],
        flags::PURE,
    ),
    time(
        "@Minute",
        |machine, arguments| part(machine, arguments, |_, time| time.map(|time| i32::from(time.minute()))),
        "date-time",
        "The minute, 0 to 59; -1 for a date.",
        &[("@Minute([5:30 PM])", "30")],
        flags::PURE,
    ),
    time(
        "@Second",
        |machine, arguments| part(machine, arguments, |_, time| time.map(|time| i32::from(time.second()))),
        "date-time",
        "The second, 0 to 59; -1 for a date.",
        &[("@Second([10:20:30])", "30")],
        flags::PURE,
    ),
    time(
        "@Adjust",
        adjust,
        "date-time; years; months; days; hours; minutes; seconds; [clock]",
        "The date-time moved by so much, from the seconds to the years; a day that a month lacks becomes its \
         last. Days, months and years keep the time of day, by the server's clock or with [InGMT] in UTC.",
        &[
            ("@Adjust([2006-02-02]; 0; 2; 28; 0; 0; 0)", "[2006-05-02]"),
            ("@Adjust([2026-01-31]; 0; 1; 0; 0; 0; 0)", "[2026-02-28]"),
            ("@Adjust([2026-11-21 10:00]; 0; 0; -1; 0; 30; 0)", "[2026-11-20 10:30]"),
            ("@Adjust([2026-11-21 - 2026-11-23]; 0; 0; 7; 0; 0; 0)", "[2026-11-28 - 2026-11-30]"),
        ],
        flags::PURE,
    ),
    time(
        "@TimeMerge",
        time_merge,
        "date; time of day; [zone]",
        "The moment made of a date and a time of day, by the server's clock or that of a zone as @TimeToTextInZone \
         takes it.",
        &[
            ("@TimeMerge([2026-11-21]:[2026-11-22]; [10:00])", "[2026-11-21 10:00]:[2026-11-22 10:00]"),
            (r#"@TimeMerge([2026-11-21]; [10:00]; "Z=5$DO=0")"#, "[2026-11-21T15:00:00Z]"),
        ],
        flags::PURE,
    ),
    time(
        "@BusinessDays",
        business_days,
        "start; end; [days of the week]; [dates]",
        "How many days lie from start to end, both included, without these days of the week (1 is Sunday) and \
         these dates or ranges of dates; -1 if the end is before the start.",
        &[
            ("@BusinessDays([2026-11-01]; [2026-11-30]; 1:7)", "21"),
            ("@BusinessDays([2026-11-01]; [2026-11-30]; 1:7; [2026-11-26])", "20"),
            ("@BusinessDays([2026-11-02]:[2026-11-02]; [2026-11-01]:[2026-11-03])", "(-1):2"),
            ("@BusinessDays([2026-12-21]; [2026-12-31]; 1:7; [2026-12-24 - 2026-12-28])", "6"),
        ],
        flags::PURE,
    ),
];

fn day(machine: &Machine<'_>, offset: i64) -> MachineResult {
    let today = machine.zone()?.to_datetime(machine.now()?).date();
    Ok(Value::time(today.saturating_add(offset.days())))
}

/// The date and time of day of a time, of a range those of its start, asking for the time zone only where they
/// depend on it.
pub(super) fn parts(machine: &Machine<'_>, time: DateTime) -> MachineResult<(Option<Date>, Option<Time>)> {
    Ok(match time {
        DateTime::Date(date) => (Some(date), None),
        DateTime::Time(time) => (None, Some(time)),
        DateTime::Moment(moment) => {
            let local = machine.zone()?.to_datetime(moment);
            (Some(local.date()), Some(local.time()))
        }
        DateTime::Range(range) => return parts(machine, range.start()),
    })
}

/// What a function makes of both ends of a range, or of any other time.
fn each_end(
    arguments: &Arguments<'_>,
    time: DateTime,
    apply: impl Fn(DateTime) -> MachineResult<DateTime>,
) -> MachineResult<DateTime> {
    let DateTime::Range(range) = time else { return apply(time) };
    DateTimeRange::between(apply(range.start())?, apply(range.end())?)
        .map(DateTime::Range)
        .map_err(|fault| arguments.message(fault.message()).into())
}

fn part(
    machine: &mut Machine<'_>,
    arguments: &Arguments<'_>,
    take: fn(Option<Date>, Option<Time>) -> Option<i32>,
) -> MachineResult {
    let times = arguments.times(machine, 0)?;
    machine.charge(times.len())?;
    let numbers = times.try_map(|time| {
        let (date, time) = parts(machine, *time)?;
        Ok::<_, Fault>(f64::from(take(date, time).unwrap_or(-1)))
    })?;
    Ok(Value::Number(numbers))
}

fn date(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    match arguments.count() {
        1 => {
            let times = arguments.times(machine, 0)?;
            machine.charge(times.len())?;
            let date_of = |time: DateTime| match parts(machine, time)?.0 {
                Some(date) => Ok(DateTime::Date(date)),
                None => Err(Fault::from(arguments.message("a time of day has no date"))),
            };
            let dates = times.try_map(|time| each_end(arguments, *time, date_of))?;
            Ok(Value::Time(dates))
        }
        3 => Ok(Value::time(date_of(arguments)?)),
        6 => moment(machine, arguments).map(Value::time),
        _ => Err(arguments.message("it takes a date-time, or 3 or 6 numbers").into()),
    }
}

fn time_of_day(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    match arguments.count() {
        1 => {
            let times = arguments.times(machine, 0)?;
            machine.charge(times.len())?;
            let clock_of = |time: DateTime| match parts(machine, time)?.1 {
                Some(time) => Ok(DateTime::Time(time)),
                None => Err(Fault::from(arguments.message("a date has no time of day"))),
            };
            let clocks = times.try_map(|time| each_end(arguments, *time, clock_of))?;
            Ok(Value::Time(clocks))
        }
        3 => Ok(Value::time(clock_of(arguments, 0)?)),
        6 => moment(machine, arguments).map(Value::time),
        _ => Err(arguments.message("it takes a date-time, or 3 or 6 numbers").into()),
    }
}

fn small<N: TryFrom<i64>>(arguments: &Arguments<'_>, index: usize) -> MachineResult<N> {
    let number = arguments.whole(index)?;
    N::try_from(number).map_err(|_| arguments.message(format!("{number} is outside the calendar")).into())
}

fn date_of(arguments: &Arguments<'_>) -> MachineResult<Date> {
    let (year, month, day): (i16, i8, i8) =
        (small(arguments, 0)?, small(arguments, 1)?, small(arguments, 2)?);
    Date::new(year, month, day)
        .map_err(|_| arguments.message(format!("there is no date {year:04}-{month:02}-{day:02}")).into())
}

fn clock_of(arguments: &Arguments<'_>, from: usize) -> MachineResult<Time> {
    let (hour, minute, second): (i8, i8, i8) =
        (small(arguments, from)?, small(arguments, from + 1)?, small(arguments, from + 2)?);
    Time::new(hour, minute, second, 0).map_err(|_| {
        arguments.message(format!("there is no time of day {hour:02}:{minute:02}:{second:02}")).into()
    })
}

fn moment(machine: &Machine<'_>, arguments: &Arguments<'_>) -> MachineResult<Timestamp> {
    let local = date_of(arguments)?.to_datetime(clock_of(arguments, 3)?);
    moment_of(local, machine.zone()?)
        .ok_or_else(|| arguments.message("the date is outside the calendar").into())
}

fn adjust(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let times = arguments.times(machine, 0)?;
    machine.charge(times.len())?;
    let in_utc = arguments.has_keyword(7, "INGMT");
    let adjustment = Adjustment {
        years: arguments.whole(1)?,
        months: arguments.whole(2)?,
        days: arguments.whole(3)?,
        hours: arguments.whole(4)?,
        minutes: arguments.whole(5)?,
        seconds: arguments.whole(6)?,
    };
    let moved = |time: DateTime| {
        let moved = match time {
            // Needs no zone, and can therefore be reckoned when the formula is compiled.
            DateTime::Date(_) if adjustment.is_whole_days() => adjustment.apply(time, &TimeZone::UTC),
            _ if in_utc => adjustment.apply(time, &TimeZone::UTC),
            _ => adjustment.apply(time, machine.zone()?),
        };
        moved.ok_or_else(|| Fault::from(arguments.message("the result is outside the calendar")))
    };
    let results = times.try_map(|time| each_end(arguments, *time, moved))?;
    Ok(Value::Time(results))
}

fn time_merge(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let (dates, clocks) = (arguments.times(machine, 0)?, arguments.times(machine, 1)?);
    machine.charge_list(dates.len().max(clocks.len()))?;
    let rules = if arguments.count() > 2 { Some(super::zone::rules(machine, arguments, 2)?) } else { None };
    let mut results = Vec::with_capacity(dates.len().max(clocks.len()));
    for (date, clock) in pairs(&dates, &clocks) {
        if [date, clock].iter().any(|time| matches!(time, DateTime::Range(_))) {
            return Err(arguments.message("it takes a date and a time of day, not ranges of them").into());
        }
        let (Some(date), Some(clock)) = (parts(machine, *date)?.0, parts(machine, *clock)?.1) else {
            return Err(arguments.message("it takes a date and a time of day").into());
        };
        let zone = rules.as_ref().map_or_else(|| machine.zone(), Ok)?;
        let Some(moment) = moment_of(date.to_datetime(clock), zone) else {
            return Err(arguments.message("the date is outside the calendar").into());
        };
        results.push(DateTime::Moment(moment));
    }
    Ok(Value::times(results))
}

fn business_days(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let (starts, ends) = (arguments.times(machine, 0)?, arguments.times(machine, 1)?);
    let mut free = FreeDays::default();
    if arguments.get(2).is_some_and(|days| !days.is_empty_text()) {
        for number in arguments.numbers(2)?.iter() {
            if let Some(day) =
                usize::try_from(whole(number.round())).ok().and_then(|day| free.weekdays.get_mut(day))
            {
                *day = true;
            }
        }
    }
    if arguments.get(3).is_some_and(|dates| !dates.is_empty_text()) {
        for time in arguments.times(machine, 3)?.iter() {
            if let Some((first, last)) = days(machine, *time)? {
                machine.charge_growth(free.dates.len(), count_of_days(first, last))?;
                free.dates.extend(first.series(1.day()).take_while(|date| *date <= last));
            }
        }
        free.dates.sort_unstable();
        free.dates.dedup();
    }
    let length = starts.len().max(ends.len());
    machine.charge_list(length.saturating_mul(1 + free.dates.len()))?;
    let mut results = Vec::with_capacity(length);
    for (start, end) in pairs(&starts, &ends) {
        results.push(match (parts(machine, start.start())?.0, parts(machine, end.end())?.0) {
            (Some(start), Some(end)) if start <= end => free.days_left(start, end),
            _ => -1.0,
        });
    }
    Ok(Value::numbers(results))
}

/// The first and the last day of a time; none for times of day, which are of no day.
pub(super) fn days(machine: &Machine<'_>, time: DateTime) -> MachineResult<Option<(Date, Date)>> {
    let (first, last) = (parts(machine, time.start())?.0, parts(machine, time.end())?.0);
    Ok(first.zip(last))
}

/// How many days there are from the first to the last, both included.
pub(super) fn count_of_days(first: Date, last: Date) -> usize {
    first.until(last).ok().and_then(|span| usize::try_from(span.get_days()).ok()).map_or(0, |days| days + 1)
}

/// Days that are no business days.
#[derive(Default)]
struct FreeDays {
    /// By the number of the day, 1 for Sunday; the first is not used.
    weekdays: [bool; 8],
    /// In order, each once.
    dates: Vec<Date>,
}

impl FreeDays {
    fn is_free(&self, weekday: Weekday) -> bool {
        let number = usize::try_from(weekday.to_sunday_one_offset()).unwrap_or(0);
        self.weekdays.get(number).copied().unwrap_or(false)
    }

    fn days_left(&self, start: Date, end: Date) -> f64 {
        let days = i64::from(start.until(end).map_or(0, |span| span.get_days())) + 1;
        let in_week = self.weekdays.iter().skip(1).filter(|free| !**free).count();
        let mut count = days / 7 * i64::try_from(in_week).unwrap_or(0);
        let mut weekday = start.weekday();
        for _ in 0..days % 7 {
            count += i64::from(!self.is_free(weekday));
            weekday = weekday.next();
        }
        let holidays =
            self.dates.iter().filter(|date| (start..=end).contains(*date) && !self.is_free(date.weekday()));
        from_count(usize::try_from(count).unwrap_or(0)) - from_count(holidays.count())
    }
}
