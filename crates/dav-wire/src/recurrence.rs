//! Rules of recurrence, as they are written (RFC 5545, section 3.3.10; RFC 7529). What they give is not computed here.

use std::fmt;

use crate::value::{DateTime, ValueError, digits};

/// Numbers in one list.
const LIST_MAX: usize = 400;

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Frequency {
    Secondly,
    Minutely,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

const FREQUENCIES: [(&str, Frequency); 7] = [
    ("SECONDLY", Frequency::Secondly),
    ("MINUTELY", Frequency::Minutely),
    ("HOURLY", Frequency::Hourly),
    ("DAILY", Frequency::Daily),
    ("WEEKLY", Frequency::Weekly),
    ("MONTHLY", Frequency::Monthly),
    ("YEARLY", Frequency::Yearly),
];

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("MO", Weekday::Monday),
    ("TU", Weekday::Tuesday),
    ("WE", Weekday::Wednesday),
    ("TH", Weekday::Thursday),
    ("FR", Weekday::Friday),
    ("SA", Weekday::Saturday),
    ("SU", Weekday::Sunday),
];

impl Weekday {
    fn parse(text: &str) -> Result<Self, ValueError> {
        let found = WEEKDAYS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, day)| *day).ok_or(ValueError)
    }

    /// How many days after Monday it is: 0 to 6.
    #[must_use]
    pub fn from_monday(self) -> u8 {
        self as u8
    }

    /// Two letters: `MO`.
    #[must_use]
    pub fn name(self) -> &'static str {
        WEEKDAYS.iter().find(|(_, day)| *day == self).map_or("MO", |(name, _)| *name)
    }
}

/// When a rule ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum RuleEnd {
    #[default]
    Never,
    Count(u32),
    Until(DateTime),
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RecurrenceRule {
    pub frequency: Frequency,
    pub end: RuleEnd,
    /// Not 0.
    pub interval: u32,
    pub by_second: Vec<i16>,
    pub by_minute: Vec<i16>,
    pub by_hour: Vec<i16>,
    /// Days, with which one of the month or year, from its end where it is negative; 0 is every one.
    pub by_day: Vec<(i16, Weekday)>,
    pub by_month_day: Vec<i16>,
    pub by_year_day: Vec<i16>,
    pub by_week: Vec<i16>,
    pub by_month: Vec<i16>,
    pub by_position: Vec<i16>,
    pub week_start: Option<Weekday>,
    /// Parts that are not known here: RSCALE and SKIP (RFC 7529), in capitals.
    pub other: Vec<(String, String)>,
}

impl RecurrenceRule {
    /// Every so often, without an end.
    #[must_use]
    pub fn every(frequency: Frequency) -> Self {
        Self {
            frequency,
            end: RuleEnd::Never,
            interval: 1,
            by_second: Vec::new(),
            by_minute: Vec::new(),
            by_hour: Vec::new(),
            by_day: Vec::new(),
            by_month_day: Vec::new(),
            by_year_day: Vec::new(),
            by_week: Vec::new(),
            by_month: Vec::new(),
            by_position: Vec::new(),
            week_start: None,
            other: Vec::new(),
        }
    }

    /// Reads a rule. Each part may come once, in any order.
    ///
    /// # Errors
    /// [`ValueError`]
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let mut rule = Self::every(Frequency::Daily);
        let mut seen: Vec<String> = Vec::new();
        for part in text.trim_end_matches(';').split(';') {
            // Some programs write blanks around parts and numbers.
            let (name, value) = part.split_once('=').ok_or(ValueError)?;
            let (name, value) = (name.trim().to_ascii_uppercase(), value.trim());
            if seen.contains(&name) || seen.len() >= 32 {
                return Err(ValueError);
            }
            rule.set(&name, value)?;
            seen.push(name);
        }
        let has = |name: &str| seen.iter().any(|seen| seen == name);
        if has("FREQ") && !(has("COUNT") && has("UNTIL")) { Ok(rule) } else { Err(ValueError) }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ValueError> {
        match name {
            "FREQ" => {
                let found = FREQUENCIES.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
                self.frequency = found.map(|(_, frequency)| *frequency).ok_or(ValueError)?;
            }
            "COUNT" => self.end = RuleEnd::Count(number(value)?),
            "UNTIL" => self.end = RuleEnd::Until(DateTime::parse(value)?),
            "INTERVAL" => self.interval = number(value)?,
            "BYSECOND" => self.by_second = list(value, 0, 60)?,
            "BYMINUTE" => self.by_minute = list(value, 0, 59)?,
            "BYHOUR" => self.by_hour = list(value, 0, 23)?,
            "BYDAY" => self.by_day = days(value)?,
            "BYMONTHDAY" => self.by_month_day = list(value, -31, 31)?,
            "BYYEARDAY" => self.by_year_day = list(value, -366, 366)?,
            "BYWEEKNO" => self.by_week = list(value, -53, 53)?,
            "BYMONTH" if value.contains(['L', 'l']) => self.keep(name, value)?,
            "BYMONTH" => self.by_month = list(value, 1, 12)?,
            "BYSETPOS" => self.by_position = list(value, -366, 366)?,
            "WKST" => self.week_start = Some(Weekday::parse(value)?),
            _ => self.keep(name, value)?,
        }
        Ok(())
    }

    fn keep(&mut self, name: &str, value: &str) -> Result<(), ValueError> {
        let valid = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !value.is_empty()
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b',' | b'+'));
        if !valid {
            return Err(ValueError);
        }
        self.other.push((name.to_owned(), value.to_owned()));
        Ok(())
    }
}

impl fmt::Display for RecurrenceRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frequency = FREQUENCIES.iter().find(|(_, frequency)| *frequency == self.frequency);
        write!(out, "FREQ={}", frequency.map_or("DAILY", |(name, _)| *name))?;
        match &self.end {
            RuleEnd::Never => {}
            RuleEnd::Count(count) => write!(out, ";COUNT={count}")?,
            RuleEnd::Until(time) => write!(out, ";UNTIL={time}")?,
        }
        if self.interval != 1 {
            write!(out, ";INTERVAL={}", self.interval)?;
        }
        let lists = [
            ("BYSECOND", &self.by_second),
            ("BYMINUTE", &self.by_minute),
            ("BYHOUR", &self.by_hour),
            ("BYMONTHDAY", &self.by_month_day),
            ("BYYEARDAY", &self.by_year_day),
            ("BYWEEKNO", &self.by_week),
            ("BYMONTH", &self.by_month),
            ("BYSETPOS", &self.by_position),
        ];
        for (name, numbers) in lists.iter().filter(|(_, numbers)| !numbers.is_empty()) {
            let numbers: Vec<String> = numbers.iter().map(i16::to_string).collect();
            write!(out, ";{name}={}", numbers.join(","))?;
        }
        if !self.by_day.is_empty() {
            let day = |(which, day): &(i16, Weekday)| match which {
                0 => day.name().to_owned(),
                which => format!("{which}{}", day.name()),
            };
            let days: Vec<String> = self.by_day.iter().map(day).collect();
            write!(out, ";BYDAY={}", days.join(","))?;
        }
        if let Some(day) = self.week_start {
            write!(out, ";WKST={}", day.name())?;
        }
        self.other.iter().try_for_each(|(name, value)| write!(out, ";{name}={value}"))
    }
}

/// A number, not 0.
fn number(text: &str) -> Result<u32, ValueError> {
    u32::try_from(digits(text)?).ok().filter(|number| *number > 0).ok_or(ValueError)
}

fn signed(text: &str, least: i16, most: i16) -> Result<i16, ValueError> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = i16::try_from(digits(rest)?).map_err(|_| ValueError)?;
    let number = sign * number;
    // 0 is no day, week or position.
    if (least..=most).contains(&number) && (least == 0 || number != 0) { Ok(number) } else { Err(ValueError) }
}

fn list(text: &str, least: i16, most: i16) -> Result<Vec<i16>, ValueError> {
    let mut numbers = Vec::new();
    for number in text.split(',') {
        if numbers.len() >= LIST_MAX {
            return Err(ValueError);
        }
        numbers.push(signed(number.trim(), least, most)?);
    }
    Ok(numbers)
}

fn days(text: &str) -> Result<Vec<(i16, Weekday)>, ValueError> {
    let mut days = Vec::new();
    for day in text.split(',').map(str::trim) {
        let at = day.len().checked_sub(2).ok_or(ValueError)?;
        let (which, name) = day.split_at_checked(at).ok_or(ValueError)?;
        if days.len() >= LIST_MAX {
            return Err(ValueError);
        }
        let which = if which.is_empty() { 0 } else { signed(which, -53, 53)? };
        days.push((which, Weekday::parse(name)?));
    }
    Ok(days)
}
