//! Words behind a command, some of them `NAME=VALUE`, with values in quotes where they have blanks.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

use crate::config::{parse_duration, print_duration};

/// The words, and the pairs by their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) words: Vec<String>,
    pub(super) pairs: BTreeMap<String, String>,
}

impl Words {
    /// `None`: a quote is not closed, or a name stands twice. `names` are those that pairs may have; what stands before another `=` is a
    /// word like any other.
    pub(super) fn read(rest: &str, names: &[&str]) -> Option<Self> {
        let mut read = Self::default();
        for word in split(rest)? {
            let pair = word.split_once('=').filter(|(name, _)| names.contains(name));
            match pair {
                Some((name, value)) => {
                    if read.pairs.insert(name.to_owned(), value.to_owned()).is_some() {
                        return None;
                    }
                }
                None => read.words.push(word),
            }
        }
        Some(read)
    }

    /// Takes the value of a name out.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.pairs.remove(name)
    }

    /// A moment, if it is given and can be read; `Err` if it cannot.
    pub(super) fn take_moment(&mut self, name: &str) -> Result<Option<Moment>, ()> {
        self.take(name).map(|text| Moment::parse(&text).ok_or(())).transpose()
    }
}

/// A value as [`Words::read`] reads it back.
pub(crate) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

fn split(rest: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut is_word, mut is_quoted) = (Vec::new(), String::new(), false, false);
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => (is_quoted, is_word) = (!is_quoted, true),
            '\\' if is_quoted => word.push(letters.next()?),
            letter if letter.is_whitespace() && !is_quoted => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            letter => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    (!is_quoted).then_some(words)
}

/// A moment: a time ago (`3d`), or a date (`2026-11-22`) or time (`2026-11-22T10:00`) in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Ago(Duration),
    At(Timestamp),
}

impl Moment {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Ok(ago) = parse_duration(text) {
            return Some(Self::Ago(ago));
        }
        if let Ok(at) = text.parse::<Timestamp>() {
            return Some(Self::At(at));
        }
        let time = text.parse::<civil::Date>().map(|date| date.at(0, 0, 0, 0));
        let time = time.or_else(|_| text.parse::<DateTime>()).ok()?;
        Some(Self::At(time.to_zoned(TimeZone::UTC).ok()?.timestamp()))
    }

    /// In milliseconds since 1970.
    pub(crate) fn ms(self, now_ms: u64) -> u64 {
        match self {
            Self::Ago(ago) => now_ms.saturating_sub(scrinium_clock::milliseconds(ago)),
            Self::At(at) => u64::try_from(at.as_millisecond()).unwrap_or(0),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ago(ago) => write!(formatter, "{} ago", print_duration(*ago)),
            Self::At(at) => write!(formatter, "{at}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_quoted_is_read_back(value in "[^\\x00-\\x1f]{0,20}", noise in ".{0,40}") {
            let read = Words::read(&format!("ada folder={}", quoted(&value)), &["folder"]).unwrap();
            prop_assert_eq!(read.pairs.get("folder"), Some(&value));
            prop_assert_eq!(read.words, ["ada"]);
            let _ = Words::read(&noise, &["folder"]);
            let _ = Moment::parse(&noise);
        }
    }

    #[test]
    fn moments_are_dates_and_times_ago() {
        let now_ms = 1_790_000_000_000;
        let ms = |text: &str| Moment::parse(text).map(|moment| moment.ms(now_ms));
        assert_eq!(ms("2 d"), Some(now_ms - 172_800_000));
        assert_eq!(ms("2026-01-01"), ms("2026-01-01T00:00"));
        assert_eq!(ms("2026-01-01T01:00:00Z"), Some(1_767_229_200_000));
        assert_eq!(ms("yesterday"), None);
        assert_eq!(Words::read("a=1 a=2", &["a"]), None);
        assert_eq!(Words::read("\"open", &[]), None);
    }
}
