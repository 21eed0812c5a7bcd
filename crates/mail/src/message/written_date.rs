//! Dates as mail writes them: RFC 5322 §3.3, the obsolete forms of §4.3, ISO 8601, C's `asctime`, and what stands in the
//! mail of people whose programs knew none of these.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;

use super::zones;

/// Nobody wrote mail before; what says so is damaged.
const FIRST_YEAR: i16 = 1970;

/// The year up to which a date is believed.
const LAST_YEAR: i16 = 2199;

/// A date has no more words than this.
const MOST_WORDS: usize = 24;

/// A date's moment, or why it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Seconds since 1970, UTC, and what was said of the time zone.
    At(i64, Zone),
    /// The text is there, and is no date.
    NoDate,
    /// It names a day that no mail can be of.
    Absurd,
}

/// What a date says of its time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zone {
    Known,
    /// There is none; the date was taken for UTC.
    Missing,
    /// Its name or number means nothing; the date was taken for UTC.
    Unknown,
}

/// What was found of a date so far.
#[derive(Debug, Default)]
struct Parts {
    day: Option<u32>,
    month: Option<u32>,
    year: Option<u32>,
    time: Option<(u32, u32, u32)>,
    is_afternoon: Option<bool>,
    /// Minutes east of UTC.
    offset: Option<i32>,
    has_unknown_zone: bool,
}

/// Reads the text of a `Date:` field.
pub(super) fn read(text: &str) -> Moment {
    let (plain, comments) = without_comments(text);
    let plain = plain.replace(" :", ":").replace(": ", ":");
    let mut parts = Parts::default();
    let words: Vec<&str> = plain
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty())
        .take(MOST_WORDS)
        .collect();
    let mut next = 0;
    while let Some(word) = words.get(next) {
        let taken = zones::in_words(words.get(next..).unwrap_or_default());
        if let Some((minutes, count)) = taken.filter(|_| parts.time.is_some()) {
            parts.offset.get_or_insert(minutes);
            next += count;
            continue;
        }
        parts.take(word);
        next += 1;
    }
    if parts.offset.is_none() {
        parts.offset = comments.split_whitespace().find_map(zones::named);
    }
    parts.moment()
}

/// The text outside of comments, and that inside.
fn without_comments(text: &str) -> (String, String) {
    let (mut plain, mut comments, mut depth) = (String::new(), String::new(), 0_usize);
    for character in text.chars().take(1_000) {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(character),
            _ => comments.push(character),
        }
        if matches!(character, '(' | ')') {
            plain.push(' ');
            comments.push(' ');
        }
    }
    (plain, comments)
}

impl Parts {
    /// Takes up one word, whatever it turns out to be.
    fn take(&mut self, word: &str) {
        let word = word.trim_end_matches('.');
        let taken = self.take_time(word) || self.take_iso_date(word) || self.take_joined_date(word);
        if taken || self.take_zone(word) || self.take_number(word) || self.take_month(word) {
            return;
        }
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "am" | "a.m" => self.is_afternoon = Some(false),
            "pm" | "p.m" => self.is_afternoon = Some(true),
            // A word behind the time that is neither weekday nor month is a zone that nobody knows.
            _ if self.time.is_some()
                && !is_weekday(&lower)
                && lower.contains(|c: char| c.is_ascii_alphabetic()) =>
            {
                self.has_unknown_zone = true;
            }
            _ => {}
        }
    }

    /// `10:00`, `10:00:00`, `10:00:00.123`, and what is written to it: `10:00:00+0200`, `10:00PM`.
    fn take_time(&mut self, word: &str) -> bool {
        let is_of_time = |c: char| c.is_ascii_digit() || c == ':';
        let end = word.find(|c: char| !is_of_time(c)).unwrap_or(word.len());
        let (clock, rest) = word.split_at_checked(end).unwrap_or((word, ""));
        let fields: Vec<Option<u32>> = clock.split(':').map(number).collect();
        let time = match fields.as_slice() {
            [Some(hour), Some(minute)] => (*hour, *minute, 0),
            [Some(hour), Some(minute), Some(second)] => (*hour, *minute, *second),
            _ => return false,
        };
        if self.time.is_some() {
            return false;
        }
        self.time = Some(time);
        let rest = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
        if !rest.is_empty() {
            self.take(rest);
        }
        true
    }

    /// `2020-03-02`, `2020/03/02`, with or without `T10:00:00Z` behind it.
    fn take_iso_date(&mut self, word: &str) -> bool {
        let (date, time) = word.split_once(['T', 't']).unwrap_or((word, ""));
        let fields: Vec<&str> = date.split(['-', '/']).collect();
        let [year, month, day] = fields.as_slice() else { return false };
        let (Some(years), Some(month), Some(day)) = (number(year), number(month), number(day)) else {
            return false;
        };
        if year.len() != 4 || self.year.is_some() {
            return false;
        }
        (self.year, self.month, self.day) = (Some(years), Some(month), Some(day));
        if !time.is_empty() {
            self.take(time);
        }
        true
    }

    /// `2-Mar-2020`, `2-Mar-20`, `2/Mar/2020`.
    fn take_joined_date(&mut self, word: &str) -> bool {
        let fields: Vec<&str> = word.split(['-', '/']).collect();
        let [day, month, year] = fields.as_slice() else { return false };
        let (Some(day), Some(month), Some(years)) = (number(day), month_named(month), number(year)) else {
            return false;
        };
        self.day = Some(day);
        self.month = Some(month);
        self.year = Some(whole_year(years, year.len()));
        true
    }

    /// A zone as a number or a name. Names count only behind the time: before it `sat` and `may` are others.
    fn take_zone(&mut self, word: &str) -> bool {
        if self.time.is_none() {
            return false;
        }
        let name_end = word.find(['+', '-']).unwrap_or(word.len());
        let (name, number) = word.split_at_checked(name_end).unwrap_or((word, ""));
        let of_name = if name.is_empty() { None } else { zones::named(name) };
        if name.is_empty() && !number.is_empty() {
            match zones::numbered(number) {
                // A number is what counts, whatever name stands before it.
                Some(minutes) => self.offset = Some(minutes),
                None => self.has_unknown_zone = true,
            }
            return true;
        }
        let Some(of_name) = of_name else { return false };
        let of_number = if of_name == 0 { zones::numbered(number) } else { None };
        self.offset = self.offset.or(of_number).or(Some(of_name));
        true
    }

    fn take_number(&mut self, word: &str) -> bool {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let is_ordinal =
            ["st", "nd", "rd", "th"].iter().any(|ending| word.get(digits.len()..) == Some(*ending));
        let Some(value) = number(digits).filter(|_| digits == word || is_ordinal) else { return false };
        if digits.len() >= 3 || self.day.is_some() {
            if self.year.is_none() {
                self.year = Some(whole_year(value, digits.len()));
            } else if self.time.is_some() && self.offset.is_none() {
                // A number without a sign is no zone.
                self.has_unknown_zone = true;
            }
        } else {
            self.day = Some(value);
        }
        true
    }

    fn take_month(&mut self, word: &str) -> bool {
        match month_named(word) {
            Some(month) if self.month.is_none() => {
                self.month = Some(month);
                true
            }
            _ => false,
        }
    }

    fn moment(self) -> Moment {
        let (Some(day), Some(month), Some(year)) = (self.day, self.month, self.year) else {
            return Moment::NoDate;
        };
        let (hour, minute, second) = self.time.unwrap_or_default();
        let hour = match self.is_afternoon {
            Some(true) if hour < 12 => hour + 12,
            Some(false) if hour == 12 => 0,
            _ => hour,
        };
        let small = |number: u32| i8::try_from(number).ok();
        // A leap second is written as 60.
        let leap = i64::from(second == 60);
        let date = i16::try_from(year)
            .ok()
            .filter(|year| (FIRST_YEAR..=LAST_YEAR).contains(year))
            .and_then(|year| Date::new(year, small(month)?, small(day)?).ok());
        let time = small(hour).zip(small(minute)).zip(small(second.saturating_sub(u32::from(second == 60))));
        let time = time.and_then(|((hour, minute), second)| Time::new(hour, minute, second, 0).ok());
        let (Some(date), Some(time)) = (date, time) else { return Moment::Absurd };
        let minutes = self.offset.unwrap_or(0);
        let offset = Offset::from_seconds(minutes * 60).unwrap_or(Offset::UTC);
        let Ok(moment) = offset.to_timestamp(DateTime::from_parts(date, time)) else { return Moment::Absurd };
        let zone = match (self.offset, self.has_unknown_zone) {
            (Some(_), _) => Zone::Known,
            (None, true) => Zone::Unknown,
            (None, false) => Zone::Missing,
        };
        Moment::At(moment.as_second() + leap, zone)
    }
}

fn number(digits: &str) -> Option<u32> {
    super::decode::number(digits.as_bytes())
}

/// A year as it is meant: of two digits up to 49 this century's, else with 1900 (RFC 5322 §4.3); senders that count from
/// 1900 write 2002 as 102 or 0102.
fn whole_year(year: u32, digits: usize) -> u32 {
    match (year, digits) {
        (0..50, ..=2) => year + 2000,
        (0..100, ..=2) | (_, 3) | (100..200, _) => year + 1900,
        _ => year,
    }
}

/// The number of a month by its English name or at least three letters of it.
pub(crate) fn month_named(word: &str) -> Option<u32> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.trim_end_matches('.').to_ascii_lowercase();
    if word.len() < 3 {
        return None;
    }
    let place = MONTHS.iter().position(|month| month.starts_with(&word))?;
    u32::try_from(place + 1).ok()
}

/// Whether this is the English name of a weekday, or at least three letters of it.
pub(crate) fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let word = word.to_ascii_lowercase();
    word.len() >= 3 && DAYS.iter().any(|day| day.starts_with(&word))
}

#[cfg(test)]
mod tests {
    use super::{Moment, Zone, read};

    fn check(written: &str, moment: &str, zone: Zone) {
        let Moment::At(seconds, found) = read(written) else { panic!("{written}: {:?}", read(written)) };
        let found = (jiff::Timestamp::from_second(seconds).unwrap().to_string(), found);
        assert_eq!(found, (moment.to_owned(), zone), "{written}");
    }

    #[test]
    fn dates_are_read_as_they_are_written() {
        for written in [
            "Mon, 02 Mar 2020 10:00:00 +0200",
            "Mon, 2 March 2020 10:00:00 +0200",
            "2 Mar 2020 10:00 +0200",
            "2 Mar 20 10:00:00 +0200",
            "2 Mar 120 10:00:00 +0200",
            "2 Mar 0120 10:00:00 +0200",
            "Mon,2 Mar 2020 10:00:00 +02:00",
            "Mon, 02 Mar 2020 10:00:00+0200",
            "Mon, 02 Mar 2020 10:00:00 +0200 (CEST)",
            "Mon (the day) , 02 Mar (spring) 2020 10 : 00 : 00 +0200",
            "Mon, 02 Mar 2020 10:00:00 +200",
            "Mon, 02 Mar 2020 10:00:00 +02",
            "Mon, 02 Mar 2020 10:00:00 +2",
            "Mon, 02 Mar 2020 10:00:00 GMT+0200",
            "Mon, 02 Mar 2020 10:00:00 GMT+2",
            "Mon, 02 Mar 2020 10:00:00 UTC +0200",
            "Mon, 02 Mar 2020 10:00:00 MET +0200",
            "Mon, 02 Mar 2020 10:00:00 CEST",
            "Mon, 02 Mar 2020 10:00:00 cest",
            "Mon, 02 Mar 2020 10:00:00 (MESZ)",
            "Mon, 02-Mar-2020 10:00:00 EET",
            "2-Mar-20 10:00:00 eet",
            "March 2nd, 2020 10:00:00 AM +0200",
            "Montag, 2. Mar 2020 10:00:00 +0200",
            "Mon Mar  2 10:00:00 2020 +0200",
            "Mon Mar  2 10:00:00 CEST 2020",
            "2020-03-02T10:00:00+02:00",
            "2020-03-02 10:00:00 +0200",
            "2020-03-02T08:00:00Z",
            "2020-03-02T08:00:00.123Z",
            "2020/03/02 08:00 utc",
            "Mon, 02 Mar 2020 03:00:00 EST",
            "Mon, 02 Mar 2020 03:00:00 est",
            "Mon, 02 Mar 2020 3:00 Eastern Standard Time",
            "Mon, 02 Mar 2020 00:00:00 PST",
            "Mon, 02 Mar 2020 08:00:00 UT",
            "Mon, 02 Mar 2020 08:00:00 -0000",
        ] {
            check(written, "2020-03-02T08:00:00Z", Zone::Known);
        }
        check("Wed, 11 Feb 1998 11:51 CST", "1998-02-11T17:51:00Z", Zone::Known);
        check("Mon, 21 Aug 1995 13:30:57 -600", "1995-08-21T19:30:57Z", Zone::Known);
        check("Sat, 31 Dec 2016 23:59:60 +0000", "2017-01-01T00:00:00Z", Zone::Known);
        check("Fri, 1 May 98 12:15 pm EDT", "1998-05-01T16:15:00Z", Zone::Known);
        check("1 Sept 1999 10:00 +0530", "1999-09-01T04:30:00Z", Zone::Known);
    }

    #[test]
    fn a_zone_that_is_not_known_is_said_to_be_none() {
        for (written, zone) in [
            ("Mon, 02 Mar 2020 08:00:00", Zone::Missing),
            ("Mon Mar  2 08:00:00 2020", Zone::Missing),
            ("2020-03-02 08:00:00", Zone::Missing),
            ("Mon, 02 Mar 2020 08:00:00 XYZ", Zone::Unknown),
            ("Mon, 02 Mar 2020 08:00:00 IST", Zone::Unknown),
            ("Mon, 02 Mar 2020 08:00:00 Q", Zone::Unknown),
            ("Mon, 02 Mar 2020 08:00:00 +9999", Zone::Unknown),
            ("Mon, 02 Mar 2020 08:00:00 0200", Zone::Unknown),
            ("Mon, 02 Mar 2020 08:00:00 Mitteleuropäische Zeit", Zone::Unknown),
        ] {
            check(written, "2020-03-02T08:00:00Z", zone);
        }
        check("2 Mar 2020", "2020-03-02T00:00:00Z", Zone::Missing);
    }

    #[test]
    fn what_is_no_date_or_no_possible_day_is_said() {
        for written in ["", "yesterday", "10:00", "Mon, Mar 2020", "+0200", "((((", "2 Foo 2020 10:00"] {
            assert_eq!(read(written), Moment::NoDate, "{written}");
        }
        for written in [
            "Wed, 31 Feb 2002 10:00:00 +0000",
            "1 Jan 1969 10:00:00 +0000",
            "1 Jan 2020 25:00:00 +0000",
            "1 Jan 2020 10:61:00 +0000",
            "1 Jan 99999 10:00:00 +0000",
            "0 Jan 2020 10:00 +0000",
        ] {
            assert_eq!(read(written), Moment::Absurd, "{written}");
        }
    }
}
