//! Days and seconds as a wall clock shows them, as plain numbers that can be divided and compared.
//!
//! Rules count in civil time and never in UTC: a meeting at nine stays at nine when clocks change.

pub use scrinium_line_wire::{date_of, day_number, is_leap, month_length, weekday_of, year_length};

/// Seconds of a day.
pub const DAY_S: i64 = 86_400;

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

/// What is known to be below 256.
pub(crate) fn small(number: i64) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
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
