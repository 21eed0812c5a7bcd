//! A day of the calendar, which each protocol writes in a way of its own.

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
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            1..=12 => 31,
            _ => return None,
        };
        ((1..=days).contains(&day) && year <= 9999).then_some(Self { year, month, day })
    }

    /// Year, month and day, from 1.
    #[must_use]
    pub fn parts(&self) -> (u16, u8, u8) {
        (self.year, self.month, self.day)
    }
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
