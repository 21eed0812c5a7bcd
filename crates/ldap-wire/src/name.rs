//! Distinguished names as text (RFC 4514).

use std::fmt;

use scrinium_line_wire::Cursor;
use thiserror::Error;

use crate::ber::{OCTET_STRING, Reader, Writer};
use crate::filter::Identifier;
use crate::text::{hex_byte, skip_spaces, write_escaped};

/// The longest name that is read, in bytes.
pub const NAME_MAX_BYTES: usize = 8192;

/// Parts of a name, and values of a part, that are read.
pub const NAME_MAX_PARTS: usize = 128;

/// Why a text is no distinguished name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("at byte {at} of the name: {what}")]
pub struct NameError {
    /// Bytes before the place.
    pub at: usize,
    /// What is wrong there.
    pub what: NameFault,
}

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameFault {
    /// More than [`NAME_MAX_BYTES`].
    #[error("a name has at most 8192 bytes")]
    TooLong,
    /// More than [`NAME_MAX_PARTS`].
    #[error("a name has at most 128 parts")]
    TooManyParts,
    /// No attribute and `=`.
    #[error("a part of a name is attribute=value")]
    Part,
    /// A value holds what has to be escaped, or an escape that is not valid.
    #[error("a value has \" + , ; < > and \\ behind a \\")]
    Value,
    /// What follows a `#` is not a text in BER.
    #[error("behind # stands a text in BER, in hexadecimal digits")]
    Hexadecimal,
}

/// The name of an entry: its own part first, then those of the entries above it. The root has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct DistinguishedName {
    /// The parts, the entry's own first.
    pub parts: Vec<RelativeName>,
}

/// A part of a name: an attribute and its value, mostly one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RelativeName {
    first: (Identifier, Vec<u8>),
    more: Vec<(Identifier, Vec<u8>)>,
}

impl RelativeName {
    /// A part with one attribute.
    #[must_use]
    pub fn new(attribute: Identifier, value: &[u8]) -> Self {
        Self { first: (attribute, value.to_vec()), more: Vec::new() }
    }

    /// The same part with one more attribute.
    #[must_use]
    pub fn and(mut self, attribute: Identifier, value: &[u8]) -> Self {
        self.more.push((attribute, value.to_vec()));
        self
    }

    /// The attributes with their values.
    pub fn values(&self) -> impl Iterator<Item = (&Identifier, &[u8])> {
        std::iter::once(&self.first).chain(&self.more).map(|(attribute, value)| (attribute, value.as_slice()))
    }
}

impl DistinguishedName {
    /// Reads a name. Spaces around `=`, `,` and `+` are left out (RFC 2253, section 4), and `;` separates parts as `,` does.
    ///
    /// # Errors
    /// [`NameError`]
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.len() > NAME_MAX_BYTES {
            return Err(NameError { at: NAME_MAX_BYTES, what: NameFault::TooLong });
        }
        let mut cursor = Cursor::new(text.as_bytes());
        read_name(&mut cursor).map_err(|what| NameError { at: cursor.at(), what })
    }

    /// Whether this is the root of all names, which has no part.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.parts.is_empty()
    }

    /// The name of the entry above; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.parts.split_first().map(|(_, above)| Self { parts: above.to_vec() })
    }

    /// The name of an entry below this one.
    #[must_use]
    pub fn child(&self, part: RelativeName) -> Self {
        let mut parts = Vec::with_capacity(self.parts.len() + 1);
        parts.push(part);
        parts.extend_from_slice(&self.parts);
        Self { parts }
    }
}

fn read_name(cursor: &mut Cursor<'_>) -> Result<DistinguishedName, NameFault> {
    let mut parts: Vec<RelativeName> = Vec::new();
    let mut values = 0_usize;
    skip_spaces(cursor);
    if cursor.is_empty() {
        return Ok(DistinguishedName::default());
    }
    let mut joins = false;
    loop {
        values += 1;
        if values > NAME_MAX_PARTS {
            return Err(NameFault::TooManyParts);
        }
        let (attribute, value) = read_part(cursor)?;
        match parts.last_mut() {
            Some(part) if joins => part.more.push((attribute, value)),
            _ => parts.push(RelativeName::new(attribute, &value)),
        }
        match cursor.next() {
            None => return Ok(DistinguishedName { parts }),
            Some(b'+') => joins = true,
            Some(b',' | b';') => joins = false,
            Some(_) => return Err(NameFault::Value),
        }
    }
}

fn read_part(cursor: &mut Cursor<'_>) -> Result<(Identifier, Vec<u8>), NameFault> {
    skip_spaces(cursor);
    let name = cursor.take_while(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let name = std::str::from_utf8(name).map_err(|_| NameFault::Part)?;
    // RFC 2253, section 4: names of types by number may begin with "OID.".
    let name = match name.split_at_checked(4) {
        Some((oid, number)) if oid.eq_ignore_ascii_case("oid.") => number,
        _ => name,
    };
    let attribute = Identifier::parse(name).ok_or(NameFault::Part)?;
    skip_spaces(cursor);
    if !cursor.take(b'=') {
        return Err(NameFault::Part);
    }
    skip_spaces(cursor);
    let value = match cursor.peek() {
        Some(b'#') => read_hexadecimal(cursor)?,
        Some(b'"') => read_quoted(cursor)?,
        _ => read_value(cursor)?,
    };
    Ok((attribute, value))
}

/// Behind `#`: a text in BER (section 2.4).
fn read_hexadecimal(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, NameFault> {
    cursor.next();
    let mut bytes = Vec::new();
    while cursor.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
        bytes.push(hex_byte(cursor).ok_or(NameFault::Hexadecimal)?);
    }
    skip_spaces(cursor);
    let mut reader = Reader::new(&bytes);
    let (tag, contents) = reader.element().map_err(|_| NameFault::Hexadecimal)?;
    // OCTET STRING, UTF8String, NumericString, PrintableString, TeletexString and IA5String, whose ASCII is the same.
    let is_text = matches!(tag, OCTET_STRING | 0x0c | 0x12 | 0x13 | 0x14 | 0x16);
    if is_text && reader.is_empty() { Ok(contents.to_vec()) } else { Err(NameFault::Hexadecimal) }
}

/// Between quotation marks, as LDAP of version 2 wrote values (RFC 2253, section 4).
fn read_quoted(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, NameFault> {
    cursor.next();
    let mut value = Vec::new();
    loop {
        value.extend_from_slice(cursor.take_while(|byte| byte != b'"' && byte != b'\\' && byte != 0));
        match cursor.next() {
            Some(b'"') => break,
            Some(b'\\') => value.push(read_escape(cursor)?),
            _ => return Err(NameFault::Value),
        }
    }
    skip_spaces(cursor);
    Ok(value)
}

fn read_value(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, NameFault> {
    let mut value = Vec::new();
    // Spaces at the end are no part of a value unless they are escaped.
    let mut kept = 0;
    loop {
        match cursor.peek() {
            None | Some(b',' | b';' | b'+') => break,
            Some(b'"' | b'<' | b'>' | 0) => return Err(NameFault::Value),
            Some(b'\\') => {
                cursor.next();
                value.push(read_escape(cursor)?);
                kept = value.len();
            }
            Some(byte) => {
                cursor.next();
                value.push(byte);
                if byte != b' ' {
                    kept = value.len();
                }
            }
        }
    }
    value.truncate(kept);
    Ok(value)
}

/// Behind `\`: a character that has a meaning, or two hexadecimal digits.
fn read_escape(cursor: &mut Cursor<'_>) -> Result<u8, NameFault> {
    match cursor.peek() {
        Some(byte) if b" \"#+,;<=>\\".contains(&byte) => {
            cursor.next();
            Ok(byte)
        }
        _ => hex_byte(cursor).ok_or(NameFault::Value),
    }
}

impl fmt::Display for DistinguishedName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, part) in self.parts.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(formatter, "{comma}{part}")?;
        }
        Ok(())
    }
}

impl fmt::Display for RelativeName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (attribute, value)) in self.values().enumerate() {
            let plus = if number == 0 { "" } else { "+" };
            write!(formatter, "{plus}{attribute}=")?;
            write_value(formatter, attribute, value)?;
        }
        Ok(())
    }
}

fn write_value(formatter: &mut fmt::Formatter<'_>, attribute: &Identifier, value: &[u8]) -> fmt::Result {
    // Section 2.4: the value of a type that is a number goes in BER.
    if attribute.as_str().starts_with(|first: char| first.is_ascii_digit()) {
        let mut writer = Writer::default();
        writer.octets(value);
        formatter.write_str("#")?;
        return writer.into_bytes().iter().try_for_each(|byte| write!(formatter, "{byte:02x}"));
    }
    let (lead, rest) = match value.split_first() {
        Some((first @ (b' ' | b'#'), rest)) => (Some(*first), rest),
        _ => (None, value),
    };
    if let Some(lead) = lead {
        write!(formatter, "\\{}", char::from(lead))?;
    }
    let (rest, ends_with_space) = match rest.split_last() {
        Some((b' ', rest)) => (rest, true),
        _ => (rest, false),
    };
    for chunk in rest.utf8_chunks() {
        for character in chunk.valid().chars() {
            if "\"+,;<>\\".contains(character) {
                write!(formatter, "\\{character}")?;
            } else {
                let mut encoded = [0; 4];
                let bytes = character.encode_utf8(&mut encoded).as_bytes();
                write_escaped(formatter, bytes, '\\', char::is_control)?;
            }
        }
        write_escaped(formatter, chunk.invalid(), '\\', char::is_control)?;
    }
    formatter.write_str(if ends_with_space { "\\ " } else { "" })
}
