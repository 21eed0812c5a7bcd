//! What a person says of themselves for programs that write to them: language, time zone, absence.

use scrinium_calendar::zone::Zone;
use serde_json::Value;

use crate::DirectoryError;
use crate::fields::{Fields, flag, refuse, text, time_ms};

/// The longest answer of somebody who is out of office, in bytes.
const LONGEST_ANSWER: usize = 16 << 10;

/// Somebody is out of office, and what others are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// From this time on, in milliseconds since 1970; `None`: already.
    pub from_ms: Option<u64>,
    /// Until this time; `None`: until they say that they are back.
    pub until_ms: Option<u64>,
    /// The subject of the answer.
    pub subject: Option<String>,
    /// Its text.
    pub text: String,
}

impl Absence {
    /// Whether it holds at a time.
    #[must_use]
    pub fn is_at(&self, now_ms: u64) -> bool {
        self.from_ms.is_none_or(|from_ms| from_ms <= now_ms)
            && self.until_ms.is_none_or(|until_ms| now_ms < until_ms)
    }

    /// The absence that a document says, whether it begins later or is over.
    pub(crate) fn read(document: &Fields) -> Result<Option<Self>, DirectoryError> {
        let absence = Self {
            from_ms: time_ms(document, "OutOfOfficeFrom")?,
            until_ms: time_ms(document, "OutOfOfficeUntil")?,
            subject: text(document, "OutOfOfficeSubject")?,
            text: answer(document)?,
        };
        if let (Some(from_ms), Some(until_ms)) = (absence.from_ms, absence.until_ms)
            && until_ms <= from_ms
        {
            return Err(refuse("OutOfOfficeUntil", "…", "an absence ends after it begins"));
        }
        Ok(flag(document, "OutOfOffice")?.then_some(absence))
    }
}

/// The text of the answer, which may have several lines.
fn answer(document: &Fields) -> Result<String, DirectoryError> {
    const FIELD: &str = "OutOfOfficeText";
    match document.get(FIELD) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) if text.len() > LONGEST_ANSWER => {
            Err(refuse(FIELD, text, "it is longer than 16 KB"))
        }
        Some(Value::String(text)) => {
            if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
                return Err(refuse(FIELD, "…", "it holds control characters"));
            }
            Ok(text.clone())
        }
        Some(_) => Err(DirectoryError::Type { field: FIELD, expected: "a text" }),
    }
}

/// The language of a document: a tag (RFC 5646) in lower case.
pub(crate) fn language(document: &Fields) -> Result<Option<String>, DirectoryError> {
    const FIELD: &str = "Language";
    let Some(language) = text(document, FIELD)? else { return Ok(None) };
    let is_part =
        |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    if language.len() <= 35 && language.split(['-', '_']).all(is_part) {
        Ok(Some(language.to_lowercase()))
    } else {
        Err(refuse(FIELD, &language, "a language is a tag such as de, en or pt-BR"))
    }
}

/// The time zone of a document: a name of the time zone database, such as `Europe/Berlin`.
pub(crate) fn time_zone(document: &Fields) -> Result<Option<String>, DirectoryError> {
    const FIELD: &str = "TimeZone";
    let Some(zone) = text(document, FIELD)? else { return Ok(None) };
    match Zone::named(&zone) {
        Some(found) => Ok(Some(found.name().to_owned())),
        None => Err(refuse(FIELD, &zone, "a time zone is a name such as Europe/Berlin, or UTC")),
    }
}
