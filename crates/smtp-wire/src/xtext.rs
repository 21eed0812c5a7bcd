//! How text stands in the value of a parameter (RFC 3461, section 4): `+` and two capitals of hexadecimal for what
//! may not stand there itself.

use thiserror::Error;

/// A `+` without two capitals of hexadecimal behind it, or a byte that must not stand there itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the value is not valid xtext")]
pub struct XtextError;

/// The text as the value of a parameter.
#[must_use]
pub fn encode_xtext(text: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().map_or('0', char::from);
    let mut out = String::with_capacity(text.len());
    for byte in text {
        if plain(*byte) {
            out.push(char::from(*byte));
        } else {
            out.push('+');
            out.push(digit(byte >> 4));
            out.push(digit(byte & 15));
        }
    }
    out
}

/// The text that a value stands for.
///
/// # Errors
/// [`XtextError`]
pub fn decode_xtext(value: &[u8]) -> Result<Vec<u8>, XtextError> {
    let mut text = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'+' {
            // `=` may not stand there, but some clients write it.
            if !plain(*first) && *first != b'=' {
                return Err(XtextError);
            }
            text.push(*first);
            continue;
        }
        let (high, low, after) = match after {
            [high, low, after @ ..] => (hex(*high)?, hex(*low)?, after),
            _ => return Err(XtextError),
        };
        text.push(high << 4 | low);
        rest = after;
    }
    Ok(text)
}

fn plain(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~') && byte != b'+' && byte != b'='
}

fn hex(byte: u8) -> Result<u8, XtextError> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        // Lower case is not allowed, and occurs.
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(XtextError),
    }
}
