//! Regular expressions, in linear time.

use regex::bytes::{Regex, RegexBuilder};

use crate::error::MangoError;

/// A compiled pattern, and the tables that searching makes from it, are at most so large.
const PROGRAM_BYTES: usize = 1 << 19;

/// A regular expression and how it was written.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// As in CouchDB a pattern sees the bytes of UTF-8, so that `.` is one of them and `\w`, `\d`, `\s` and `(?i)`
    /// mean ASCII. A pattern that itself has other letters, or asks for `\p`, sees characters.
    pub(crate) fn compile(text: &str) -> Result<Self, MangoError> {
        let characters = !text.is_ascii() || text.contains("\\p") || text.contains("\\P");
        let built = RegexBuilder::new(text)
            .unicode(characters)
            .size_limit(PROGRAM_BYTES)
            .dfa_size_limit(PROGRAM_BYTES)
            .build();
        match built {
            Ok(regex) => Ok(Self { text: text.to_owned(), regex }),
            Err(error) => Err(refused(text, &error)),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is found anywhere in the text.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }
}

/// The library draws the place of a mistake over several lines; the last tells what it is.
fn refused(text: &str, error: &regex::Error) -> MangoError {
    let told = error.to_string();
    let problem = told.lines().last().unwrap_or_default();
    let problem = problem.trim_start_matches("error: ");
    let shown = crate::error::shown(&serde_json::Value::from(text));
    MangoError::BadArgument { operator: "$regex", argument: format!("{shown}: {problem}") }
}
