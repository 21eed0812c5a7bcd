//! BER as LDAP uses it (RFC 4511, section 5.1): tags of one octet, definite lengths, strings in one piece.
//!
//! A [`Reader`] looks at bytes that are there already and copies nothing. No length it reads leads to memory: an
//! element is a part of the bytes, or the message is refused.

use crate::limits::{Budget, Fault};

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const ENUMERATED: u8 = 0x0a;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// The tag `[n]` of a primitive element.
pub(crate) const fn context(number: u8) -> u8 {
    0x80 | number
}

/// The tag `[n]` of a constructed element.
pub(crate) const fn context_constructed(number: u8) -> u8 {
    0xa0 | number
}

/// The length octets at the beginning of `bytes`: how many they are, and the length they say. `None` if more must come.
///
/// Active Directory writes four octets whatever the length, so leading zeros are fine.
pub(crate) fn read_length(bytes: &[u8]) -> Result<Option<(usize, usize)>, Fault> {
    let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
    if *first < 0x80 {
        return Ok(Some((1, usize::from(*first))));
    }
    let octets = usize::from(*first & 0x7f);
    if octets == 0 {
        return Err(Fault::IndefiniteLength);
    }
    if octets > size_of::<u64>() {
        return Err(Fault::LongLength);
    }
    let Some(octets_of_length) = rest.get(..octets) else { return Ok(None) };
    let length = octets_of_length.iter().fold(0_u64, |length, octet| (length << 8) | u64::from(*octet));
    let length = usize::try_from(length).map_err(|_| Fault::LongLength)?;
    Ok(Some((1 + octets, length)))
}

/// Elements one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn peek(self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The next element's tag and contents.
    pub(crate) fn element(&mut self) -> Result<(u8, &'a [u8]), Fault> {
        let (tag, rest) = self.rest.split_first().ok_or(Fault::Truncated)?;
        if tag & 0x1f == 0x1f {
            return Err(Fault::LongTag);
        }
        let (octets, length) = read_length(rest)?.ok_or(Fault::Truncated)?;
        let rest = rest.get(octets..).ok_or(Fault::Truncated)?;
        let (contents, rest) = rest.split_at_checked(length).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok((*tag, contents))
    }

    /// The contents of the next element, which must have this tag.
    pub(crate) fn expect(&mut self, expected: u8) -> Result<&'a [u8], Fault> {
        match self.peek() {
            None => Err(Fault::Missing { expected }),
            Some(found) if found != expected => Err(Fault::Tag { expected, found }),
            Some(_) => self.element().map(|(_, contents)| contents),
        }
    }

    /// The contents of the next element, if it has this tag.
    pub(crate) fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, Fault> {
        if self.peek() == Some(tag) { self.expect(tag).map(Some) } else { Ok(None) }
    }

    /// What is inside the next element, which must have this tag. Elements behind those that are known are left out by
    /// those who read it: RFC 4511, section 4, says that they may come.
    pub(crate) fn inside(&mut self, tag: u8) -> Result<Self, Fault> {
        self.expect(tag).map(Self::new)
    }

    pub(crate) fn enumerated(&mut self) -> Result<u32, Fault> {
        unsigned(self.expect(ENUMERATED)?)
    }

    /// An integer from 0 to 2³¹-1, which is every number of a request.
    pub(crate) fn number(&mut self) -> Result<u32, Fault> {
        unsigned(self.expect(INTEGER)?)
    }

    pub(crate) fn boolean(&mut self) -> Result<bool, Fault> {
        boolean(self.expect(BOOLEAN)?)
    }

    pub(crate) fn octets(&mut self) -> Result<Vec<u8>, Fault> {
        self.expect(OCTET_STRING).map(<[u8]>::to_vec)
    }

    pub(crate) fn text(&mut self) -> Result<String, Fault> {
        text(self.expect(OCTET_STRING)?)
    }

    /// All elements that are left, read one by one; each counts.
    pub(crate) fn list<T>(
        mut self,
        budget: &mut Budget,
        read: impl Fn(&mut Self) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut list = Vec::new();
        while !self.is_empty() {
            budget.take_item()?;
            list.push(read(&mut self)?);
        }
        Ok(list)
    }
}

/// An integer of at most eight octets that fits into 32 bits.
pub(crate) fn integer(contents: &[u8]) -> Result<i32, Fault> {
    let (first, _) = contents.split_first().ok_or(Fault::Integer)?;
    if contents.len() > size_of::<i64>() {
        return Err(Fault::Integer);
    }
    let sign = if first & 0x80 == 0 { 0_i64 } else { -1_i64 };
    let value = contents.iter().fold(sign, |value, octet| (value << 8) | i64::from(*octet));
    i32::try_from(value).map_err(|_| Fault::Integer)
}

fn unsigned(contents: &[u8]) -> Result<u32, Fault> {
    u32::try_from(integer(contents)?).map_err(|_| Fault::Integer)
}

pub(crate) fn boolean(contents: &[u8]) -> Result<bool, Fault> {
    match contents {
        [octet] => Ok(*octet != 0),
        _ => Err(Fault::Boolean),
    }
}

pub(crate) fn text(contents: &[u8]) -> Result<String, Fault> {
    std::str::from_utf8(contents).map(str::to_owned).map_err(|_| Fault::Text)
}

/// Writes elements.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn element(&mut self, tag: u8, contents: &[u8]) {
        self.bytes.push(tag);
        push_length(&mut self.bytes, contents.len());
        self.bytes.extend_from_slice(contents);
    }

    /// An element with what `write` puts inside.
    pub(crate) fn nested(&mut self, tag: u8, write: impl FnOnce(&mut Self)) {
        self.bytes.push(tag);
        let start = self.bytes.len();
        write(self);
        let mut length = Vec::with_capacity(5);
        push_length(&mut length, self.bytes.len() - start);
        self.bytes.splice(start..start, length);
    }

    pub(crate) fn octets(&mut self, contents: &[u8]) {
        self.element(OCTET_STRING, contents);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.octets(text.as_bytes());
    }

    pub(crate) fn boolean(&mut self, value: bool) {
        self.element(BOOLEAN, boolean_octet(value));
    }

    pub(crate) fn integer(&mut self, tag: u8, value: i64) {
        let octets = value.to_be_bytes();
        // The shortest form: an octet goes while it only repeats the sign of the one behind it.
        let mut shortest = octets.as_slice();
        while let [first, second, ..] = shortest {
            let repeats = (*first == 0 && second & 0x80 == 0) || (*first == 0xff && second & 0x80 != 0);
            if !repeats {
                break;
            }
            shortest = shortest.get(1..).unwrap_or_default();
        }
        self.element(tag, shortest);
    }

    pub(crate) fn optional(&mut self, tag: u8, contents: Option<&[u8]>) {
        if let Some(contents) = contents {
            self.element(tag, contents);
        }
    }
}

/// TRUE is FF (RFC 4511, section 5.1).
pub(crate) fn boolean_octet(value: bool) -> &'static [u8] {
    if value { &[0xff] } else { &[0] }
}

fn push_length(bytes: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => bytes.push(short),
        _ => {
            let octets = (length as u64).to_be_bytes();
            let zeros = octets.iter().take_while(|octet| **octet == 0).count();
            let octets = octets.get(zeros..).unwrap_or_default();
            bytes.push(0x80 | u8::try_from(octets.len()).unwrap_or(8));
            bytes.extend_from_slice(octets);
        }
    }
}
