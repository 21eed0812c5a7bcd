//! How `@Text` shows a date-time.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use smol_str::format_smolstr;

use crate::datetime::DateTime;
use crate::machine::{Machine, MachineResult};
use crate::value::Text;

/// The format of a date-time, in the original's letters: D for the date, T for the time of day, Z for
/// the zone, S for which of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeFormat {
    date: u8,
    time: u8,
    zone: u8,
    parts: Option<u8>,
}

/// By which clocks date-times are shown.
pub(super) struct Clock<'c> {
    pub(super) machine: &'c Machine<'c>,
    /// If not those of the evaluation.
    pub(super) zone: Option<&'c TimeZone>,
}

impl Clock<'_> {
    fn zone(&self) -> MachineResult<&TimeZone> {
        self.zone.map_or_else(|| self.machine.zone(), Ok)
    }
}

/// Whether a format shows a day as it relates to today.
pub(super) fn needs_today(format: &str) -> bool {
    TimeFormat::read(format).is_ok_and(|format| format.date == 1 || format.parts == Some(3))
}

impl TimeFormat {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut format = Self::default();
        let mut characters = text.chars().filter(|character| *character != ' ');
        while let Some(letter) = characters.next() {
            let digit = characters.next().unwrap_or(' ');
            let number = digit.to_digit(10).and_then(|number| u8::try_from(number).ok());
            match (letter.to_ascii_uppercase(), number) {
                ('D', Some(number @ 0..=3)) => format.date = number,
                ('T', Some(number @ 0..=1)) => format.time = number,
                ('Z', Some(number @ 0..=2)) => format.zone = number,
                ('S', Some(number @ 0..=3)) => format.parts = Some(number),
                ('S', None) if digit.eq_ignore_ascii_case(&'x') => format.parts = None,
                _ => {
                    return Err(format!(
                        "'{letter}{digit}' has no meaning in the format of a date-time; use D0 to D3, T0, T1, \
                         Z0 to Z2 and S0 to S3"
                    ));
                }
            }
        }
        Ok(format)
    }

    /// The same, with the offset from UTC behind a time of day.
    pub(super) const fn with_offset(self) -> Self {
        Self { zone: 2, ..self }
    }

    pub(super) fn show(self, clock: &Clock<'_>, value: DateTime) -> MachineResult<Text> {
        let (date, time, offset) = match value {
            DateTime::Date(date) => (Some(date), None, None),
            DateTime::Time(time) => (None, Some(time), None),
            DateTime::Range(range) => {
                let (start, end) = (self.show(clock, range.start())?, self.show(clock, range.end())?);
                return Ok(format_smolstr!("{start} - {end}"));
            }
            DateTime::Moment(moment) => {
                let zone = clock.zone()?;
                let local = zone.to_datetime(moment);
                (Some(local.date()), Some(local.time()), Some(zone.to_offset(moment)))
            }
        };
        let date = date.filter(|_| self.parts != Some(1));
        let time = time.filter(|_| self.parts != Some(0));
        let mut result = match date {
            Some(date) => self.show_date(clock, date)?,
            None => String::new(),
        };
        if let Some(time) = time {
            if !result.is_empty() {
                result.push(' ');
            }
            result.push_str(&self.show_time(time));
            if let Some(offset) = offset.filter(|_| self.zone == 2) {
                result.push_str(&shown_offset(offset.seconds()));
            }
        }
        Ok(Text::new(result))
    }

    fn show_date(self, clock: &Clock<'_>, date: Date) -> MachineResult<String> {
        if self.date == 1 || self.parts == Some(3) {
            let today = clock.zone()?.to_datetime(clock.machine.now()?).date();
            if self.parts == Some(3) && date == today {
                return Ok("Today".to_owned());
            }
            if self.parts == Some(3) && date.tomorrow().is_ok_and(|next| next == today) {
                return Ok("Yesterday".to_owned());
            }
            if self.date == 1 && date.year() == today.year() {
                return Ok(format!("{:02}-{:02}", date.month(), date.day()));
            }
        }
        Ok(match self.date {
            2 => format!("{:02}-{:02}", date.month(), date.day()),
            3 => format!("{:04}-{:02}", date.year(), date.month()),
            _ => date.to_string(),
        })
    }

    fn show_time(self, time: Time) -> String {
        if self.time == 1 {
            format!("{:02}:{:02}", time.hour(), time.minute())
        } else {
            format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())
        }
    }
}

fn shown_offset(seconds: i32) -> String {
    let minutes = seconds.abs() / 60;
    format!("{}{:02}:{:02}", if seconds < 0 { '-' } else { '+' }, minutes / 60, minutes % 60)
}
