//! How the index of a collection is written: its keys and its values.

use scrinium_calendar::busy::BusyKind;
use scrinium_calendar::event::ComponentKind;
use scrinium_calendar::index::{
    Entry, EntryKey, IndexParts, IndexWindow, SeriesEntry, VERSION as PARTS_VERSION,
};
use scrinium_calendar::zone::data_version;
use scrinium_contents::wire::{Input, put_bytes, put_number};

use super::Member;

/// Another version is not read, and the index made again.
const VERSION: u8 = 1;

/// In the place of an index's number, beside those of views.
const SHELVES: u32 = u32::MAX - 3;

/// Where all of it lies.
pub(crate) const FAMILY: scrinium_store::Family = scrinium_store::Family::DerivedScan;

pub(super) const STATE: u8 = b's';
pub(super) const MEMBER: u8 = b'm';
pub(super) const NAME: u8 = b'n';
pub(super) const OBJECT: u8 = b'o';
pub(super) const KIND: u8 = b'k';
pub(super) const ADDRESS: u8 = b'a';
pub(super) const ENTRY: u8 = b'e';
pub(super) const DENSE: u8 = b'd';
pub(super) const BEYOND: u8 = b'w';

/// A key of a collection's index without what all of them begin with, and its value.
pub(super) type Row = (Vec<u8>, Vec<u8>);

/// What all keys of a collection's index begin with.
pub(super) fn prefix_of(database: u32, folder: u32) -> [u8; 12] {
    let mut prefix = [0; 12];
    for (part, number) in prefix.chunks_exact_mut(4).zip([database, SHELVES, folder]) {
        part.copy_from_slice(&number.to_be_bytes());
    }
    prefix
}

/// What tells a text from others in a key.
pub(super) fn digest(text: &str) -> [u8; 16] {
    let mut digest = [0; 16];
    blake3::Hasher::new().update(text.as_bytes()).finalize_xof().fill(&mut digest);
    digest
}

pub(super) fn key(kind: u8, rest: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![kind];
    rest.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// The uid at the end of a key, or in a value.
pub(super) fn uid_at_end(bytes: &[u8]) -> Option<u64> {
    bytes.last_chunk().copied().map(u64::from_be_bytes)
}

/// Up to where a collection's index followed its folder, and what it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// What was known of the collection and its owner: another owner or zone makes other occurrences.
    pub(super) owned: [u8; 16],
    pub(super) window: IndexWindow,
    /// The feed of the folder was followed up to this change.
    pub(super) reached: u64,
    /// `false`: its series are being written out for this window.
    pub(super) is_complete: bool,
}

impl State {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_number(&mut out, u64::from(PARTS_VERSION));
        put_bytes(&mut out, data_version().as_bytes());
        out.extend_from_slice(&self.owned);
        out.extend_from_slice(&self.window.from.to_be_bytes());
        out.extend_from_slice(&self.window.to.to_be_bytes());
        put_number(&mut out, self.reached);
        out.push(u8::from(self.is_complete));
        out
    }

    /// `None`: written by another version, under another release of the zones, or damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let is_ours = input.byte()? == VERSION
            && input.number()? == u64::from(PARTS_VERSION)
            && input.text()? == data_version();
        is_ours.then_some(())?;
        Some(Self {
            owned: input.array()?,
            window: IndexWindow { from: signed(&mut input)?, to: signed(&mut input)? },
            reached: input.number()?,
            is_complete: input.byte()? == 1,
        })
    }
}

fn signed(input: &mut Input<'_>) -> Option<i64> {
    input.array().map(i64::from_be_bytes)
}

const KINDS: [Option<ComponentKind>; 4] =
    [None, Some(ComponentKind::Event), Some(ComponentKind::Todo), Some(ComponentKind::Journal)];

pub(super) fn kind_number(kind: Option<ComponentKind>) -> u8 {
    KINDS.iter().zip(0..).find(|(known, _)| **known == kind).map_or(0, |(_, number)| number)
}

const BUSY_KINDS: [BusyKind; 4] =
    [BusyKind::Free, BusyKind::Tentative, BusyKind::Unavailable, BusyKind::Busy];

/// A member, and the keys that it has besides.
pub(super) fn encode_member(member: &Member, keys: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for text in [&member.id, &member.name, &member.object, &member.tag] {
        put_bytes(&mut out, text.as_bytes());
    }
    put_bytes(&mut out, member.schedule_tag.as_deref().unwrap_or_default().as_bytes());
    put_number(&mut out, member.bytes as u64);
    out.push(kind_number(member.kind));
    out.push(u8::from(member.is_private));
    keys.iter().for_each(|key| put_bytes(&mut out, key));
    out
}

/// A member, and what is left: its keys.
pub(super) fn decode_member(uid: u64, bytes: &[u8]) -> Option<(Member, Input<'_>)> {
    let mut input = Input::new(bytes);
    let mut text = || input.text().map(str::to_owned);
    let (id, name, object, tag, schedule_tag) = (text()?, text()?, text()?, text()?, text()?);
    let member = Member {
        uid,
        id,
        name,
        object,
        tag,
        schedule_tag: Some(schedule_tag).filter(|tag| !tag.is_empty()),
        bytes: usize::try_from(input.number()?).ok()?,
        kind: *KINDS.get(usize::from(input.byte()?))?,
        is_private: input.byte()? == 1,
    };
    Some((member, input))
}

/// The keys of a member.
pub(super) fn decode_keys(mut input: Input<'_>) -> Option<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    while !input.rest().is_empty() {
        keys.push(input.bytes()?.to_vec());
    }
    Some(keys)
}

/// What a series gives to the index.
pub(super) fn rows_of(uid: u64, parts: &IndexParts) -> Vec<Row> {
    let uid = uid.to_be_bytes();
    let mut rows = Vec::with_capacity(parts.entries.len() + 1);
    for (number, entry) in (0_u32..).zip(&parts.entries) {
        let key = key(ENTRY, &[&entry.key.to_bytes(), &uid, &number.to_be_bytes()]);
        rows.push((key, encode_entry(entry)));
    }
    if let Some(series) = &parts.series {
        let last = ordered(series.last.unwrap_or(i64::MAX));
        let key = if series.is_dense { key(DENSE, &[&uid]) } else { key(BEYOND, &[&last, &uid]) };
        rows.push((key, encode_series(series)));
    }
    rows
}

/// Whether a key is one of [`rows_of`].
pub(super) fn is_of_time(key: &[u8]) -> bool {
    key.first().is_some_and(|kind| [ENTRY, DENSE, BEYOND].contains(kind))
}

/// A number, as bytes in the same order.
pub(super) fn ordered(number: i64) -> [u8; 8] {
    (number.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

fn encode_entry(entry: &Entry) -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    out.extend_from_slice(&entry.end.to_be_bytes());
    let kind = BUSY_KINDS.iter().zip(0_u8..).find(|(known, _)| **known == entry.kind);
    let bits = [entry.is_day, entry.has_alarm, entry.is_private, entry.instance.is_some()];
    let bits = bits.iter().fold(0, |bits, bit| bits << 1 | u8::from(*bit));
    out.push(bits << 2 | kind.map_or(0, |(_, number)| number));
    out.extend(entry.instance.iter().flat_map(|instance| instance.to_be_bytes()));
    put_number(&mut out, entry.item as u64);
    out
}

/// The member and the entry of a key and its value.
pub(super) fn decode_entry(key: &[u8], value: &[u8]) -> Option<(u64, Entry)> {
    let (key, rest) = key.strip_prefix(&[ENTRY])?.split_first_chunk::<10>()?;
    let (uid, _) = rest.split_first_chunk::<8>()?;
    let mut input = Input::new(value);
    let end = signed(&mut input)?;
    let bits = input.byte()?;
    let instance = if bits & 4 == 0 { None } else { Some(signed(&mut input)?) };
    let entry = Entry {
        key: EntryKey::from_bytes(*key)?,
        end,
        instance,
        is_day: bits & 32 != 0,
        kind: *BUSY_KINDS.get(usize::from(bits & 3))?,
        has_alarm: bits & 16 != 0,
        is_private: bits & 8 != 0,
        item: usize::try_from(input.number()?).ok()?,
    };
    Some((u64::from_be_bytes(*uid), entry))
}

fn encode_series(series: &SeriesEntry) -> Vec<u8> {
    let mut out = Vec::with_capacity(20 + series.source.len());
    out.extend_from_slice(&series.first.to_be_bytes());
    out.push(u8::from(series.is_dense) << 1 | u8::from(series.last.is_some()));
    out.extend(series.last.iter().flat_map(|last| last.to_be_bytes()));
    out.extend_from_slice(&series.source);
    out
}

/// What a series has beyond its entries; its source is read only where the rest may answer.
pub(super) fn decode_series(value: &[u8]) -> Option<SeriesEntry> {
    let mut input = Input::new(value);
    let first = signed(&mut input)?;
    let bits = input.byte()?;
    let last = if bits & 1 == 0 { None } else { Some(signed(&mut input)?) };
    Some(SeriesEntry { first, last, is_dense: bits & 2 != 0, source: input.rest().to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for bits in 0..64_u8 {
            let entry = Entry {
                key: EntryKey {
                    is_floating: bits & 1 != 0,
                    class: scrinium_calendar::index::LengthClass::Week,
                    start: -5,
                },
                end: i64::from(bits) - 40,
                instance: (bits & 2 != 0).then_some(-1),
                is_day: bits & 4 != 0,
                kind: BUSY_KINDS.get(usize::from(bits % 4)).copied().unwrap_or_default(),
                has_alarm: bits & 8 != 0,
                is_private: bits & 16 != 0,
                item: usize::from(bits) * 100,
            };
            let series = SeriesEntry {
                first: -3,
                last: (bits & 1 != 0).then_some(9),
                is_dense: bits & 2 != 0,
                source: vec![bits; 3],
            };
            let parts = IndexParts { entries: vec![entry.clone()], series: Some(series.clone()) };
            let rows = rows_of(7, &parts);
            let read: Vec<_> = rows.iter().map(|(key, value)| decode_entry(key, value)).collect();
            assert_eq!(read, [Some((7, entry)), None]);
            assert_eq!(rows.last().and_then(|(_, value)| decode_series(value)), Some(series));
        }
    }

    #[test]
    fn a_state_of_other_zones_is_none() {
        let state = State {
            owned: [7; 16],
            window: IndexWindow { from: -1, to: 1 },
            reached: 300,
            is_complete: true,
        };
        let written = state.encode();
        assert_eq!(State::decode(&written), Some(state));
        let mut other = written;
        if let Some(byte) = other.get_mut(3) {
            *byte ^= 1;
        }
        assert_eq!(State::decode(&other), None);
    }
}
