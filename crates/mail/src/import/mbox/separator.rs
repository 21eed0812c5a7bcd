//! What a line `From …` of an mbox says, and whether a message begins behind it.
//!
//! RFC 4155 asks for a sender and a date in C's form. Programs write others: no date at all (`From -`, `From `), a year
//! of two digits, a zone by its name, the order of RFC 5322. Text has such lines too, so the further a line is from the
//! form that it should have, the more has to speak for it: an empty line before it, and header fields behind it.

use jiff::civil::{Date, DateTime, Time};

use crate::message::{is_weekday, month_named};

/// A longer line is no separator.
const LONGEST: usize = 1_000;

/// At most this many words at the end of a line can belong to its date.
const MOST_DATE_WORDS: usize = 9;

/// The date of every message that `git format-patch` writes, which says only that it was git.
const COMMIT_DATE: &str = "Mon Sep 17 00:00:00 2001";

/// What a line `From …` is, going by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// One sender, then a date in C's form: `From ada@acme.example Thu Aug 22 13:17:22 2002`.
    Dated,
    /// A date in another form, or behind several words: `From ann at acme.example  Thu Aug 22 13:17:22 2002`.
    LooselyDated,
    /// The name of a commit and git's fixed date.
    Commit,
    /// `From ` and nothing else.
    Empty,
    /// `From -`.
    Dash,
    /// One word: `From somebody`.
    Name,
    /// An address: `From ada@acme.example`.
    Address,
}

impl Separator {
    /// Reads a line; `None` if it begins with something else than `From `, or continues like text.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let words = words_of(line)?;
        match words.as_slice() {
            [] => return Some(Self::Empty),
            ["-"] => return Some(Self::Dash),
            [word] if word.contains('@') => return Some(Self::Address),
            [word] if word.ends_with([',', '.', ':', ';', '!', '?']) => return None,
            [_] => return Some(Self::Name),
            _ => {}
        }
        let parts = LineDate::read(&words)?;
        let is_commit =
            |name: &str| matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(match words.as_slice() {
            [name, date @ ..] if is_commit(name) && date.join(" ") == COMMIT_DATE => Self::Commit,
            _ if parts.senders == 1 && parts.in_order => Self::Dated,
            _ => Self::LooselyDated,
        })
    }
}

/// The date of a line `From sender date`, in seconds since 1970. One without a zone is taken for UTC.
pub(super) fn date_of(line: &[u8]) -> Option<i64> {
    LineDate::read(&words_of(line)?)?.seconds()
}

/// The words behind `From `.
fn words_of(line: &[u8]) -> Option<Vec<&str>> {
    if line.len() > LONGEST {
        return None;
    }
    let rest = std::str::from_utf8(line.strip_prefix(b"From ")?).ok()?;
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    // UUCP's way: `From ada Thu Aug 22 13:17:22 2002 remote from acme`.
    if let [.., "remote", "from", _] = words.as_slice() {
        words.truncate(words.len() - 3);
    }
    Some(words)
}

/// What a word can be in a date.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Word {
    Weekday,
    Month(i8),
    Number(i16),
    Time(Time),
    Day {
        year: i16,
        month: i8,
        day: i8,
    },
    Moment(DateTime),
    /// A zone, in seconds east of Greenwich.
    Zone(i64),
    /// A zone by a name that is not known here, or `AM`.
    Other,
}

impl Word {
    fn read(word: &str) -> Option<Self> {
        let word = word.trim_end_matches(',');
        if let Some(month) = month(word) {
            return Some(Self::Month(month));
        }
        if is_weekday(word) {
            return Some(Self::Weekday);
        }
        if word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit()) {
            return word.parse().ok().map(Self::Number);
        }
        if let Some(time) = time(word) {
            return Some(Self::Time(time));
        }
        Self::day(word).or_else(|| Self::moment(word)).or_else(|| Self::zone(word))
    }

    /// `2020-03-02` (ISO 8601), `2-Mar-2020` (RFC 3501).
    fn day(word: &str) -> Option<Self> {
        let mut parts = word.split('-');
        let (first, second, third) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let (year, month, day) = match month(second) {
            Some(month) => (full_year(third.parse().ok()?)?, month, first.parse().ok()?),
            None if first.len() == 4 => (first.parse().ok()?, second.parse().ok()?, third.parse().ok()?),
            None => return None,
        };
        Date::new(year, month, day).ok().map(|_| Self::Day { year, month, day })
    }

    /// `2020-03-02T10:00:00Z`.
    fn moment(word: &str) -> Option<Self> {
        let (day, rest) = word.split_once(['T', 't'])?;
        let Self::Day { year, month, day } = Self::day(day)? else { return None };
        let end = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
        let time = time(rest.get(..end)?)?;
        let east = match rest.get(end..)? {
            "" | "Z" | "z" => 0,
            zone => offset(&zone.replace(':', ""))?,
        };
        let moment = DateTime::from_parts(Date::new(year, month, day).ok()?, time);
        moment.checked_sub(jiff::SignedDuration::from_secs(east)).ok().map(Self::Moment)
    }

    fn zone(word: &str) -> Option<Self> {
        let word = word.trim_matches(['(', ')']);
        if let Some(east) = offset(word) {
            return Some(Self::Zone(east));
        }
        let hours = match word {
            "GMT" | "UTC" | "UT" | "Z" | "WET" => 0,
            "BST" | "CET" | "MET" | "WEST" => 1,
            "CEST" | "MEST" | "EET" => 2,
            "EEST" | "MSK" => 3,
            "JST" => 9,
            "EDT" => -4,
            "EST" | "CDT" => -5,
            "CST" | "MDT" => -6,
            "MST" | "PDT" => -7,
            "PST" => -8,
            _ => {
                let is_name = (2..=5).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_uppercase());
                let is_shifted = word.starts_with("GMT") || word.starts_with("UTC");
                return (is_name || is_shifted).then_some(Self::Other);
            }
        };
        Some(Self::Zone(hours * 3_600))
    }
}

/// The date at the end of a line.
struct LineDate {
    /// Words before it.
    senders: usize,
    /// Whether it is in C's form, perhaps with a zone.
    in_order: bool,
    day: Date,
    time: Time,
    east_s: i64,
}

impl LineDate {
    fn read(words: &[&str]) -> Option<Self> {
        let mut found: Vec<Word> = Vec::new();
        for word in words.iter().rev().take(MOST_DATE_WORDS) {
            let Some(read) = Word::read(word) else { break };
            found.push(read);
            // Nothing of a date stands before the weekday.
            if read == Word::Weekday {
                break;
            }
        }
        found.reverse();
        // A sender may read like a zone or a number.
        while found.len() >= words.len() || matches!(found.first(), Some(Word::Zone(_) | Word::Other)) {
            if !matches!(found.first(), Some(Word::Zone(_) | Word::Other | Word::Number(_))) {
                break;
            }
            found.remove(0);
        }
        let senders = words.len().checked_sub(found.len())?;
        Self::of(&found, senders)
    }

    fn of(found: &[Word], senders: usize) -> Option<Self> {
        let (mut day_of_month, mut month_of_year, mut year_of_date) = (None, None, None);
        let (mut time, mut east_s) = (None, 0);
        for word in found {
            match *word {
                Word::Month(month) if month_of_year.is_none() => month_of_year = Some(month),
                Word::Number(number) if day_of_month.is_none() => {
                    day_of_month = Some(i8::try_from(number).ok()?);
                }
                Word::Number(number) if year_of_date.is_none() => year_of_date = Some(full_year(number)?),
                Word::Time(found) if time.is_none() => time = Some(found),
                Word::Day { year, month, day } if day_of_month.is_none() => {
                    (day_of_month, month_of_year, year_of_date) = (Some(day), Some(month), Some(year));
                }
                Word::Moment(moment) if time.is_none() && day_of_month.is_none() => {
                    time = Some(moment.time());
                    (day_of_month, month_of_year, year_of_date) =
                        (Some(moment.day()), Some(moment.month()), Some(moment.year()));
                }
                Word::Zone(east) => east_s = east,
                Word::Weekday | Word::Other => {}
                _ => return None,
            }
        }
        let day = Date::new(year_of_date?, month_of_year?, day_of_month?).ok()?;
        let in_order = matches!(found, [Word::Weekday, Word::Month(_), Word::Number(_), Word::Time(_), ..]);
        Some(Self { senders, in_order, day, time: time?, east_s })
    }

    fn seconds(&self) -> Option<i64> {
        let moment = DateTime::from_parts(self.day, self.time).to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        let seconds = moment.timestamp().as_second() - self.east_s;
        (seconds >= 0).then_some(seconds)
    }
}

fn month(word: &str) -> Option<i8> {
    i8::try_from(month_named(word)?).ok()
}

/// `10:00`, `10:00:00`, `10:00:00.5`.
fn time(word: &str) -> Option<Time> {
    let mut parts = word.split(':');
    let two = |part: &str| part.parse::<i8>().ok().filter(|_| part.len() <= 2);
    let (hour, minute) = (two(parts.next()?)?, two(parts.next()?)?);
    let second = match parts.next() {
        None => 0,
        // A leap second is written as 60.
        Some(part) => two(part.split('.').next()?)?.min(59),
    };
    if parts.next().is_some() {
        return None;
    }
    Time::new(hour, minute, second, 0).ok()
}

/// `+0200`, `-0700`.
fn offset(word: &str) -> Option<i64> {
    let (sign, digits) = match word.strip_prefix('+') {
        Some(digits) => (1, digits),
        None => (-1, word.strip_prefix('-')?),
    };
    let number: i64 = digits.parse().ok().filter(|_| digits.len() == 4)?;
    Some(sign * (number / 100 * 3_600 + number % 100 * 60))
}

/// RFC 5322 §4.3: years of two digits, and those of three, which count from 1900.
fn full_year(year: i16) -> Option<i16> {
    match year {
        0..=49 => Some(year + 2000),
        50..=199 => Some(year + 1900),
        1970..=2199 => Some(year),
        _ => None,
    }
}

/// What stands behind a line `From …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Behind {
    /// Text, or nothing.
    Text,
    /// An empty line.
    Blank,
    /// A header field that mail has.
    Field,
    /// Several header fields, the first of which mail has.
    Fields,
}

impl Behind {
    /// Looks at what comes after the line.
    pub(super) fn of(after: &[u8]) -> Self {
        let mut fields = 0;
        let mut known = false;
        for (number, line) in after.split(|&byte| byte == b'\n').take(12).enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.starts_with(b">From ")
                || (fields > 0 && line.starts_with(b" "))
                || line.starts_with(b"\t")
            {
                continue;
            }
            if line.is_empty() && number == 0 {
                return if after.is_empty() { Self::Text } else { Self::Blank };
            }
            let Some(name) = field_name(line) else { break };
            fields += 1;
            known |= is_mail_field(name);
            if fields == 1 && !known && !name.contains(&b'-') {
                break;
            }
        }
        match (fields, known) {
            (0, _) | (_, false) => Self::Text,
            (1, true) => Self::Field,
            _ => Self::Fields,
        }
    }
}

/// The name of the header field that a line begins (RFC 5322 §3.6.8).
pub(super) fn field_name(line: &[u8]) -> Option<&[u8]> {
    let colon = line.iter().take(80).position(|&byte| byte == b':')?;
    let name = line.get(..colon)?;
    let is_name =
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
    is_name.then_some(name)
}

/// Whether mail has a field of this name.
fn is_mail_field(name: &[u8]) -> bool {
    const NAMES: [&str; 33] = [
        "from",
        "to",
        "cc",
        "bcc",
        "subject",
        "date",
        "sender",
        "reply-to",
        "message-id",
        "in-reply-to",
        "references",
        "received",
        "return-path",
        "delivered-to",
        "envelope-to",
        "mime-version",
        "status",
        "lines",
        "path",
        "newsgroups",
        "organization",
        "organisation",
        "user-agent",
        "errors-to",
        "precedence",
        "comments",
        "keywords",
        "importance",
        "priority",
        "apparently-to",
        "dkim-signature",
        "authentication-results",
        "thread-index",
    ];
    const BEGINNINGS: [&str; 5] = ["x-", "list-", "arc-", "resent-", "content-"];
    let begins = |beginning: &str| {
        name.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning.as_bytes()))
    };
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
        || BEGINNINGS.iter().any(|known| begins(known))
}
