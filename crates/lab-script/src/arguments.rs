//! The words after a command's name, read one by one as what the command wants them to be.

use std::time::Duration;

use crate::command::{MessageSize, Percent, Sending, TimeRange, UserPiece, UserText};
use crate::error::{Problem, ScriptError, ScriptPlace};
use crate::header::Variables;
use crate::table::{CommandInfo, nearest};
use crate::words::{Line, Piece, Word};

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

    /// The next word, which stays there.
    pub(super) fn peek(&self) -> Option<&'a Word> {
        self.line.words.get(self.next)
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

    /// The number of the line in the script.
    pub(super) fn line_number(&self) -> usize {
        self.line.number
    }

    /// The value of a variable, if it has one that is a number.
    pub(super) fn variable_as_number(&self, name: &str) -> Option<u64> {
        let number = self.variables.get(name)?.trim().parse().ok()?;
        Some(number).filter(|number| *number <= HIGHEST_NUMBER)
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
                place: ScriptPlace { line: self.line.number, column: 1 },
                word: String::new(),
                problem,
            },
        }
    }

    /// Text in which only the user's own number and name are still open.
    pub(super) fn text(&self, word: &Word) -> Result<UserText, ScriptError> {
        let mut text = UserText::default();
        for piece in &word.pieces {
            text.append(UserText(vec![match piece {
                Piece::Text(text) => UserPiece::Text(text.clone()),
                Piece::Variable(name) if name == "#" => UserPiece::Number,
                Piece::Variable(name) if name.eq_ignore_ascii_case("user") => UserPiece::Name,
                Piece::Variable(name) => UserPiece::Text(self.variable(word, name)?),
            }]));
        }
        Ok(text)
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

    /// The next word as the size of a message, or `[NormalMessageSize]`, or 1,000 bytes.
    pub(super) fn size_or_normal(&mut self) -> Result<MessageSize, ScriptError> {
        match self.take() {
            Some(word) => self.size(word),
            None => {
                let normal = self.variables.get("NormalMessageSize").and_then(message_size);
                Ok(normal.unwrap_or(MessageSize::Bytes { body: 1000, attachment: 0 }))
            }
        }
    }

    /// A number of bytes, `profile`, or sizes with their weights: `500:10|10000:30`.
    pub(super) fn size(&self, word: &Word) -> Result<MessageSize, ScriptError> {
        message_size(&self.fixed(word)?).ok_or_else(|| self.error(word, Problem::Size))
    }

    /// A percentage, as `25`, `2.5` or `25%`.
    pub(super) fn percent(&mut self) -> Result<Percent, ScriptError> {
        let word = self.require("a percentage")?;
        let value = self.fixed(word)?;
        let number = value.trim().trim_end_matches('%').parse().ok().and_then(Percent::new);
        number.ok_or_else(|| self.error(word, Problem::Percent))
    }

    /// All that is left, in brackets after the name or not, with commas or without: `NewMail(a,b,c)`.
    pub(super) fn values(&mut self) -> Result<Vec<UserText>, ScriptError> {
        let mut values = Values::default();
        let name = self.line.words.get(self.name).filter(|word| word.written.contains('('));
        let mut skip_to_bracket = name.is_some();
        let rest = self.line.words.get(self.next..).unwrap_or_default();
        for word in name.into_iter().chain(rest) {
            let mut text = self.text(word)?.0;
            if std::mem::take(&mut skip_to_bracket)
                && let Some(UserPiece::Text(first)) = text.first_mut()
            {
                *first = first.split_once('(').map(|(_, after)| after).unwrap_or_default().to_owned();
            }
            for piece in text {
                match piece {
                    UserPiece::Text(text) if !word.quoted => values.split(&text),
                    piece => values.push(piece),
                }
            }
            values.open = false;
        }
        self.next = self.line.words.len();
        Ok(values.found)
    }

    /// A value that is the same for every user, as a number.
    pub(super) fn value_as_number(&self, value: &UserText, lowest: u64) -> Result<u64, ScriptError> {
        let number = match value.0.as_slice() {
            [UserPiece::Text(text)] => text.trim().parse().ok(),
            _ => None,
        };
        number
            .filter(|number| (lowest..=HIGHEST_NUMBER).contains(number))
            .ok_or_else(|| self.at_name(Problem::Number { lowest, highest: HIGHEST_NUMBER }))
    }

    /// `[recipients] [nth]`, each 1 when it is left out.
    pub(super) fn sending(&mut self) -> Result<Sending, ScriptError> {
        let recipients = self.number_or(1, 1)?;
        let nth = self.number_or(1, 1)?;
        Ok(self.sending_of(recipients, nth))
    }

    /// Whether copies are kept says `NB_MAIL_SAVE_MESSAGE`.
    pub(super) fn sending_of(&self, recipients: u64, nth: u64) -> Sending {
        let kept = self.variables.get("NB_MAIL_SAVE_MESSAGE").is_some_and(|value| !matches!(value, "" | "0"));
        Sending { recipients: usize::try_from(recipients).unwrap_or(usize::MAX), nth: nth.max(1), kept }
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
        place: ScriptPlace { line: line.number, column: word.column },
        word: word.written.clone(),
        problem,
    }
}

/// Values as they are put together.
#[derive(Default)]
struct Values {
    found: Vec<UserText>,
    /// What comes next belongs to the last value.
    open: bool,
    /// There is a value behind the last comma.
    since_comma: bool,
}

impl Values {
    fn push(&mut self, piece: UserPiece) {
        match self.found.last_mut().filter(|_| self.open) {
            Some(value) => value.append(UserText(vec![piece])),
            None => self.found.push(UserText(vec![piece])),
        }
        (self.open, self.since_comma) = (true, true);
    }

    /// Brackets and commas part values; two commas have an empty one between them.
    fn split(&mut self, text: &str) {
        for (index, part) in text.split(',').enumerate() {
            if index > 0 {
                if !self.since_comma {
                    self.found.push(UserText::default());
                }
                (self.open, self.since_comma) = (false, false);
            }
            let part = part.trim_matches(['(', ')']);
            if !part.is_empty() {
                self.push(UserPiece::Text(part.to_owned()));
            }
        }
    }
}

/// Sizes of a message as a script or a variable gives them.
pub fn message_size(text: &str) -> Option<MessageSize> {
    let text = text.trim();
    let bytes = |text: &str| {
        text.trim()
            .parse::<u64>()
            .ok()
            .filter(|bytes| *bytes <= HIGHEST_NUMBER)
            .and_then(|bytes| usize::try_from(bytes).ok())
    };
    if text.eq_ignore_ascii_case("profile") {
        return Some(MessageSize::Profile);
    }
    if !text.contains(':') {
        return bytes(text).map(|body| MessageSize::Bytes { body, attachment: 0 });
    }
    let choices = text.split('|').map(|choice| {
        let (size, weight) = choice.split_once(':')?;
        let weight: u32 = weight.trim().parse().ok().filter(|weight| (1..=1_000_000).contains(weight))?;
        Some((bytes(size)?, weight))
    });
    choices.collect::<Option<Vec<_>>>().map(|choices| MessageSize::Weighted(choices.into()))
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
