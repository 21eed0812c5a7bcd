//! Time zones as the original writes them: `Z=5$DO=1$DL=4 1 1 10 -1 1$ZN=Eastern`.
//!
//! `Z` is what must be added to a clock there to get UTC, in hours, or with minutes as `3005` for 5 hours and 30
//! minutes; `DO` whether summer time is observed; `DL` when: month, week (-1 is the last) and weekday (1 is
//! Sunday) of its beginning and its end; `ZN` a name. Other parts mean nothing here.

use std::fmt::Write;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use smol_str::format_smolstr;

use super::time::time;
use super::time_format::{Clock, TimeFormat};
use super::{Arguments, Function, flags};
use crate::datetime::DateTime;
use crate::machine::{Fault, Machine, MachineResult};
use crate::value::{Text, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    time(
        "@Zone",
        zone_of,
        "[date-time]",
        "The hours that must be added to a clock of the server to get UTC, now or at a moment: 5 for New York, -1 for \
         Berlin; with .1 where summer time is observed, and the minutes before the hours where there are some: \
         -3005 for India. 0 for a date or a time of day.",
        &[("@Zone([2026-11-21 10:00])", "0"), ("@Zone", "0")],
        flags::SERVER | flags::NOW_IF_NOT_GIVEN,
    ),
    time(
        "@GetCurrentTimeZone",
        current_zone,
        "",
        "The time zone of the server, as @TimeToTextInZone takes it.",
        &[("@GetCurrentTimeZone", r#""Z=0$DO=0$ZN=GMT""#)],
        flags::SERVER,
    ),
    time(
        "@TimeToTextInZone",
        to_text_in_zone,
        "date-time; zone; [format]",
        "A date-time as @Text shows it, by the clocks of a time zone, with its offset from UTC. A zone is written \
         as the original does: Z=5$DO=1$DL=4 1 1 10 -1 1 is 5 hours behind UTC, with summer time from the first \
         Sunday of April to the last of October.",
        &[
            (
                r#"@TimeToTextInZone([2026-11-21T15:00:00Z]; "Z=5$DO=1$DL=4 1 1 10 -1 1$ZN=Eastern")"#,
                r#""2026-11-21 10:00:00-05:00""#,
            ),
            (
                r#"@TimeToTextInZone([2026-07-01T15:00:00Z]; "Z=5$DO=1$DL=4 1 1 10 -1 1"; "D0T1")"#,
                r#""2026-07-01 11:00-04:00""#,
            ),
        ],
        flags::FORMAT,
    ),
    time(
        "@TimeZoneToText",
        zone_to_text,
        "zone; [form]",
        "A time zone for people: its offset from UTC in winter and the name that it has in it; in the form S the \
         offset alone; in the form A the words Local time if it is the zone of the server.",
        &[
            (r#"@TimeZoneToText("Z=5$DO=1$DL=4 1 1 10 -1 1$ZN=Eastern")"#, r#""(GMT-05:00) Eastern""#),
            (r#"@TimeZoneToText("Z=-3005$DO=0"; "S")"#, r#""GMT+05:30""#),
            (r#"@TimeZoneToText(@GetCurrentTimeZone; "A")"#, r#""Local time""#),
        ],
        flags::SERVER,
    ),
];

/// What looking for a zone's rules costs besides its text, in steps.
const ZONE_STEPS: usize = 50;

/// When summer time begins, or ends.
#[derive(Clone, Copy, Debug)]
struct Turn {
    month: u8,
    /// 5 is the last.
    week: u8,
    /// From 0 for Sunday.
    weekday: u8,
}

/// A time zone as the original writes it.
#[derive(Clone, Copy, Debug)]
struct Zone<'z> {
    /// Of its clocks in winter, ahead of UTC.
    minutes: i32,
    summer: Option<(Turn, Turn)>,
    name: &'z str,
}

impl<'z> Zone<'z> {
    fn read(text: &'z str) -> Option<Self> {
        let part = |wanted: &str| {
            let mut parts = text.split('$').filter_map(|part| part.split_once('='));
            parts.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
        };
        let summer = match part("DO") {
            Some("1") => Some(turns(part("DL")?)?),
            _ => None,
        };
        Some(Self { minutes: -minutes(part("Z")?)?, summer, name: part("ZN").unwrap_or("") })
    }

    /// The zone with its rules. The clocks are changed at 2:00, as the original and POSIX have it.
    fn rules(self) -> Option<TimeZone> {
        let Some((begins, ends)) = self.summer else {
            return Offset::from_seconds(self.minutes * 60).ok().map(TimeZone::fixed);
        };
        let behind = -self.minutes;
        let sign = if behind < 0 { "-" } else { "" };
        let mut posix = format!("STD{sign}{}:{:02}DST", behind.abs() / 60, behind.abs() % 60);
        for Turn { month, week, weekday } in [begins, ends] {
            // Writing into a text cannot fail.
            let _ = write!(posix, ",M{month}.{week}.{weekday}");
        }
        TimeZone::posix(&posix).ok()
    }

    /// `GMT-05:00`
    fn offset(self) -> Text {
        let sign = if self.minutes < 0 { '-' } else { '+' };
        format_smolstr!("GMT{sign}{:02}:{:02}", self.minutes.abs() / 60, self.minutes.abs() % 60)
    }
}

/// `5`, `-1`, or minutes and hours `-3005`.
fn minutes(text: &str) -> Option<i32> {
    let number: i32 = text.parse().ok()?;
    let (minutes, hours) = if number.abs() < 100 { (0, number) } else { (number / 100, number % 100) };
    (hours.abs() <= 24 && minutes.abs() < 60).then_some(hours * 60 + minutes)
}

/// `4 1 1 10 -1 1`
fn turns(text: &str) -> Option<(Turn, Turn)> {
    let mut numbers = text.split_whitespace().map(|number| number.parse::<i8>().ok());
    let mut turn = || {
        let (month, week, weekday) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let week = if week == -1 { 5 } else { week };
        let fits = (1..=12).contains(&month) && (1..=5).contains(&week) && (1..=7).contains(&weekday);
        let unsigned = |number: i8| u8::try_from(number).ok();
        fits.then_some(Turn {
            month: unsigned(month)?,
            week: unsigned(week)?,
            weekday: unsigned(weekday - 1)?,
        })
    };
    Some((turn()?, turn()?))
}

/// The time zone that an argument tells.
fn zone<'z>(machine: &mut Machine<'_>, arguments: &Arguments<'_>, text: &'z Text) -> MachineResult<Zone<'z>> {
    machine.charge_text(text.len())?;
    machine.charge(ZONE_STEPS)?;
    Zone::read(text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        let message = format!("'{shown}' is not a time zone like Z=5$DO=1$DL=4 1 1 10 -1 1");
        arguments.message(message).into()
    })
}

/// The time zone that an argument tells, with its rules.
pub(super) fn rules(
    machine: &mut Machine<'_>,
    arguments: &Arguments<'_>,
    index: usize,
) -> MachineResult<TimeZone> {
    let text = arguments.text(index)?;
    let rules = zone(machine, arguments, text)?.rules();
    rules.ok_or_else(|| arguments.message("the time zone's summer time cannot be reckoned").into())
}

fn zone_of(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    if arguments.count() == 0 {
        return Ok(Value::number(zone_number(machine.zone()?, machine.now()?)));
    }
    let times = arguments.times(machine, 0)?;
    machine.charge(times.len())?;
    let zone = machine.zone()?;
    Ok(Value::Number(times.map(|time| match time.start() {
        DateTime::Moment(moment) => zone_number(zone, moment),
        DateTime::Date(_) | DateTime::Time(_) | DateTime::Range(_) => 0.0,
    })))
}

/// `-3009.1` for 9 hours and 30 minutes ahead of UTC, with summer time.
fn zone_number(zone: &TimeZone, moment: Timestamp) -> f64 {
    let info = zone.to_offset_info(moment);
    let is_summer = info.dst().is_dst();
    // The number is that of winter; in summer clocks are an hour further ahead.
    let minutes = info.offset().seconds() / 60 - if is_summer { 60 } else { 0 };
    let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
    let size = f64::from(rest * 100 + hours) + if is_summer { 0.1 } else { 0.0 };
    if minutes > 0 { -size } else { size }
}

fn current_zone(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let offset = machine.zone()?.to_fixed_offset().map_err(|_| {
        arguments.message("the server's time zone has rules that cannot be written in the original's way")
    })?;
    let minutes = -offset.seconds() / 60;
    let (hours, rest) = (minutes / 60, minutes % 60);
    let name = if minutes == 0 { "$ZN=GMT" } else { "" };
    Ok(Value::text(format_smolstr!("Z={}$DO=0{name}", rest * 100 + hours)))
}

fn to_text_in_zone(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let times = arguments.times(machine, 0)?;
    machine.charge(times.len())?;
    let rules = rules(machine, arguments, 1)?;
    let format = if arguments.count() > 2 { arguments.text(2)?.as_str() } else { "" };
    let format = TimeFormat::read(format).map_err(|message| arguments.message(message))?.with_offset();
    let clock = Clock { machine, zone: Some(&rules) };
    times.try_map(|time| format.show(&clock, *time)).map(Value::Text)
}

fn zone_to_text(machine: &mut Machine<'_>, arguments: &Arguments<'_>) -> MachineResult {
    let form = if arguments.count() > 1 { arguments.text(1)?.as_str() } else { "" };
    let asks = |letter: char| form.chars().any(|given| given.eq_ignore_ascii_case(&letter));
    if let Some(other) = form.chars().find(|letter| !"sSaA ".contains(*letter)) {
        return Err(arguments.message(format!("'{other}' is not a form of a time zone; use S or A")).into());
    }
    let texts = arguments.texts(0)?.try_map(|text| {
        let zone = zone(machine, arguments, text)?;
        let local = machine.zone()?.to_fixed_offset().ok().map(|offset| offset.seconds() / 60);
        Ok::<_, Fault>(match zone {
            Zone { minutes, summer: None, .. } if asks('A') && local == Some(minutes) => {
                Text::new_static("Local time")
            }
            _ if asks('S') => zone.offset(),
            _ => Text::new(format!("({}) {}", zone.offset(), zone.name).trim_end()),
        })
    })?;
    Ok(Value::Text(texts))
}
