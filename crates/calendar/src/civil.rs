//! Days and seconds as a wall clock shows them, as plain numbers that can be divided and compared.
//!
//! Rules count in civil time and never in UTC: a meeting at nine stays at nine when clocks change.

/// Seconds of a day.
pub const DAY_S: i64 = 86_400;

/// Days in 400 years, after which days of the month and of the week fall alike.
pub(crate) const CYCLE_DAYS: i64 = 146_097;

/// From 1 March of the year 0 to 1 January 1970.
const MARCH_OF_YEAR_0: i64 = -719_468;

/// A time that a clock on a wall shows: seconds since 1 January 1970, 0:00, in whatever zone the clock hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CivilTime(pub i64);

impl CivilTime {
    /// 1 January of the year 1, 0:00:00.
    pub const MIN: Self = Self(-62_135_596_800);
    /// 31 December 9999, 23:59:59.
    pub const MAX: Self = Self(253_402_300_799);

    /// From a date, whose day counts from 1, and a second of the day.
    #[must_use]
    pub fn new(year: i64, month: u8, day: u8, second_of_day: i64) -> Self {
        Self(day_number(year, month, day) * DAY_S + second_of_day)
    }

    /// Days since 1 January 1970.
    #[must_use]
    pub fn day(self) -> i64 {
        self.0.div_euclid(DAY_S)
    }

    /// Seconds since the day began.
    #[must_use]
    pub fn second_of_day(self) -> i64 {
        self.0.rem_euclid(DAY_S)
    }

    /// Year, month and day.
    #[must_use]
    pub fn date(self) -> (i64, u8, u8) {
        date_of(self.day())
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

/// What is known to be below 256.
pub(crate) fn small(number: i64) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_day_of_ten_thousand_years_has_its_date() {
        let mut date = jiff::civil::date(1, 1, 1);
        let mut day = CivilTime::MIN.day();
        while day <= CivilTime::MAX.day() {
            let (year, month, of_month) = date_of(day);
            assert_eq!(
                (year, month, of_month),
                (i64::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs())
            );
            assert_eq!(day_number(year, month, of_month), day);
            assert_eq!(weekday_of(day), date.weekday().to_monday_zero_offset().unsigned_abs());
            assert_eq!(month_length(year, month), i64::from(date.days_in_month()));
            assert_eq!(year_length(year), i64::from(date.days_in_year()));
            day += 1;
            date = date.tomorrow().unwrap_or(date);
        }
    }
}
