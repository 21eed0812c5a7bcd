//! A view's entries as one reader sees them.

use std::sync::Arc;

use scrinium_assertion::{Fault, never};
use scrinium_database::access::digest::EVERYTHING;
use scrinium_database::{Access, Result};
use scrinium_index::{Cursor, Entry, Reader, Reduce};
use scrinium_store::Direction;

use crate::error::OrDatabaseError as _;
use crate::group::View;
use crate::scripts::ReduceError;
use crate::streams::{END, plain, prefix, stream_of};

/// Entries given to a function at once where no reductions are kept.
const REDUCED_AT_ONCE: usize = 100;

/// A view's entries as one reader sees them, as they stood at one moment. Clones share it.
///
/// Counting costs O(log n) for each stream that the reader sees. Streams of two names share the entries of documents
/// that both may read: for a reader who goes by several names the smaller streams have to be gone through for that.
#[derive(Clone)]
pub(crate) struct Collection {
    reader: Reader,
    /// What the keys of each stream begin with: first nothing, for what is everybody's.
    streams: Arc<[Vec<u8>]>,
    /// Whether the index has nothing but what is everybody's.
    is_plain: bool,
}

impl Collection {
    /// A view as somebody with this access sees it.
    pub(crate) fn open(view: &View, access: &Access) -> Result<Self> {
        access.check_reader()?;
        let reader = view.index.index.reader();
        let mut streams = vec![Vec::new()];
        let is_plain = view.is_plain(&reader)?;
        if !is_plain {
            let own = match access.reader_names() {
                None => vec![prefix(&EVERYTHING)],
                Some(names) => names.iter().map(prefix).collect(),
            };
            for stream in own {
                let end = end_of(&stream);
                if reader
                    .cursor(&stream, Some(&end), Direction::Forward, 0)
                    .or_database_error()?
                    .next()
                    .or_database_error()?
                    .is_some()
                {
                    streams.push(stream);
                }
            }
        }
        Ok(Self { reader, streams: streams.into(), is_plain })
    }

    /// The number of the last change that it holds.
    pub(crate) fn reached(&self) -> u64 {
        self.reader.reached()
    }

    /// Whether an entry may be in several streams.
    fn overlaps(&self) -> bool {
        self.streams.len() > 2
    }

    /// Whether all counts cost O(log n).
    pub(crate) fn counts_at_once(&self) -> bool {
        !self.overlaps()
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> Result<u64> {
        if self.is_plain { Ok(self.reader.len()) } else { self.count_range(&[], &[END]) }
    }

    /// The sums of all entries, column by column.
    pub(crate) fn sums(&self) -> Result<Vec<f64>> {
        if self.is_plain { Ok(self.reader.sums()) } else { self.sums_range(&[], &[END]) }
    }

    /// Number of entries before `key`, whether or not there is an entry at `key`.
    pub(crate) fn position(&self, key: &[u8]) -> Result<u64> {
        if key.is_empty() { Ok(0) } else { self.count_range(&[], key) }
    }

    /// Number of entries from `from` up to, not including, `to`.
    pub(crate) fn count_range(&self, from: &[u8], to: &[u8]) -> Result<u64> {
        let mut count = 0;
        for stream in &*self.streams {
            count += self.count_of(stream, from, to)?;
        }
        if self.overlaps() {
            self.each_twice(from, to, |_, times| count -= times)?;
        }
        Ok(count)
    }

    fn count_of(&self, stream: &[u8], from: &[u8], to: &[u8]) -> Result<u64> {
        let to = to.min(&[END]);
        if from >= to {
            Ok(0)
        } else {
            self.reader.count_range(&within(stream, from), Some(&within(stream, to))).or_database_error()
        }
    }

    /// Sums of the entries from `from` up to, not including, `to`, column by column.
    pub(crate) fn sums_range(&self, from: &[u8], to: &[u8]) -> Result<Vec<f64>> {
        let to = to.min(&[END]);
        let mut all: Vec<f64> = Vec::new();
        for stream in &*self.streams {
            let sums = self
                .reader
                .sums_range(&within(stream, from), Some(&within(stream, to)))
                .or_database_error()?;
            all.resize(sums.len(), 0.0);
            all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
        }
        if self.overlaps() {
            self.each_twice(from, to, |entry, times| {
                #[allow(clippy::cast_precision_loss, reason = "the number of somebody's names")]
                let times = times as f64;
                all.iter_mut().zip(entry.sums()).for_each(|(all, sum)| *all -= sum * times);
            })?;
        }
        Ok(all)
    }

    /// Calls `take` with each entry that is in several streams, and in how many besides one. The largest stream is
    /// looked into only where an entry of another may be.
    fn each_twice(&self, from: &[u8], to: &[u8], mut take: impl FnMut(&Entry<'_>, u64)) -> Result<()> {
        let to = to.min(&[END]);
        let mut named = Vec::new();
        for stream in self.streams.iter().skip(1) {
            named.push((self.count_of(stream, from, to)?, stream));
        }
        named.sort_unstable();
        let Some((_, largest)) = named.pop() else { return Ok(()) };
        let streams = named.iter().map(|(_, stream)| stream.as_slice());
        let mut others = Entries::open(&self.reader, streams, from, to, Direction::Forward)?;
        let mut largest =
            Entries::open(&self.reader, std::iter::once(largest.as_slice()), from, to, Direction::Forward)?;
        while let Some((entry, times)) = others.next_counted()? {
            let is_there = largest.has(entry.key)?;
            let times = times - 1 + u64::from(is_there);
            if times > 0 {
                take(&entry, times);
            }
        }
        Ok(())
    }

    /// The entries from `from` up to, not including, `to`, in either direction, without the first `skip` on the way.
    pub(crate) fn cursor(
        &self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        skip: u64,
    ) -> Result<Entries<'_>> {
        let to = to.min(&[END]);
        let streams = || self.streams.iter().map(Vec::as_slice);
        let mut skips = vec![0; self.streams.len()];
        let mut passed = 0;
        match (skip, self.streams.as_ref()) {
            (0, _) => {}
            (_, [_]) => skips = vec![skip],
            (_, [first, second]) => {
                let of_second = self.skipped(second, first, (from, to), direction, skip)?;
                skips = vec![skip - of_second, of_second];
            }
            _ => passed = skip,
        }
        let mut entries = Entries::open_skipping(&self.reader, streams().zip(skips), from, to, direction)?;
        for _ in 0..passed {
            if entries.next()?.is_none() {
                break;
            }
        }
        Ok(entries)
    }

    /// How many of the first `skip` entries of two streams that share none are in `one`.
    fn skipped(
        &self,
        one: &[u8],
        other: &[u8],
        (from, to): (&[u8], &[u8]),
        direction: Direction,
        skip: u64,
    ) -> Result<u64> {
        let (mut low, mut high) = (0, self.count_of(one, from, to)?.min(skip));
        // Entry number `middle` of `one` is skipped if this many and those of the other before it are fewer than `skip`.
        while low < high {
            let middle = low + (high - low) / 2;
            let (first, last) = (within(one, from), within(one, to));
            let mut cursor =
                self.reader.cursor(&first, Some(&last), direction, middle).or_database_error()?;
            let Some(entry) = cursor.next().or_database_error()? else { break };
            let key = plain(entry.key);
            let before = match direction {
                Direction::Forward => self.count_of(other, from, key)?,
                Direction::Backward => self.count_of(other, key, to)?,
            };
            if middle + before < skip { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// What a function makes of the entries from `from` up to, not including, `to`; `None` if there are none.
    pub(crate) fn reduce_range<R: Reduce<Error = ReduceError>>(
        &self,
        from: &[u8],
        to: &[u8],
        reduce: &mut R,
    ) -> Result<Option<Arc<[u8]>>> {
        let to = to.min(&[END]);
        if self.overlaps() {
            return self.reduce_one_by_one(from, to, reduce);
        }
        let mut parts: Vec<Arc<[u8]>> = Vec::new();
        for stream in &*self.streams {
            if from < to {
                parts.extend(self.reader.reduce_range(
                    &within(stream, from),
                    Some(&within(stream, to)),
                    reduce,
                )?);
            }
        }
        if parts.len() > 1 { Ok(Some(reduce.rereduce(&parts)?.into())) } else { Ok(parts.pop()) }
    }

    /// Where streams overlap, reductions of them cannot be joined.
    fn reduce_one_by_one<R: Reduce<Error = ReduceError>>(
        &self,
        from: &[u8],
        to: &[u8],
        reduce: &mut R,
    ) -> Result<Option<Arc<[u8]>>> {
        let mut cursor = self.cursor(from, to, Direction::Forward, 0)?;
        let mut reduced: Option<Arc<[u8]>> = None;
        loop {
            let mut some = Vec::with_capacity(REDUCED_AT_ONCE);
            while some.len() < REDUCED_AT_ONCE
                && let Some(entry) = cursor.next()?
            {
                some.push((entry.key.to_vec(), entry.value.to_vec()));
            }
            if some.is_empty() {
                return Ok(reduced);
            }
            let part: Arc<[u8]> = reduce.reduce(&some)?.into();
            reduced = Some(match reduced {
                None => part,
                Some(before) => reduce.rereduce(&[before, part])?.into(),
            });
        }
    }

    /// Of the keys of a document's entries those that the reader sees, without those of their streams.
    pub(crate) fn seen<'k>(&self, keys: &'k [Vec<u8>]) -> impl Iterator<Item = &'k [u8]> + use<'k, '_> {
        let is_seen = |key: &&Vec<u8>| self.streams.iter().any(|stream| stream == stream_of(key));
        keys.iter().filter(is_seen).map(|key| plain(key))
    }
}

impl View {
    /// Whether nothing lies behind the entries that are everybody's.
    fn is_plain(&self, reader: &Reader) -> Result<bool> {
        let reached = reader.reached();
        let mut known = self.index.plain_at.lock();
        match *known {
            // What depends on the time may change without a change.
            Some((at, is_plain)) if at == reached && !self.definition.is_time_variant => Ok(is_plain),
            _ => {
                let is_plain = reader
                    .cursor(&[END], None, Direction::Backward, 0)
                    .or_database_error()?
                    .next()
                    .or_database_error()?
                    .is_none();
                *known = Some((reached, is_plain));
                Ok(is_plain)
            }
        }
    }
}

/// A key of a stream.
fn within(stream: &[u8], key: &[u8]) -> Vec<u8> {
    [stream, key].concat()
}

/// The end of a stream's entries.
fn end_of(stream: &[u8]) -> Vec<u8> {
    within(stream, &[END])
}

/// What follows the stream's prefix in a key that a cursor within the stream gave.
fn behind_prefix(key: &[u8], prefix_bytes: usize) -> Result<&[u8]> {
    key.get(prefix_bytes..)
        .ok_or_else(|| never!("a key of a stream begins with its prefix", "{} bytes", key.len()).into())
}

#[cold]
fn no_stream() -> Fault {
    never!("the streams that are read are there")
}

/// Entries of one or several streams in one order, each once. Keys are those without their stream's.
pub(crate) struct Entries<'a> {
    streams: Vec<Stream<'a>>,
    direction: Direction,
}

struct Stream<'a> {
    cursor: Cursor<'a>,
    prefix: Vec<u8>,
    /// Whether the cursor stands on an entry.
    is_there: bool,
    /// Whether the entry that it stands on has been given.
    is_given: bool,
}

impl Stream<'_> {
    /// Goes on behind an entry that was given.
    fn step(&mut self) -> Result<()> {
        if self.is_given {
            self.is_there = self.cursor.next().or_database_error()?.is_some();
            self.is_given = false;
        }
        Ok(())
    }

    fn entry(&self) -> Result<Option<Entry<'_>>> {
        if !self.is_there {
            return Ok(None);
        }
        let mut entry = self.cursor.entry().or_database_error()?;
        entry.key = behind_prefix(entry.key, self.prefix.len())?;
        Ok(Some(entry))
    }
}

impl<'a> Entries<'a> {
    fn open<'s>(
        reader: &'a Reader,
        streams: impl Iterator<Item = &'s [u8]>,
        from: &[u8],
        to: &[u8],
        direction: Direction,
    ) -> Result<Self> {
        Self::open_skipping(reader, streams.map(|stream| (stream, 0)), from, to, direction)
    }

    fn open_skipping<'s>(
        reader: &'a Reader,
        streams: impl Iterator<Item = (&'s [u8], u64)>,
        from: &[u8],
        to: &[u8],
        direction: Direction,
    ) -> Result<Self> {
        let stream = |(stream, skip): (&[u8], u64)| {
            let (from, to) = (within(stream, from), within(stream, to));
            let cursor = reader.cursor(&from, Some(&to), direction, skip).or_database_error()?;
            Ok(Stream { cursor, prefix: stream.to_vec(), is_there: false, is_given: true })
        };
        Ok(Self { streams: streams.map(stream).collect::<Result<_>>()?, direction })
    }

    /// The next entry; `None` at the end.
    #[allow(clippy::should_implement_trait, reason = "what it lends lives only until the next call")]
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'_>>> {
        if self.streams.len() == 1 {
            let stream = self.streams.first_mut().ok_or_else(no_stream)?;
            let prefix_bytes = stream.prefix.len();
            let Some(mut entry) = stream.cursor.next().or_database_error()? else { return Ok(None) };
            entry.key = behind_prefix(entry.key, prefix_bytes)?;
            return Ok(Some(entry));
        }
        Ok(self.next_counted()?.map(|(entry, _)| entry))
    }

    /// The next entry, and in how many of the streams it is.
    fn next_counted(&mut self) -> Result<Option<(Entry<'_>, u64)>> {
        let mut first: Option<usize> = None;
        for number in 0..self.streams.len() {
            if let Some(stream) = self.streams.get_mut(number) {
                stream.step()?;
            }
            if self.is_before(number, first)? {
                first = Some(number);
            }
        }
        let Some(first) = first else { return Ok(None) };
        let mut times = 0;
        for number in 0..self.streams.len() {
            let is_same = self.key(number)?.is_some() && self.key(number)? == self.key(first)?;
            if let Some(stream) = self.streams.get_mut(number).filter(|_| is_same) {
                stream.is_given = true;
                times += 1;
            }
        }
        let entry = self.streams.get(first).ok_or_else(no_stream)?.entry()?;
        Ok(entry.map(|entry| (entry, times)))
    }

    fn key(&self, stream: usize) -> Result<Option<&[u8]>> {
        let entry = self.streams.get(stream).map(Stream::entry).transpose()?.flatten();
        Ok(entry.map(|entry| entry.key))
    }

    /// Whether a stream's entry comes before another's.
    fn is_before(&self, stream: usize, other: Option<usize>) -> Result<bool> {
        let Some(key) = self.key(stream)? else { return Ok(false) };
        let other = match other {
            None => None,
            Some(other) => self.key(other)?,
        };
        Ok(other.is_none_or(|other| match self.direction {
            Direction::Forward => key < other,
            Direction::Backward => key > other,
        }))
    }

    /// Whether the only stream has this key, which must not lie before one asked for earlier.
    fn has(&mut self, key: &[u8]) -> Result<bool> {
        let stream = self.streams.first_mut().ok_or_else(no_stream)?;
        stream.cursor.seek(&within(&stream.prefix, key));
        let found = stream.cursor.next().or_database_error()?;
        Ok(found.is_some_and(|entry| plain(entry.key) == key))
    }
}
