//! Entries of one view on their way to its index: gathered in memory, sorted, spilled to files where there are too
//! many, and merged.
//!
//! A record is the length of the key, the key, the length of the value, the value, and eight bytes for
//! each total. A file is such records in the order of their keys, compressed, with a checksum at its end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use scrinium_assertion::never;
use scrinium_contents::wire::{Input, put_bytes};
use scrinium_database::{DatabaseError, Result};

use crate::entries::Entry;
use crate::yielding;

/// Memory is taken in pieces of at most so much, so that it need not be copied as it grows.
pub(super) const PIECE_BYTES_MAX: usize = 1 << 20;

/// Fast, and a third of the bytes.
const COMPRESSION_LEVEL: i32 = 1;

/// So much (as a power of two) is looked back for what repeats. Anyone who reads a file holds four times as much, alongside
/// what was read of it and is not decompressed yet, and many are merged.
const WINDOW_BITS: u32 = 15;
const READ_AT_ONCE_BYTES: usize = 32 << 10;
/// What a file takes of memory while it is read, with what zstd has for each next to that.
pub(super) const READ_BYTES: usize = (4 << WINDOW_BITS) + READ_AT_ONCE_BYTES + (96 << 10);

/// Where a record lies, with the bytes of its key that are compared next: those of the records are far apart.
#[derive(Clone, Copy)]
struct RecordPlace {
    window: Window,
    piece: u32,
    start: u32,
}

/// This many bytes of a key, zeros behind its end, as a number.
type Window = u64;

const WINDOW_BYTES: usize = size_of::<Window>();

/// So few records are compared by what remains of their keys.
const FEW: usize = 8;

/// At most this many are looked at or sorted before others may have the processor.
const MANY: usize = if cfg!(test) { 16 } else { 2048 };

/// Entries in memory.
pub(super) struct Run {
    piece_bytes: usize,
    pieces: Vec<Vec<u8>>,
    places: Vec<RecordPlace>,
}

/// A record taken apart: key, value and the bytes of the totals.
type Record<'a> = (&'a [u8], &'a [u8], &'a [u8]);

impl Run {
    /// A run that takes memory in such pieces.
    pub(super) const fn new(piece_bytes: usize) -> Self {
        Self { piece_bytes, pieces: Vec::new(), places: Vec::new() }
    }

    pub(super) fn push(&mut self, entry: &Entry) -> Result<()> {
        let needed = entry.key.len() + entry.value.len() + entry.totals.len() * 8 + 20;
        if self.pieces.last().is_none_or(|piece| piece.capacity() - piece.len() < needed) {
            self.pieces.push(Vec::with_capacity(self.piece_bytes.max(needed)));
        }
        let number = self.pieces.len().saturating_sub(1);
        let piece = self.pieces.last_mut();
        let piece = piece.ok_or_else(|| never!("a run has a piece with room for the next entry"))?;
        let start = piece.len();
        put_record(piece, entry);
        // What lies beyond is not found again, which ends the build: memory for a build is far less.
        let place = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.places.push(RecordPlace { window: 0, piece: place(number), start: place(start) });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many entries it has.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The memory that it holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum::<usize>()
            + self.places.capacity() * size_of::<RecordPlace>()
    }

    /// Brings the entries into the order of their keys: by a window of each, and those that agree in it by the next
    /// one, so that each key is read once for a window and not for each comparison.
    pub(super) fn sort(&mut self, totals: usize) {
        let Self { pieces, places, .. } = self;
        let key = |place: &RecordPlace| record_at(pieces, *place, totals).map_or(&[][..], |(key, _, _)| key);
        let rest = |place: &RecordPlace, depth: usize| key(place).get(depth..).unwrap_or_default();
        // Ranges of places whose keys agree in this many bytes.
        let mut open = vec![(0..places.len(), 0)];
        while let Some((range, depth)) = open.pop() {
            yielding::give_way();
            let start = range.start;
            // Entries that are left out of order are refused by the index.
            let Some(group) = places.get_mut(range) else {
                never!("a range of a run lies within it");
                continue;
            };
            if group.len() <= FEW {
                group.sort_unstable_by(|left, right| key(left).cmp(key(right)));
                continue;
            }
            let depth = depth + shared_bytes(group.iter().map(|place| rest(place, depth)));
            for some in group.chunks_mut(MANY) {
                yielding::give_way();
                some.iter_mut().for_each(|place| place.window = window_of(rest(place, depth)));
            }
            sort_by_window(group);
            let mut at = start;
            for same in group.chunk_by_mut(|left, right| left.window == right.window) {
                let end = at + same.len();
                let deeper = depth + WINDOW_BYTES;
                if same.len() > 1 && same.iter().any(|place| key(place).len() > deeper) {
                    open.push((at..end, deeper));
                } else {
                    // One key may be another one and zeros.
                    same.sort_unstable_by(|left, right| key(left).cmp(key(right)));
                }
                at = end;
            }
        }
    }

    /// The entries, in the order of their keys if it was [sorted](Self::sort).
    pub(super) fn entries(self, totals: usize) -> impl Iterator<Item = Result<Entry>> + Send {
        let Self { pieces, places, .. } = self;
        places.into_iter().map(move |place| {
            let record = record_at(&pieces, place, totals);
            record.map(entry_of).ok_or_else(|| broken("an entry in memory cannot be read"))
        })
    }
}

fn window_of(key: &[u8]) -> Window {
    let mut window = [0; WINDOW_BYTES];
    window.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    Window::from_be_bytes(window)
}

/// In how many bytes all keys agree from their beginning.
fn shared_bytes<'a>(mut keys: impl Iterator<Item = &'a [u8]>) -> usize {
    let first = keys.next().unwrap_or_default();
    let shared = |shared: usize, (number, key): (usize, &[u8])| {
        if number.is_multiple_of(MANY) {
            yielding::give_way();
        }
        first.iter().take(shared).zip(key).take_while(|(left, right)| left == right).count()
    };
    keys.enumerate().fold(first.len(), shared)
}

/// Sorts in parts, between which others may have the processor.
fn sort_by_window(places: &mut [RecordPlace]) {
    let mut open = vec![places];
    while let Some(part) = open.pop() {
        yielding::give_way();
        if part.len() <= MANY {
            part.sort_unstable_by_key(|place| place.window);
        } else {
            let (lower, _, upper) = part.select_nth_unstable_by_key(part.len() / 2, |place| place.window);
            open.extend([upper, lower]);
        }
    }
}

pub(super) fn put_record(out: &mut Vec<u8>, entry: &Entry) {
    put_bytes(out, &entry.key);
    put_bytes(out, &entry.value);
    entry.totals.iter().for_each(|total| out.extend_from_slice(&total.to_be_bytes()));
}

fn record_at(pieces: &[Vec<u8>], place: RecordPlace, totals: usize) -> Option<Record<'_>> {
    let piece = pieces.get(usize::try_from(place.piece).ok()?)?;
    let mut input = Input::new(piece.get(usize::try_from(place.start).ok()?..)?);
    Some((input.bytes()?, input.bytes()?, input.take(totals * 8)?))
}

fn entry_of((key, value, totals): Record<'_>) -> Entry {
    let total = |bytes: &[u8]| f64::from_be_bytes(bytes.try_into().unwrap_or_default());
    Entry { key: key.to_vec(), value: value.to_vec(), totals: totals.chunks_exact(8).map(total).collect() }
}

/// Writes sorted entries into a file and syncs it.
pub(super) fn spill(path: &Path, entries: impl Iterator<Item = Result<Entry>>) -> Result<()> {
    let mut out = Spill::create(path)?;
    let mut record = Vec::new();
    for entry in entries {
        record.clear();
        put_record(&mut record, &entry?);
        out.write(&record)?;
    }
    out.finish()
}

/// A compressed file that is being written.
pub(super) struct Spill<'a> {
    path: &'a Path,
    out: zstd::Encoder<'static, BufWriter<File>>,
}

impl<'a> Spill<'a> {
    pub(super) fn create(path: &'a Path) -> Result<Self> {
        let create = || {
            let mut out = zstd::Encoder::new(BufWriter::new(File::create(path)?), COMPRESSION_LEVEL)?;
            out.include_checksum(true)?;
            out.window_log(WINDOW_BITS)?;
            Ok(out)
        };
        Ok(Self { path, out: create().map_err(|error| file_error("write", path, &error))? })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| file_error("write", self.path, &error))
    }

    /// Everything is on the disk when this returns.
    pub(super) fn finish(self) -> Result<()> {
        let sync = |out: zstd::Encoder<'static, BufWriter<File>>| {
            let file = out.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            file.sync_all()
        };
        sync(self.out).map_err(|error| file_error("write", self.path, &error))
    }
}

/// What is read from a compressed file, bit by bit, until `read` finds no more.
pub(super) fn spilled<T, R>(path: PathBuf, read: R) -> Result<impl Iterator<Item = Result<T>> + use<T, R>>
where
    R: Fn(&mut BufReader<zstd::Decoder<'static, BufReader<File>>>) -> std::io::Result<Option<T>>,
{
    let buffered = |file| zstd::Decoder::with_buffer(BufReader::with_capacity(READ_AT_ONCE_BYTES, file));
    let opened = File::open(&path).and_then(buffered);
    let mut input = BufReader::new(opened.map_err(|error| file_error("read", &path, &error))?);
    Ok(std::iter::from_fn(move || {
        read(&mut input).map_err(|error| file_error("read", &path, &error)).transpose()
    }))
}

pub(super) fn read_entry(input: &mut impl BufRead, totals: usize) -> std::io::Result<Option<Entry>> {
    if input.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let key = read_bytes(input)?;
    let value = read_bytes(input)?;
    let totals = (0..totals).map(|_| {
        let mut bytes = [0; 8];
        input.read_exact(&mut bytes).map(|()| f64::from_be_bytes(bytes))
    });
    let totals = totals.collect::<std::io::Result<Vec<f64>>>()?;
    Ok(Some(Entry { key, value, totals }))
}

pub(super) fn read_bytes(input: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut length = 0_u64;
    for shift in (0..35).step_by(7) {
        let mut byte = [0];
        input.read_exact(&mut byte)?;
        length |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] < 0x80 {
            break;
        }
    }
    let mut bytes = Vec::new();
    if input.take(length).read_to_end(&mut bytes)? as u64 == length {
        Ok(bytes)
    } else {
        Err(std::io::ErrorKind::UnexpectedEof.into())
    }
}

/// Sorted entries of several runs as one.
pub(super) struct Merge {
    sources: Vec<Box<dyn Iterator<Item = Result<Entry>> + Send>>,
    /// The next entry of each source that has one, the lowest key first.
    next: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    rest: Vec<Option<(Vec<u8>, Vec<f64>)>>,
    failed: Option<DatabaseError>,
}

impl Merge {
    /// Of sorted runs in memory, and of files.
    pub(super) fn of(
        runs: impl IntoIterator<Item = Run>,
        files: impl IntoIterator<Item = PathBuf>,
        totals: usize,
    ) -> Result<Self> {
        let mut sources: Vec<Box<dyn Iterator<Item = Result<Entry>> + Send>> = Vec::new();
        for run in runs.into_iter().filter(|run| !run.is_empty()) {
            sources.push(Box::new(run.entries(totals)));
        }
        for file in files {
            sources.push(Box::new(spilled(file, move |input| read_entry(input, totals))?));
        }
        let rest = sources.iter().map(|_| None).collect();
        let mut merge = Self { sources, next: BinaryHeap::new(), rest, failed: None };
        (0..merge.sources.len()).for_each(|source| merge.advance(source));
        Ok(merge)
    }

    fn advance(&mut self, source: usize) {
        match self.sources.get_mut(source).and_then(Iterator::next) {
            None => {}
            Some(Err(error)) => self.failed = Some(error),
            Some(Ok(Entry { key, value, totals })) => {
                if let Some(rest) = self.rest.get_mut(source) {
                    *rest = Some((value, totals));
                    self.next.push(Reverse((key, source)));
                }
            }
        }
    }
}

impl Iterator for Merge {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            self.next.clear();
            return Some(Err(error));
        }
        let Reverse((key, source)) = self.next.pop()?;
        let (value, totals) = self.rest.get_mut(source).and_then(Option::take)?;
        self.advance(source);
        Some(Ok(Entry { key, value, totals }))
    }
}

pub(super) fn file_error(what: &str, path: &Path, error: &std::io::Error) -> DatabaseError {
    let reason = format!("cannot {what} {} while a view is built: {error}", path.display());
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => DatabaseError::Full {
            reason: format!("{reason}; make room there, or set view.rebuild_dir to another folder"),
        },
        _ => DatabaseError::Internal { reason },
    }
}

fn broken(reason: &str) -> DatabaseError {
    DatabaseError::Internal { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_run_is_sorted_by_whole_keys(
            keys in prop::collection::vec(prop::collection::vec(0_u8..2, 0..60), 0..200),
            shared in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut run = Run::new(256);
            let mut keys: Vec<Vec<u8>> = keys.iter().map(|key| [&shared[..], key].concat()).collect();
            for key in &keys {
                run.push(&Entry { key: key.clone(), value: key.clone(), totals: vec![1.0] }).unwrap();
            }
            run.sort(1);
            let sorted: Vec<Vec<u8>> = run.entries(1).map(|entry| entry.unwrap().key).collect();
            keys.sort();
            prop_assert_eq!(sorted, keys);
        }
    }
}
