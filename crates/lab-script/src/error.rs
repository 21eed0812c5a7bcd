//! What can be wrong with a script, and where.

use std::fmt;

use thiserror::Error;

/// Where a word stands; both numbers begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ScriptPlace {
    pub line: usize,
    /// Counted in characters.
    pub column: usize,
}

impl fmt::Display for ScriptPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

/// One thing that is wrong with a script.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {}{problem}", quoted(.word))]
pub struct ScriptError {
    /// Where the word stands.
    pub place: ScriptPlace,
    /// The word as it is written in the script.
    pub word: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// So much of a word is shown, and this many errors: a file that is no script has very long ones, or very many.
const SHOWN_CHARACTERS: usize = 80;
const SHOWN_ERRORS: usize = 50;

fn quoted(word: &str) -> String {
    match word {
        "" => String::new(),
        _ => format!("{}: ", in_quotes(word)),
    }
}

/// A word of a script as people can be shown it: in quotation marks, its own if it has them.
pub(super) fn in_quotes(word: &str) -> String {
    let mut shown: String = word.chars().take(SHOWN_CHARACTERS).flat_map(visible).collect();
    if shown.len() < word.len() && word.chars().count() > SHOWN_CHARACTERS {
        shown.push('\u{2026}');
    }
    if word.starts_with('"') { shown } else { format!("\u{201c}{shown}\u{201d}") }
}

/// A character as a terminal can be shown it: one that steers terminals is written in letters.
fn visible(character: char) -> impl Iterator<Item = char> {
    let escaped = character.is_control().then(|| character.escape_unicode());
    escaped.into_iter().flatten().chain((!character.is_control()).then_some(character))
}

/// Everything that is wrong with a script, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", lines(.0))]
pub struct ScriptErrors(pub Vec<ScriptError>);

fn lines(errors: &[ScriptError]) -> String {
    let mut lines: Vec<String> = errors.iter().take(SHOWN_ERRORS).map(ToString::to_string).collect();
    if let Some(more @ 1..) = errors.len().checked_sub(SHOWN_ERRORS) {
        lines.push(format!("and at least {more} more"));
    }
    lines.join("\n")
}

/// What is wrong with a word.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Problem {
    #[error("the script is longer than {0} bytes")]
    TooLong(usize),
    #[error("the quotation mark is never closed")]
    OpenQuote,
    #[error(
        "a variable is a name between brackets, as in [NormalMessageSize]; write it so, or take the bracket away"
    )]
    OpenVariable,
    #[error("no command has this name{}", suggestion(.nearest))]
    UnknownCommand { nearest: Option<String> },
    #[error(
        "[{name}] has no value; give it one with --set {name}=VALUE, or in the script's header{}",
        suggestion(.nearest)
    )]
    UnknownVariable { name: String, nearest: Option<String> },
    #[error("a header line reads **Variable: Name = value (what it means)**")]
    VariableLine,
    #[error("{command} needs {what}; it is written {usage}")]
    Missing { command: &'static str, what: &'static str, usage: &'static str },
    #[error("{command} takes nothing more here; it is written {usage}")]
    TooMany { command: &'static str, usage: &'static str },
    #[error("a whole number from {lowest} to {highest} is wanted here")]
    Number { lowest: u64, highest: u64 },
    #[error(
        "a time is wanted here: 500, 5000-10000, 10-20sec, 8-12min or 1hour; without a unit it is milliseconds, and the most is 24 hours"
    )]
    Time,
    #[error("a size is wanted here: bytes (10000), profile, or sizes with weights (500:10|10000:30)")]
    Size,
    #[error("a percentage from 0 to 100 is wanted here")]
    Percent,
    #[error("the first time of the two is the longer one")]
    TimeOrder,
    #[error("this can only be {0}")]
    Choice(&'static str),
    #[error("{opening} in line {line} is never closed by {closing}")]
    NeverClosed { opening: &'static str, closing: &'static str, line: usize },
    #[error("there is no {opening} before it that is still open")]
    NeverOpened { opening: &'static str },
    #[error("{opening} in line {line} must be closed by {closing} first")]
    Crossed { opening: &'static str, closing: &'static str, line: usize },
    #[error("there is one {0} in a script already, and no script has two")]
    Repeated(&'static str),
    #[error("only a command that runs can follow If; for several, use @If and @EndIf")]
    NotAfterIf,
    #[error("the script has no command")]
    Empty,
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"))
}
