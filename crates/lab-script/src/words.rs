//! Lines of a script, split into words. A word is text and `[variables]` in any order; a command stands alone on its
//! line. Comments are written in all ways that published scripts have: `**text**` anywhere, over several lines too; a
//! line that begins with `*`; a line that begins with a row of them.

use std::collections::BTreeSet;

use crate::error::{Problem, ScriptError, ScriptPlace};

/// Longer scripts are refused: the longest of Server.Load's own has some 200 lines.
pub(super) const LONGEST_SCRIPT_BYTES: usize = 1 << 20;

/// A comment that is closed on a later line has at most this many. One that is closed nowhere near ends with its line.
const LONGEST_COMMENT_LINES: usize = 20;

/// One line that holds a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The first line is 1.
    pub(super) number: usize,
    pub(super) words: Vec<Word>,
}

/// The text of one comment between two asterisks on either side, without these. Such may be a part of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comment {
    pub(super) line: usize,
    pub(super) text: String,
}

/// A word as it was written, and the pieces that it is put together from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Characters before it on its line, plus 1.
    pub(super) column: usize,
    pub(super) written: String,
    pub(super) quoted: bool,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// The name between brackets: `[NormalMessageSize]`, `[#]`.
    Variable(String),
}

/// Everything that stands in a script's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) lines: Vec<Line>,
    pub(super) comments: Vec<Comment>,
}

impl Words {
    /// The names of the variables that commands use, each once, but for the user's number and name.
    pub(super) fn variables(&self) -> BTreeSet<String> {
        let pieces = self.lines.iter().flat_map(|line| &line.words).flat_map(|word| &word.pieces);
        let names = pieces.filter_map(|piece| match piece {
            Piece::Variable(name) if name != "#" && !name.eq_ignore_ascii_case("user") => Some(name.clone()),
            Piece::Variable(_) | Piece::Text(_) => None,
        });
        names.collect()
    }
}

/// Splits a script. Lines that cannot be split are reported, all others are returned.
pub(super) fn split(text: &str, errors: &mut Vec<ScriptError>) -> Words {
    let mut words = Words::default();
    let lines: Vec<&str> = text.lines().collect();
    let mut comment_end = None;
    for (index, line) in lines.iter().enumerate() {
        if comment_end.is_some_and(|end| index <= end) {
            continue;
        }
        comment_end = end_of_comment(lines.get(index..).unwrap_or_default()).map(|length| index + length);
        if comment_end.is_some() || is_remark(line) {
            continue;
        }
        let mut reader = Reader { line: index + 1, rest: line, column: 1, comments: &mut words.comments };
        match reader.words() {
            Ok(found) if found.is_empty() => {}
            Ok(found) => words.lines.push(Line { number: index + 1, words: found }),
            Err(error) => errors.push(error),
        }
    }
    words
}

fn without_mark(line: &str) -> &str {
    line.trim_start_matches('\u{feff}').trim()
}

/// Whether the whole line is a remark: it begins with one asterisk, or with a row of more than two.
fn is_remark(line: &str) -> bool {
    let line = without_mark(line);
    let asterisks = line.len() - line.trim_start_matches('*').len();
    asterisks == 1 || asterisks > 2
}

/// How many lines behind the first of these a comment is closed that begins there: at the first one whose only `**`
/// stands at its end.
fn end_of_comment(lines: &[&str]) -> Option<usize> {
    let line = lines.first()?;
    let opens = without_mark(line).strip_prefix("**").is_some_and(|rest| !rest.contains("**"));
    if !opens || is_remark(line) {
        return None;
    }
    for (index, line) in lines.iter().enumerate().skip(1).take(LONGEST_COMMENT_LINES) {
        let line = line.trim();
        if let Some(before) = line.strip_suffix("**")
            && !before.is_empty()
            && !before.contains("**")
            && !before.ends_with('*')
        {
            return Some(index);
        }
        // Another comment begins here: the one before was never closed.
        if line.starts_with('*') {
            return None;
        }
    }
    None
}

struct Reader<'a> {
    line: usize,
    rest: &'a str,
    column: usize,
    comments: &'a mut Vec<Comment>,
}

impl Reader<'_> {
    fn words(&mut self) -> Result<Vec<Word>, ScriptError> {
        let mut words = Vec::new();
        while let Some(first) = self.peek() {
            if first.is_whitespace() || first == '\u{feff}' {
                self.take();
            } else if self.rest.starts_with("**") {
                self.comment();
            } else {
                words.push(self.word()?);
            }
        }
        Ok(words)
    }

    /// A comment that is not closed reaches to the end of its line.
    fn comment(&mut self) {
        self.take();
        self.take();
        let mut text = String::new();
        while let Some(character) = self.peek() {
            if self.rest.starts_with("**") {
                self.take();
                self.take();
                if self.rest.starts_with('*') && !self.rest.starts_with("**") {
                    self.take();
                }
                break;
            }
            text.push(character);
            self.take();
        }
        self.comments.push(Comment { line: self.line, text: text.trim().to_owned() });
    }

    fn word(&mut self) -> Result<Word, ScriptError> {
        let mut word =
            Word { column: self.column, written: String::new(), quoted: false, pieces: Vec::new() };
        let whole = self.rest;
        let mut in_quotes = false;
        while let Some(character) = self.peek() {
            match character {
                '"' => {
                    word.quoted = true;
                    in_quotes = !in_quotes;
                    self.take();
                }
                '[' => self.variable(&mut word)?,
                _ if in_quotes => self.text(&mut word, character),
                _ if character.is_whitespace() || self.rest.starts_with("**") => break,
                _ => self.text(&mut word, character),
            }
        }
        let length = whole.len() - self.rest.len();
        whole.get(..length).unwrap_or(whole).clone_into(&mut word.written);
        if in_quotes {
            return Err(self.error(&word, Problem::OpenQuote));
        }
        Ok(word)
    }

    fn text(&mut self, word: &mut Word, character: char) {
        self.take();
        match word.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(character),
            _ => word.pieces.push(Piece::Text(character.to_string())),
        }
    }

    fn variable(&mut self, word: &mut Word) -> Result<(), ScriptError> {
        let name = self.rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name);
        let Some(name) = name.filter(|name| is_variable_name(name)) else {
            self.rest.split_whitespace().next().unwrap_or_default().clone_into(&mut word.written);
            return Err(self.error(word, Problem::OpenVariable));
        };
        for _ in 0..name.chars().count() + 2 {
            self.take();
        }
        word.pieces.push(Piece::Variable(name.to_owned()));
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) {
        let mut characters = self.rest.chars();
        if characters.next().is_some() {
            self.column += 1;
        }
        self.rest = characters.as_str();
    }

    fn error(&self, word: &Word, problem: Problem) -> ScriptError {
        ScriptError {
            place: ScriptPlace { line: self.line, column: word.column },
            word: word.written.clone(),
            problem,
        }
    }
}

/// `#`, or letters, digits, `_`, `$`, `.` and `-`.
pub(super) fn is_variable_name(name: &str) -> bool {
    name == "#"
        || (!name.is_empty()
            && name.chars().all(|character| character.is_ascii_alphanumeric() || "_$.-".contains(character)))
}
