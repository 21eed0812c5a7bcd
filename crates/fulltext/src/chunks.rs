//! What is kept of each document by its address: id, length, sort keys, and whether it is dead; 1,024 addresses a record.
//!
//! ```text
//! ids     = (place (2), id)*               of documents that are there
//! lengths = 1,024 bytes                    a number of words, rounded
//! dead    = 128 bytes                      one bit each
//! column  = 00, least (8), greatest (8), 128 bytes of bits, 1,024 × number (8)     all numbers
//!         | 01, (place (2), sort key)*                                              else
//! ```
//!
//! Numbers with a width are little endian.

use std::collections::BTreeMap;

use scrinium_store::{Batch, Slice, Snapshot};

use crate::FullTextError;
use crate::builder::push_sort_key;
use crate::document::SortKey;
use crate::format::{Address, Bytes, CHUNKS, ChunkKind, FieldId, Keys, push_part};
use crate::segment::{DocumentView, read_sort_key};

pub(crate) const CHUNK_DOCUMENTS: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 10;
const BITS_BYTES: usize = CHUNK_DOCUMENTS / 8;
const NUMBERS_AT: usize = 17 + BITS_BYTES;

/// The chunk of an address, and its place there.
pub(crate) fn place_of(address: Address) -> (u32, usize) {
    (address >> CHUNK_BITS, (address & (u32::MAX >> (32 - CHUNK_BITS))) as usize)
}

/// The first address behind the chunk; `None` for the last one.
pub(crate) fn chunk_end(chunk: u32) -> Option<Address> {
    chunk.checked_add(1)?.checked_mul(1 << CHUNK_BITS)
}

pub(crate) fn bit(bits: &[u8], place: usize) -> bool {
    bits.get(place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1)
}

fn set_bit(bits: &mut [u8], place: usize) {
    if let Some(byte) = bits.get_mut(place / 8) {
        *byte |= 1 << (place % 8);
    }
}

/// A number of words as one byte: about a sixteenth more or less.
fn rounded_length(words: u32) -> u8 {
    let logarithm = f64::from(words).ln_1p() * 16.0;
    // At most 16 × ln 2^32.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 355")]
    let rounded = logarithm.round().min(255.0) as u8;
    rounded
}

fn words_of(length: u8) -> f32 {
    (f32::from(length) / 16.0).exp_m1()
}

/// Documents that are gone, as a writer knows them.
pub(crate) struct DeadMarks<'s> {
    snapshot: &'s Snapshot,
    keys: Keys,
    chunks: BTreeMap<u32, (Vec<u8>, bool)>,
}

impl<'s> DeadMarks<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot, keys: Keys) -> Self {
        Self { snapshot, keys, chunks: BTreeMap::new() }
    }

    fn chunk(&mut self, number: u32) -> Result<&mut (Vec<u8>, bool), FullTextError> {
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.chunks.entry(number) {
            let stored = self.snapshot.get(CHUNKS, &self.keys.chunk(ChunkKind::Dead, number))?;
            let bits = stored.map_or_else(|| vec![0; BITS_BYTES], |stored| stored.to_vec());
            vacant.insert((bits, false));
        }
        self.chunks.get_mut(&number).ok_or_else(|| self.keys.damaged("a chunk is missing"))
    }

    /// Marks a document; whether it was there before.
    pub(crate) fn mark(&mut self, address: Address) -> Result<bool, FullTextError> {
        let (number, place) = place_of(address);
        let (bits, is_changed) = self.chunk(number)?;
        let was_there = !bit(bits, place);
        set_bit(bits, place);
        *is_changed |= was_there;
        Ok(was_there)
    }

    pub(crate) fn is_dead(&mut self, address: Address) -> Result<bool, FullTextError> {
        let (number, place) = place_of(address);
        Ok(bit(&self.chunk(number)?.0, place))
    }

    pub(crate) fn write(&self, batch: &mut Batch) {
        for (number, (bits, is_changed)) in &self.chunks {
            if *is_changed {
                batch.put(CHUNKS, &self.keys.chunk(ChunkKind::Dead, *number), bits);
            }
        }
    }
}

/// One chunk of ids.
pub(crate) fn read_ids(value: &[u8]) -> Option<BTreeMap<u16, &str>> {
    let (mut ids, mut bytes) = (BTreeMap::new(), Bytes(value));
    while !bytes.0.is_empty() {
        let place = u16::from_le_bytes(bytes.fixed()?);
        ids.insert(place, std::str::from_utf8(bytes.part()?).ok()?);
    }
    Some(ids)
}

pub(crate) fn ids_record<'i>(ids: impl Iterator<Item = (u16, &'i str)>) -> Vec<u8> {
    let mut value = Vec::new();
    for (place, id) in ids {
        value.extend_from_slice(&place.to_le_bytes());
        push_part(&mut value, id.as_bytes());
    }
    value
}

fn read_column(value: &[u8]) -> Option<BTreeMap<u16, SortKey>> {
    let (mut keys, mut bytes) = (BTreeMap::new(), Bytes(value));
    if bytes.byte()? == 0 {
        let places = 0..u16::try_from(CHUNK_DOCUMENTS).unwrap_or(u16::MAX);
        keys.extend(places.filter_map(|place| Some((place, number_in(value, usize::from(place))?))));
        return Some(keys);
    }
    while !bytes.0.is_empty() {
        let place = u16::from_le_bytes(bytes.fixed()?);
        keys.insert(place, read_sort_key(&mut bytes)?);
    }
    Some(keys)
}

fn number_in(value: &[u8], place: usize) -> Option<SortKey> {
    if !bit(value.get(17..NUMBERS_AT)?, place) {
        return None;
    }
    let bytes = value.get(NUMBERS_AT + place * 8..)?.first_chunk::<8>()?;
    Some(SortKey::Number(u64::from_le_bytes(*bytes)))
}

fn column_record(keys: &BTreeMap<u16, SortKey>) -> Vec<u8> {
    let numbers: Option<Vec<(usize, u64)>> = keys
        .iter()
        .map(|(place, key)| match key {
            SortKey::Number(number) => Some((usize::from(*place), *number)),
            SortKey::Text(_) => None,
        })
        .collect();
    let Some(numbers) = numbers else {
        let mut value = vec![1];
        for (place, key) in keys {
            value.extend_from_slice(&place.to_le_bytes());
            push_sort_key(&mut value, key);
        }
        return value;
    };
    let mut value = vec![0; NUMBERS_AT + CHUNK_DOCUMENTS * 8];
    let mut put = |at: usize, number: u64| {
        if let Some(bytes) = value.get_mut(at..at + 8) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
    };
    put(1, numbers.iter().map(|(_, number)| *number).min().unwrap_or_default());
    put(9, numbers.iter().map(|(_, number)| *number).max().unwrap_or_default());
    for (place, number) in &numbers {
        put(NUMBERS_AT + place * 8, *number);
    }
    if let Some(bits) = value.get_mut(17..NUMBERS_AT) {
        numbers.iter().for_each(|(place, _)| set_bit(bits, *place));
    }
    value
}

/// New documents of one chunk.
#[derive(Default)]
struct NewDocuments<'d> {
    ids: BTreeMap<u16, &'d str>,
    lengths: Vec<(usize, u8)>,
    columns: BTreeMap<FieldId, BTreeMap<u16, SortKey>>,
}

/// Adds what is said of documents to their chunks.
pub(crate) fn add_documents<'d>(
    snapshot: &Snapshot,
    keys: Keys,
    documents: impl Iterator<Item = (Address, DocumentView<'d>)>,
    batch: &mut Batch,
) -> Result<(), FullTextError> {
    let mut chunks: BTreeMap<u32, NewDocuments<'d>> = BTreeMap::new();
    for (address, document) in documents {
        let (number, place) = place_of(address);
        let chunk = chunks.entry(number).or_default();
        let short = u16::try_from(place).unwrap_or_default();
        chunk.ids.insert(short, document.id);
        chunk.lengths.push((place, rounded_length(document.words)));
        for (field, key) in document.columns {
            chunk.columns.entry(field).or_default().insert(short, key);
        }
    }
    for (number, mut new) in chunks {
        let get = |kind| snapshot.get(CHUNKS, &keys.chunk(kind, number));
        let old_ids = get(ChunkKind::Ids)?;
        let mut ids = match &old_ids {
            Some(value) => read_ids(value).ok_or_else(|| keys.damaged("a chunk of ids cannot be read"))?,
            None => BTreeMap::new(),
        };
        ids.append(&mut new.ids);
        let ids = ids_record(ids.into_iter());
        batch.put(CHUNKS, &keys.chunk(ChunkKind::Ids, number), &ids);
        let mut lengths =
            get(ChunkKind::Lengths)?.map_or_else(|| vec![0; CHUNK_DOCUMENTS], |old| old.to_vec());
        for (place, length) in new.lengths {
            if let Some(byte) = lengths.get_mut(place) {
                *byte = length;
            }
        }
        batch.put(CHUNKS, &keys.chunk(ChunkKind::Lengths, number), &lengths);
        for (field, mut added) in new.columns {
            let old = get(ChunkKind::Column(field))?;
            let mut column = match &old {
                Some(value) => read_column(value).ok_or_else(|| keys.damaged("a column cannot be read"))?,
                None => BTreeMap::new(),
            };
            column.append(&mut added);
            batch.put(CHUNKS, &keys.chunk(ChunkKind::Column(field), number), &column_record(&column));
        }
    }
    Ok(())
}

/// One kind of chunks, of which the last one read is at hand.
pub(crate) struct ChunkReader<'r> {
    snapshot: &'r Snapshot,
    keys: Keys,
    kind: ChunkKind,
    number: Option<u32>,
    value: Option<Slice>,
}

impl<'r> ChunkReader<'r> {
    pub(crate) fn new(snapshot: &'r Snapshot, keys: Keys, kind: ChunkKind) -> Self {
        Self { snapshot, keys, kind, number: None, value: None }
    }

    fn value(&mut self, number: u32) -> Result<Option<&[u8]>, FullTextError> {
        if self.number != Some(number) {
            self.value = self.snapshot.get(CHUNKS, &self.keys.chunk(self.kind, number))?;
            self.number = Some(number);
        }
        Ok(self.value.as_deref())
    }

    /// Of [`ChunkKind::Dead`].
    pub(crate) fn is_marked(&mut self, address: Address) -> Result<bool, FullTextError> {
        let (number, place) = place_of(address);
        Ok(self.value(number)?.is_some_and(|bits| bit(bits, place)))
    }

    /// Of [`ChunkKind::Lengths`]: words of a document, about.
    pub(crate) fn words(&mut self, address: Address) -> Result<f32, FullTextError> {
        let (number, place) = place_of(address);
        let length = self.value(number)?.and_then(|lengths| lengths.get(place)).copied();
        Ok(words_of(length.unwrap_or_default()))
    }

    /// Of [`ChunkKind::Column`].
    pub(crate) fn sort_key(&mut self, address: Address) -> Result<Option<SortKey>, FullTextError> {
        let keys = self.keys;
        let (number, place) = place_of(address);
        let Some(value) = self.value(number)? else { return Ok(None) };
        if value.first() == Some(&0) {
            return Ok(number_in(value, place));
        }
        let mut column = read_column(value).ok_or_else(|| keys.damaged("a column cannot be read"))?;
        Ok(u16::try_from(place).ok().and_then(|place| column.remove(&place)))
    }

    /// Of [`ChunkKind::Column`]: the least and the greatest number of a chunk that has nothing else; `None` where that is not
    /// known.
    pub(crate) fn range(&mut self, chunk: u32) -> Result<Option<(u64, u64)>, FullTextError> {
        let Some(value) = self.value(chunk)? else { return Ok(None) };
        let mut bytes = Bytes(value);
        let is_of_numbers = bytes.byte() == Some(0);
        let range = bytes.fixed().map(u64::from_le_bytes).zip(bytes.fixed().map(u64::from_le_bytes));
        Ok(range.filter(|_| is_of_numbers))
    }
}

/// Ids of documents, of which the last chunk is at hand.
pub(crate) struct IdReader<'r> {
    chunks: ChunkReader<'r>,
    number: Option<u32>,
    /// Where each id lies in the chunk.
    places: Vec<(usize, usize)>,
}

impl<'r> IdReader<'r> {
    pub(crate) fn new(snapshot: &'r Snapshot, keys: Keys) -> Self {
        Self { chunks: ChunkReader::new(snapshot, keys, ChunkKind::Ids), number: None, places: Vec::new() }
    }

    pub(crate) fn id(&mut self, address: Address) -> Result<&str, FullTextError> {
        let damaged = self.chunks.keys.damaged("a document that was found has no id");
        let (number, place) = place_of(address);
        let Some(value) = self.chunks.value(number)? else { return Err(damaged) };
        if self.number != Some(number) {
            self.places.clear();
            self.places.resize(CHUNK_DOCUMENTS, (usize::MAX, 0));
            let mut bytes = Bytes(value);
            while let (Some(place), Some(id)) = (bytes.fixed().map(u16::from_le_bytes), bytes.part()) {
                let end = value.len() - bytes.0.len();
                if let Some(range) = self.places.get_mut(usize::from(place)) {
                    *range = (end - id.len(), end);
                }
            }
            self.number = Some(number);
        }
        let id = self.places.get(place).and_then(|(start, end)| value.get(*start..*end));
        id.and_then(|id| std::str::from_utf8(id).ok()).ok_or(damaged)
    }
}
