//! The words after a command's name, read one by one as what the command wants them to be.

use std::time::Duration;

use super::command::{Sending, TimeRange, UserPiece, UserText};
use super::error::{Place, Problem, ScriptError};
use super::header::Variables;
use super::table::{CommandInfo, nearest};
use super::words::{Line, Piece, Word};

/// The most documents, bytes, recipients or rounds that a script may ask for at once.
pub(super) const HIGHEST_NUMBER: u64 = 100_000_000;

/// No think time is longer.
const LONGEST_TIME: Duration = Duration::from_secs(24 * 3600);

/// Reads the words of one command.
pub(super) struct Arguments<'a> {
    line: &'a Line,
    /// The next word's index.
    next: usize,
    /// The word that holds the command's name.
    name: usize,
    info: &'static CommandInfo,
    variables: &'a Variables,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(
        line: &'a Line,
        name: usize,
        info: &'static CommandInfo,
        variables: &'a Variables,
    ) -> Self {
        Self { line, next: name + 1, name, info, variables }
    }

    /// The next word, if there is one.
    pub(super) fn take(&mut self) -> Option<&'a Word> {
        let word = self.line.words.get(self.next)?;
        self.next += 1;
        Some(word)
    }

    /// Takes the next word if it says `text`, in whatever case.
    pub(super) fn take_keyword(&mut self, text: &str) -> bool {
        let found =
            self.line.words.get(self.next).is_some_and(|word| word.written.eq_ignore_ascii_case(text));
        self.next += usize::from(found);
        found
    }

    pub(super) fn require(&mut self, what: &'static str) -> Result<&'a Word, ScriptError> {
        match self.take() {
            Some(word) => Ok(word),
            None => {
                Err(self.at_name(Problem::Missing { command: self.info.name, what, usage: self.info.usage }))
            }
        }
    }

    /// No word may be left.
    pub(super) fn finish(mut self) -> Result<(), ScriptError> {
        match self.take() {
            None => Ok(()),
            Some(word) => {
                let problem = Problem::TooMany { command: self.info.name, usage: self.info.usage };
                Err(self.error(word, problem))
            }
        }
    }

    /// The rest of the line belongs to another command.
    pub(super) fn position(&self) -> usize {
        self.next
    }

    pub(super) fn error(&self, word: &Word, problem: Problem) -> ScriptError {
        error_at(self.line, word, problem)
    }

    pub(super) fn at_name(&self, problem: Problem) -> ScriptError {
        match self.line.words.get(self.name) {
            Some(word) => self.error(word, problem),
            None => ScriptError {
                place: Place { line: self.line.number, column: 1 },
                word: String::new(),
                problem,
            },
        }
    }

    /// Text in which only the user's own number and name are still open.
    pub(super) fn text(&self, word: &Word) -> Result<UserText, ScriptError> {
        let mut pieces = Vec::new();
        for piece in &word.pieces {
            pieces.push(match piece {
                Piece::Text(text) => UserPiece::Text(text.clone()),
                Piece::Variable(name) if name == "#" => UserPiece::Number,
                Piece::Variable(name) if name.eq_ignore_ascii_case("user") => UserPiece::Name,
                Piece::Variable(name) => UserPiece::Text(self.variable(word, name)?),
            });
        }
        Ok(UserText(pieces))
    }

    /// Text that is the same for every user.
    pub(super) fn fixed(&self, word: &Word) -> Result<String, ScriptError> {
        let mut text = String::new();
        for piece in &word.pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Variable(name) => text.push_str(&self.variable(word, name)?),
            }
        }
        Ok(text)
    }

    fn variable(&self, word: &Word, name: &str) -> Result<String, ScriptError> {
        self.variables.get(name).map(str::to_owned).ok_or_else(|| {
            let nearest = nearest(name, self.variables.iter().map(|(name, _)| name))
                .map(|nearest| format!("[{nearest}]"));
            self.error(word, Problem::UnknownVariable { name: name.to_owned(), nearest })
        })
    }

    pub(super) fn number(&self, word: &Word, lowest: u64) -> Result<u64, ScriptError> {
        self.fixed(word)?
            .trim()
            .parse()
            .ok()
            .filter(|number| (lowest..=HIGHEST_NUMBER).contains(number))
            .ok_or_else(|| self.error(word, Problem::Number { lowest, highest: HIGHEST_NUMBER }))
    }

    /// The next word as a number, or `default` when no word is left.
    pub(super) fn number_or(&mut self, lowest: u64, default: u64) -> Result<u64, ScriptError> {
        match self.take() {
            Some(word) => self.number(word, lowest),
            None => Ok(default),
        }
    }

    /// The next word as a number of bytes, or `[NormalMessageSize]`, or 1,000.
    pub(super) fn bytes_or_normal(&mut self) -> Result<usize, ScriptError> {
        let normal = self.variables.get("NormalMessageSize").and_then(|value| value.parse().ok());
        let bytes = self.number_or(0, normal.unwrap_or(1000))?;
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// `[recipients] [nth]`, each 1 when it is left out.
    pub(super) fn sending(&mut self) -> Result<Sending, ScriptError> {
        let recipients = self.number_or(1, 1)?;
        let nth = self.number_or(1, 1)?;
        Ok(Sending { recipients: usize::try_from(recipients).unwrap_or(usize::MAX), nth })
    }

    /// All words that are left as a time: `0 - 180000`, `10-20sec`, `8 min`.
    pub(super) fn time(&mut self) -> Result<TimeRange, ScriptError> {
        let first = self.require("a time")?;
        let mut text = self.fixed(first)?;
        while let Some(word) = self.take() {
            text.push_str(&self.fixed(word)?);
        }
        let range = time_range(&text).ok_or_else(|| self.error(first, Problem::Time))?;
        if range.low > range.high {
            return Err(self.error(first, Problem::TimeOrder));
        }
        Ok(range)
    }

    /// Whether the next word is neither empty nor 0.
    pub(super) fn condition(&mut self) -> Result<bool, ScriptError> {
        let word = self.require("a value")?;
        let value = self.fixed(word)?;
        Ok(!matches!(value.trim(), "" | "0"))
    }
}

pub(super) fn error_at(line: &Line, word: &Word, problem: Problem) -> ScriptError {
    ScriptError {
        place: Place { line: line.number, column: word.column },
        word: word.written.clone(),
        problem,
    }
}

fn time_range(text: &str) -> Option<TimeRange> {
    let text = text.trim();
    let unit_at = text.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(text.len());
    let (numbers, unit) = text.split_at(unit_at);
    let unit_ms = match unit.to_ascii_lowercase().as_str() {
        "" | "ms" | "msec" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1000.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
        "h" | "hour" | "hours" => 3_600_000.0,
        _ => return None,
    };
    let (low, high) = numbers.split_once('-').unwrap_or((numbers, numbers));
    Some(TimeRange { low: time(low, unit_ms)?, high: time(high, unit_ms)? })
}

fn time(number: &str, unit_ms: f64) -> Option<Duration> {
    let number = number.trim();
    let plain = number.chars().all(|character| character.is_ascii_digit() || character == '.');
    let value = number.parse::<f64>().ok().filter(|_| plain)?;
    Duration::try_from_secs_f64(value * unit_ms / 1000.0).ok().filter(|time| *time <= LONGEST_TIME)
}
