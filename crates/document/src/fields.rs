//! A document's own fields as one record in which a field is found without parsing the others.
//!
//! Layout, version 1 (integers are LEB128, lengths are bytes):
//!
//! ```text
//! 1 byte    version = 1
//! varint    number of fields
//! varint    length of the table
//! varint    number of values stored outside
//! varint    length of all names
//! table     per field: varint name length, varint value; value = (length << 1), or 1 if stored outside
//! outside   per value stored outside, in order: 32 bytes BLAKE3 of its JSON text, 8 bytes length (big endian)
//! names     one after the other, UTF-8, without escapes
//! values    the JSON text of each value, one after the other
//! ```
//!
//! Fields keep the order, and numbers and strings the spelling, in which the client sent them.

use scrinium_assertion::never;

use crate::DocumentError;
use crate::binary::{read_bytes, read_varint, write_varint};
use crate::json::JsonWriter;

const VERSION: u8 = 1;
const OUTSIDE_BYTES: usize = 40;

/// The shortest JSON text, in bytes, that may be stored outside its record. A revision's digest takes
/// values from this length on by their own BLAKE3 hash, so that where a value lies never shows in it.
pub const OUTSIDE_MIN_BYTES: usize = 1024;

/// Names a value that is kept by its content, away from the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutsideValue {
    /// BLAKE3 of the value's JSON text.
    pub digest: [u8; 32],
    /// Length of the JSON text in bytes, at least [`OUTSIDE_MIN_BYTES`].
    pub length: u64,
}

/// One field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// Its JSON text.
    Json(&'a str),
    /// It is stored outside.
    Outside(OutsideValue),
}

impl<'a> FieldValue<'a> {
    /// The JSON text, if it is in the record.
    #[must_use]
    pub fn json(self) -> Option<&'a str> {
        match self {
            Self::Json(json) => Some(json),
            Self::Outside(_) => None,
        }
    }

    /// Length of the JSON text in bytes, wherever it lies.
    #[must_use]
    pub fn length(self) -> u64 {
        match self {
            Self::Json(json) => json.len() as u64,
            Self::Outside(outside) => outside.length,
        }
    }

    /// Calls `take` with bytes that stand for the value: short values themselves, long ones hashed.
    pub(crate) fn with_identity(self, take: impl FnOnce(&[u8])) {
        match self {
            Self::Json(json) if json.len() < OUTSIDE_MIN_BYTES => take(json.as_bytes()),
            Self::Json(json) => {
                take(&outside_identity(*blake3::hash(json.as_bytes()).as_bytes(), json.len() as u64));
            }
            Self::Outside(outside) => take(&outside_identity(outside.digest, outside.length)),
        }
    }
}

/// Longer than any digest alone and shorter than any value that is hashed, led by a byte that no JSON text has.
fn outside_identity(digest: [u8; 32], length: u64) -> Vec<u8> {
    let mut identity = vec![0];
    identity.extend_from_slice(&digest);
    identity.extend_from_slice(&length.to_be_bytes());
    identity
}

/// The fields of a document in an encoded record, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    count: usize,
    names_bytes: usize,
    table: &'a [u8],
    outside: &'a [u8],
    text: &'a str,
}

impl<'a> Fields<'a> {
    /// Opens an encoded record, checking its table and its UTF-8 but parsing no value.
    ///
    /// # Errors
    /// [`DocumentError::Damaged`] or [`DocumentError::NewerFormat`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DocumentError> {
        let damaged = |detail| DocumentError::Damaged { what: "fields", detail };
        let (&version, mut rest) = bytes.split_first().ok_or_else(|| damaged("no bytes"))?;
        if version > VERSION {
            return Err(DocumentError::NewerFormat { what: "fields", version, newest: VERSION });
        }
        if version != VERSION {
            return Err(damaged("version"));
        }
        let mut number = || {
            let value = read_varint(&mut rest).ok_or_else(|| damaged("header"))?;
            usize::try_from(value).map_err(|_| damaged("header"))
        };
        let (count, table_bytes, outside_count, names_bytes) = (number()?, number()?, number()?, number()?);
        let table = read_bytes(&mut rest, table_bytes).ok_or_else(|| damaged("table"))?;
        let outside = outside_count
            .checked_mul(OUTSIDE_BYTES)
            .and_then(|length| read_bytes(&mut rest, length))
            .ok_or_else(|| damaged("outside values"))?;
        let text = std::str::from_utf8(rest).map_err(|_| damaged("UTF-8"))?;
        let fields = Self { count, names_bytes, table, outside, text };
        fields.check(outside_count).map_err(damaged)?;
        Ok(fields)
    }

    fn check(&self, outside_count: usize) -> Result<(), &'static str> {
        let mut walk = Walk::new(self);
        for _ in 0..self.count {
            let slot = walk.step().ok_or("table")?;
            slot.name(self).ok_or("name")?;
            slot.value(self).ok_or("value")?;
        }
        let ends = walk.table.is_empty()
            && walk.name_at == self.names_bytes
            && walk.value_at == self.text.len()
            && walk.outside_at == outside_count;
        if ends { Ok(()) } else { Err("lengths") }
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The field's JSON text; `None` if there is no such field or it is stored outside
    /// ([`value`](Self::value) tells which).
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.value(name).and_then(FieldValue::json)
    }

    /// The field's value.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<FieldValue<'a>> {
        self.find(|slot| {
            slot.name_bytes == name.len() && slot.name(self).is_some_and(|candidate| candidate == name)
        })
    }

    /// The first field's value whose name equals `name` without regard to letter case.
    #[must_use]
    pub fn value_ignore_case(&self, name: &str) -> Option<FieldValue<'a>> {
        self.find(|slot| slot.name(self).is_some_and(|candidate| equal_ignore_case(candidate, name)))
    }

    fn find(&self, fits: impl Fn(&Slot) -> bool) -> Option<FieldValue<'a>> {
        let mut walk = Walk::new(self);
        while let Some(slot) = walk.step() {
            if fits(&slot) {
                return slot.value(self);
            }
        }
        None
    }

    /// All fields in the client's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, FieldValue<'a>)> + Clone + use<'a> {
        let fields = *self;
        let mut walk = Walk::new(self);
        std::iter::from_fn(move || {
            let slot = walk.step()?;
            Some((slot.name(&fields)?, slot.value(&fields)?))
        })
    }

    /// Whether a value is stored outside.
    #[must_use]
    pub fn has_outside(&self) -> bool {
        !self.outside.is_empty()
    }

    /// Length of all values' JSON text in bytes, those stored outside included.
    #[must_use]
    pub fn value_bytes(&self) -> u64 {
        self.iter().map(|(_, value)| value.length()).sum()
    }

    /// Appends the members `"name":value,"name":value` without braces, each preceded by a comma unless `first`.
    /// Values stored outside are appended by `outside`.
    ///
    /// # Errors
    /// Only those of `outside`.
    pub fn write_members<E>(
        &self,
        out: &mut JsonWriter,
        mut first: bool,
        mut outside: impl FnMut(OutsideValue, &mut JsonWriter) -> Result<(), E>,
    ) -> Result<(), E> {
        for (name, value) in self.iter() {
            if !first {
                out.literal(",");
            }
            first = false;
            out.string(name).literal(":");
            match value {
                FieldValue::Json(json) => {
                    out.stored(json);
                }
                FieldValue::Outside(value) => outside(value, out)?,
            }
        }
        Ok(())
    }

    /// Appends the fields as one JSON object. Values stored outside are appended by `outside`.
    ///
    /// # Errors
    /// Only those of `outside`.
    pub fn write_json<E>(
        &self,
        out: &mut JsonWriter,
        outside: impl FnMut(OutsideValue, &mut JsonWriter) -> Result<(), E>,
    ) -> Result<(), E> {
        out.literal("{");
        self.write_members(out, true, outside)?;
        out.literal("}");
        Ok(())
    }

    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_owned(&self) -> FieldsBuf {
        FieldsBuf::build(self.iter())
    }
}

/// Where the table's walk stands.
#[derive(Clone)]
struct Walk<'a> {
    table: &'a [u8],
    name_at: usize,
    value_at: usize,
    outside_at: usize,
}

struct Slot {
    name_at: usize,
    name_bytes: usize,
    place: FieldPlace,
}

enum FieldPlace {
    Text { at: usize, bytes: usize },
    Outside { index: usize },
}

impl<'a> Walk<'a> {
    fn new(fields: &Fields<'a>) -> Self {
        Self { table: fields.table, name_at: 0, value_at: fields.names_bytes, outside_at: 0 }
    }

    fn step(&mut self) -> Option<Slot> {
        let name_bytes = usize::try_from(read_varint(&mut self.table)?).ok()?;
        let value = read_varint(&mut self.table)?;
        let name_at = self.name_at;
        self.name_at = name_at.checked_add(name_bytes)?;
        let place = match value {
            1 => {
                self.outside_at += 1;
                FieldPlace::Outside { index: self.outside_at - 1 }
            }
            length if length % 2 == 0 => {
                let bytes = usize::try_from(length >> 1).ok()?;
                let at = self.value_at;
                self.value_at = at.checked_add(bytes)?;
                FieldPlace::Text { at, bytes }
            }
            _ => return None,
        };
        Some(Slot { name_at, name_bytes, place })
    }
}

impl Slot {
    fn name<'a>(&self, fields: &Fields<'a>) -> Option<&'a str> {
        let end = self.name_at + self.name_bytes;
        if end > fields.names_bytes {
            return None;
        }
        fields.text.get(self.name_at..end)
    }

    fn value<'a>(&self, fields: &Fields<'a>) -> Option<FieldValue<'a>> {
        match self.place {
            FieldPlace::Text { at, bytes } => {
                fields.text.get(at..at.checked_add(bytes)?).map(FieldValue::Json)
            }
            FieldPlace::Outside { index } => {
                let mut entry = fields.outside.get(index.checked_mul(OUTSIDE_BYTES)?..)?;
                let digest = read_bytes(&mut entry, 32)?.try_into().ok()?;
                let length = u64::from_be_bytes(read_bytes(&mut entry, 8)?.try_into().ok()?);
                Some(FieldValue::Outside(OutsideValue { digest, length }))
            }
        }
    }
}

/// The fields of a document in an encoded record, owned.
#[derive(Clone, PartialEq, Eq)]
pub struct FieldsBuf {
    bytes: Vec<u8>,
}

impl FieldsBuf {
    /// Builds the record. The values must be JSON text (as [`crate::json::members`] gives it), names must differ.
    #[must_use]
    pub fn build<'a>(fields: impl Iterator<Item = (&'a str, FieldValue<'a>)> + Clone) -> Self {
        let (mut table, mut outside) = (Vec::new(), Vec::new());
        let (mut count, mut names_bytes, mut values_bytes) = (0u64, 0usize, 0usize);
        for (name, value) in fields.clone() {
            count += 1;
            names_bytes += name.len();
            write_varint(&mut table, name.len() as u64);
            match value {
                FieldValue::Json(json) => {
                    values_bytes += json.len();
                    write_varint(&mut table, (json.len() as u64) << 1);
                }
                FieldValue::Outside(value) => {
                    table.push(1);
                    outside.extend_from_slice(&value.digest);
                    outside.extend_from_slice(&value.length.to_be_bytes());
                }
            }
        }
        let mut bytes = Vec::with_capacity(table.len() + outside.len() + names_bytes + values_bytes + 32);
        bytes.push(VERSION);
        write_varint(&mut bytes, count);
        write_varint(&mut bytes, table.len() as u64);
        write_varint(&mut bytes, (outside.len() / OUTSIDE_BYTES) as u64);
        write_varint(&mut bytes, names_bytes as u64);
        bytes.extend_from_slice(&table);
        bytes.extend_from_slice(&outside);
        fields.clone().for_each(|(name, _)| bytes.extend_from_slice(name.as_bytes()));
        fields
            .filter_map(|(_, value)| value.json())
            .for_each(|json| bytes.extend_from_slice(json.as_bytes()));
        Self { bytes }
    }

    /// Builds the record from names and JSON texts.
    #[must_use]
    pub fn from_json<N: AsRef<str>, V: AsRef<str>>(fields: &[(N, V)]) -> Self {
        Self::build(fields.iter().map(|(name, value)| (name.as_ref(), FieldValue::Json(value.as_ref()))))
    }

    /// Takes an encoded record, checked as by [`Fields::decode`].
    ///
    /// # Errors
    /// As [`Fields::decode`].
    pub fn decode(bytes: Vec<u8>) -> Result<Self, DocumentError> {
        Fields::decode(&bytes)?;
        Ok(Self { bytes })
    }

    /// The fields.
    #[must_use]
    pub fn fields(&self) -> Fields<'_> {
        Fields::decode(&self.bytes).unwrap_or_else(|error| {
            never!("fields that were built or checked here can be read", "{error}");
            Fields { count: 0, names_bytes: 0, table: &[], outside: &[], text: "" }
        })
    }

    /// The encoded record.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoded record.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// A record in which `keep_outside` has been asked about every value of at least [`OUTSIDE_MIN_BYTES`]
    /// that is still in the record; those that it answers `true` for are named by digest only, the caller
    /// having kept their text. `None` if nothing was moved.
    pub fn move_outside(
        &self,
        mut keep_outside: impl FnMut(&str, OutsideValue, &str) -> bool,
    ) -> Option<Self> {
        let mut moved = false;
        let fields: Vec<(&str, FieldValue<'_>)> = self
            .fields()
            .iter()
            .map(|(name, value)| match value {
                FieldValue::Json(json) if json.len() >= OUTSIDE_MIN_BYTES => {
                    let digest = *blake3::hash(json.as_bytes()).as_bytes();
                    let outside = OutsideValue { digest, length: json.len() as u64 };
                    if keep_outside(name, outside, json) {
                        moved = true;
                        (name, FieldValue::Outside(outside))
                    } else {
                        (name, value)
                    }
                }
                _ => (name, value),
            })
            .collect();
        moved.then(|| Self::build(fields.into_iter()))
    }
}

impl Default for FieldsBuf {
    fn default() -> Self {
        Self::build(std::iter::empty())
    }
}

impl std::fmt::Debug for FieldsBuf {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_map().entries(self.fields().iter()).finish()
    }
}

fn equal_ignore_case(left: &str, right: &str) -> bool {
    if left.is_ascii() && right.is_ascii() {
        return left.eq_ignore_ascii_case(right);
    }
    left.chars().flat_map(char::to_lowercase).eq(right.chars().flat_map(char::to_lowercase))
}
