//! Spaces and hexadecimal digits in a text, and values that are escaped in one.

use std::fmt;

use scrinium_line_wire::Cursor;

pub(crate) fn skip_spaces(cursor: &mut Cursor<'_>) {
    cursor.take_while(|byte| byte == b' ');
}

/// A byte as two hexadecimal digits.
pub(crate) fn hex_byte(cursor: &mut Cursor<'_>) -> Option<u8> {
    let (high, low) = (digit(cursor.next()?)?, digit(cursor.next()?)?);
    Some((high << 4) | low)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Writes bytes as text: UTF-8 as it is, but for characters that `is_special`; those, and bytes that are no UTF-8, become
/// hexadecimal digits behind `mark`.
pub(crate) fn write_escaped(
    output: &mut impl fmt::Write,
    bytes: &[u8],
    mark: char,
    is_special: impl Fn(char) -> bool,
) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_special(character) {
                let mut encoded = [0; 4];
                write_hex(output, character.encode_utf8(&mut encoded).as_bytes(), mark)?;
            } else {
                output.write_char(character)?;
            }
        }
        write_hex(output, chunk.invalid(), mark)?;
    }
    Ok(())
}

fn write_hex(output: &mut impl fmt::Write, bytes: &[u8], mark: char) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(output, "{mark}{byte:02x}"))
}

/// [`write_escaped`] into a text of its own.
pub(crate) fn escaped(bytes: &[u8], mark: char, is_special: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    // Writing into a text never fails.
    let _ = write_escaped(&mut text, bytes, mark, is_special);
    text
}
