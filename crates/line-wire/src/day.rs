//! A day of the calendar, which each protocol writes in a way of its own.

/// Days in 400 years, after which days of the month and of the week fall alike.
const CYCLE_DAYS: i64 = 146_097;

/// From 1 March of the year 0 to 1 January 1970.
const MARCH_OF_YEAR_0: i64 = -719_468;

/// A day of the Gregorian calendar, of the years 0 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Day {
    year: u16,
    month: u8,
    day: u8,
}

impl Day {
    /// A day; `None` if there is no such day.
    #[must_use]
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let is_day =
            (1..=12).contains(&month) && (1..=month_length(i64::from(year), month)).contains(&i64::from(day));
        (is_day && year <= 9999).then_some(Self { year, month, day })
    }

    /// Year, month and day, from 1.
    #[must_use]
    pub fn parts(&self) -> (u16, u8, u8) {
        (self.year, self.month, self.day)
    }
}

/// Days since 1 January 1970. The month counts from 1.
#[must_use]
pub fn day_number(year: i64, month: u8, day: u8) -> i64 {
    // Counted from March, so that the day which leap years have is the last one of a year.
    let (year, month) =
        if month > 2 { (year, i64::from(month) - 3) } else { (year - 1, i64::from(month) + 9) };
    let cycle = year.div_euclid(400);
    let year = year.rem_euclid(400);
    // Months from March have 31, 30, 31, 30, 31 days, again and again: 153 in five.
    let day_of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    cycle * CYCLE_DAYS + year * 365 + year / 4 - year / 100 + day_of_year + MARCH_OF_YEAR_0
}

/// Year, month and day of a day since 1 January 1970.
#[must_use]
pub fn date_of(day: i64) -> (i64, u8, u8) {
    let day = day - MARCH_OF_YEAR_0;
    let cycle = day.div_euclid(CYCLE_DAYS);
    let day = day.rem_euclid(CYCLE_DAYS);
    // Leap days that have passed: one in 4 years, none in 100, the last day of the 400.
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (cycle * 400 + year, small(month), small(day_of_month))
}

/// Whether the year has a 29 February.
#[must_use]
pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days of a year.
#[must_use]
pub fn year_length(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

/// Days of a month, which counts from 1.
#[must_use]
pub fn month_length(year: i64, month: u8) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// How many days after Monday a day is: 0 to 6.
#[must_use]
pub fn weekday_of(day: i64) -> u8 {
    // 1 January 1970 was a Thursday.
    small((day + 3).rem_euclid(7))
}

/// What is known to be below 256.
fn small(number: i64) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::Day;

    #[test]
    fn there_is_a_day_or_there_is_none() {
        for (year, month, day) in
            [(2024, 2, 29), (2000, 2, 29), (2023, 2, 28), (0, 1, 1), (9999, 12, 31), (2026, 4, 30)]
        {
            assert_eq!(Day::new(year, month, day).map(|found| found.parts()), Some((year, month, day)));
        }
        for (year, month, day) in [
            (2023, 2, 29),
            (1900, 2, 29),
            (2026, 4, 31),
            (2026, 13, 1),
            (2026, 0, 1),
            (2026, 1, 0),
            (10_000, 1, 1),
        ] {
            assert_eq!(Day::new(year, month, day), None);
        }
    }
}
