//! Blanks, numbers and texts in a line.

use scrinium_line_wire::Cursor;

/// Passes over blanks; how many there were.
pub(crate) fn skip_blanks(cursor: &mut Cursor<'_>) -> usize {
    cursor.take_while(|byte| byte == b' ' || byte == b'\t').len()
}

/// A number in decimal digits, at most 20 of them.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    let valid = (1..=20).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    if !valid {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Text without control characters.
pub(crate) fn is_printable(text: &str) -> bool {
    !text.chars().any(|character| character.is_control())
}
