//! Flags and keywords (RFC 9051, section 2.3.2).

use std::fmt;

/// A flag: `\Seen`, `$Forwarded`, `\*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Flag(String);

impl Flag {
    /// A flag; `None` if it is no atom, with a `\` before it for those of the protocol. Those come in one spelling.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let name = text.strip_prefix('\\').unwrap_or(text);
        let valid =
            text == "\\*" || (!name.is_empty() && name.len() <= 256 && name.bytes().all(is_atom_byte));
        if !valid {
            return None;
        }
        const KNOWN: [&str; 6] = ["\\Seen", "\\Answered", "\\Flagged", "\\Deleted", "\\Draft", "\\Recent"];
        let known = KNOWN.iter().find(|known| known.eq_ignore_ascii_case(text));
        Some(Self(known.map_or_else(|| text.to_owned(), |known| (*known).to_owned())))
    }

    /// The flag as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is this one, in any case.
    #[must_use]
    pub fn is(&self, flag: &str) -> bool {
        self.0.eq_ignore_ascii_case(flag)
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What an atom is made of (RFC 9051, section 9, `ATOM-CHAR`).
pub(crate) fn is_atom_byte(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~') && !b"(){%*\"\\]".contains(&byte)
}
