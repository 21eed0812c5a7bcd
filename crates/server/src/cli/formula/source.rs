//! The text of a formula or a document, and a place in it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::super::{Failure, Terminal};
use super::arguments::FormulaText;

/// A longer text is neither a formula nor a document.
const TEXT_LIMIT_BYTES: u64 = 64 << 20;

/// Stands for standard input.
pub(super) const INPUT: &str = "-";

/// A line is shown so far to the left and to the right of the place in it.
const SHOWN_CHARACTERS: usize = 50;

/// # Errors
/// [`Failure::Work`] if it cannot be read.
pub(super) fn formula(text: &FormulaText) -> Result<String, Failure> {
    match (&text.formula, &text.file) {
        (Some(formula), _) if formula == INPUT => input(),
        (Some(formula), _) => Ok(formula.clone()),
        (None, Some(path)) => file(path),
        (None, None) => Ok(String::new()),
    }
}

pub(super) fn input() -> Result<String, Failure> {
    read(io::stdin().lock(), "standard input")
}

pub(super) fn file(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Failure::Work(format!("cannot read {name}: {error}")))?;
    read(file, &name)
}

fn read(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = from.take(TEXT_LIMIT_BYTES).read_to_string(&mut text);
    let bytes = read.map_err(|error| Failure::Work(format!("cannot read {name}: {error}")))?;
    if bytes as u64 == TEXT_LIMIT_BYTES {
        return Err(Failure::Work(format!("{name} is longer than {} MB", TEXT_LIMIT_BYTES >> 20)));
    }
    Ok(text)
}

/// A line of the text, and below it a caret under the column, both counted from 1; each with the end of a line
/// before it. Nothing of an empty line.
pub(super) fn place(text: &str, (line, column): (u32, u32), terminal: &Terminal) -> String {
    let counted_from_0 = |number: u32| usize::try_from(number).map_or(0, |number| number.saturating_sub(1));
    let line = text.lines().nth(counted_from_0(line)).unwrap_or("");
    let column = counted_from_0(column);
    let (first, last) = (column.saturating_sub(SHOWN_CHARACTERS), column + SHOWN_CHARACTERS);
    let shown = |(place, character): (usize, char)| match character {
        _ if (place == first && first > 0) || place == last => '…',
        // What a terminal would not show in one place is a blank.
        control if control.is_control() => ' ',
        other => other,
    };
    let shown: String = line.chars().enumerate().skip(first).take(last - first + 1).map(shown).collect();
    if shown.trim().is_empty() {
        return String::new();
    }
    let caret = terminal.alarming("^");
    format!("\n    {}\n    {}{caret}", shown.trim_end(), " ".repeat(column - first))
}
