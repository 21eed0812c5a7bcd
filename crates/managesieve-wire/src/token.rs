//! Words, strings and numbers (RFC 5804, section 4).

use std::fmt;

use scrinium_line_wire::{ClientLine, Cursor, SaslError, client_line};

use crate::frame::{Frame, Part};

/// Longest quoted string (RFC 5804, section 4); longer ones are literals.
const QUOTED_MAX_BYTES: usize = 1_024;

/// A piece of a frame.
#[derive(Clone, PartialEq, Eq)]
pub enum Token {
    /// A word without quotation marks, in capitals.
    Word(String),
    /// A string, quoted or a literal.
    Text(Vec<u8>),
    /// A number.
    Number(u32),
    /// `(`
    Open,
    /// `)`
    Close,
}

/// A string may be a password, which no log may show.
impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(formatter, "Word({word})"),
            Self::Text(text) => write!(formatter, "Text({} bytes)", text.len()),
            Self::Number(number) => write!(formatter, "Number({number})"),
            Self::Open => formatter.write_str("Open"),
            Self::Close => formatter.write_str("Close"),
        }
    }
}

/// The tokens of a frame; `None` if it is not of the grammar.
pub(crate) fn tokens(parts: &[Part]) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    for part in parts {
        match part {
            Part::Literal(text) => {
                found.push(Token::Text(text.clone()));
            }
            Part::Line(line) => read_line(line, &mut found)?,
        }
    }
    Some(found)
}

fn read_line(line: &[u8], found: &mut Vec<Token>) -> Option<()> {
    let mut cursor = Cursor::new(line);
    while !cursor.is_empty() {
        if cursor.take(b' ') {
            continue;
        }
        found.push(if cursor.take(b'(') {
            Token::Open
        } else if cursor.take(b')') {
            Token::Close
        } else if cursor.take(b'"') {
            Token::Text(quoted(&mut cursor)?)
        } else {
            word(&mut cursor)?
        });
    }
    Some(())
}

fn word(cursor: &mut Cursor<'_>) -> Option<Token> {
    let word = cursor.take_while(|byte| byte.is_ascii_alphanumeric() || b"-_/.!".contains(&byte));
    // A word ends with a blank or a bracket.
    if word.is_empty() || cursor.peek().is_some_and(|next| !b" ()".contains(&next)) {
        return None;
    }
    let word = std::str::from_utf8(word).ok()?;
    Some(if word.bytes().all(|byte| byte.is_ascii_digit()) {
        Token::Number(word.parse().ok()?)
    } else {
        Token::Word(word.to_ascii_uppercase())
    })
}

/// The rest of a quoted string.
fn quoted(cursor: &mut Cursor<'_>) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        match cursor.next()? {
            b'"' => return is_quotable(&text).then_some(text),
            b'\\' => text.push(cursor.next().filter(|escaped| matches!(escaped, b'"' | b'\\'))?),
            other => text.push(other),
        }
    }
}

/// Whether a quoted string can hold it.
fn is_quotable(text: &[u8]) -> bool {
    text.len() <= QUOTED_MAX_BYTES
        && std::str::from_utf8(text).is_ok_and(|text| !text.contains(['\0', '\r', '\n']))
}

/// Writes a string: quoted where that is possible, a literal otherwise, as a client announces it if `of_client`.
pub(crate) fn write_string(text: &[u8], of_client: bool, out: &mut Vec<u8>) {
    if is_quotable(text) {
        out.push(b'"');
        for byte in text {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        out.push(b'"');
        return;
    }
    write_literal(text, of_client, out);
}

pub(crate) fn write_literal(text: &[u8], of_client: bool, out: &mut Vec<u8>) {
    let plus = if of_client { "+" } else { "" };
    out.extend_from_slice(format!("{{{}{plus}}}\r\n", text.len()).as_bytes());
    out.extend_from_slice(text);
}

/// Writes a text that a server sends, as the answer of GETSCRIPT has it (RFC 5804, section 2.9): always a literal.
pub fn write_text(text: &[u8], out: &mut Vec<u8>) {
    write_literal(text, false, out);
    out.extend_from_slice(b"\r\n");
}

/// Writes a challenge of a server (RFC 5804, section 2.1), whose bytes become base64 here.
pub fn write_sasl_challenge(challenge: &[u8], out: &mut Vec<u8>) {
    write_string(ClientLine::Response(challenge.to_vec()).encode().as_bytes(), false, out);
    out.extend_from_slice(b"\r\n");
}

/// Writes a line of a client in an exchange (RFC 5804, section 2.1).
pub fn write_sasl_line(line: &ClientLine, out: &mut Vec<u8>) {
    write_string(line.encode().as_bytes(), true, out);
    out.extend_from_slice(b"\r\n");
}

impl Frame {
    /// Reads a line of a client in an exchange of SASL: a string in base64, or `"*"` where the client gives up.
    ///
    /// # Errors
    /// [`SaslError::NotBase64`]
    pub fn sasl_line(&self) -> Result<ClientLine, SaslError> {
        match self.tokens().as_deref() {
            Some([Token::Text(text)]) => client_line(text),
            _ => Err(SaslError::NotBase64),
        }
    }
}
