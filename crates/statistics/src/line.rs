//! Text of others as part of a line that people and programs read.

use std::borrow::Cow;

/// Stands where a text was cut.
const CUT: &str = "…";

/// A text as part of one line: nothing in it begins another line, moves a terminal's cursor or turns the direction of
/// what stands around it, and it has about `bytes_max` bytes at most.
///
/// Control characters (C0, DEL, C1), line and paragraph separators and those that turn the direction of text (Unicode
/// UAX #9) become `\n`, `\r`, `\t` or `\u{1b}`, and a backslash two, so that nothing else looks like these.
#[must_use]
pub fn one_line(text: &str, bytes_max: usize) -> Cow<'_, str> {
    let kept = text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default();
    if kept.len() == text.len() && !text.chars().any(|character| character == '\\' || breaks_line(character))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(kept.len() + 16);
    for character in kept.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if breaks_line(other) => out.extend(other.escape_unicode()),
            other => out.push(other),
        }
    }
    if kept.len() < text.len() {
        out.push_str(CUT);
    }
    Cow::Owned(out)
}

/// Whether a character may not stand in a line as it is.
#[must_use]
pub fn breaks_line(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}
