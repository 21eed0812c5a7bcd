//! The writer's side of an index.

use std::collections::HashSet;

use parking_lot::Mutex;
use scrinium_store::{Batch, Direction, KeyRange, Snapshot, Store};

use crate::chunks::DeadMarks;
use crate::format::{ADDRESS_BYTES, Address, Keys, POINTS, POSTINGS, TAIL, addresses_from};
use crate::state::{Figures, State, TailEntry};
use crate::tail::{TailSegment, TailStep, fold, join, next_step};
use crate::{AnalysisOptions, FullTextError, Reader, Segment};

/// The full text of a database.
///
/// There must be one `FullTextIndex` for a number at a time. It holds no more than its number: what there is lies in the
/// store.
#[derive(Debug)]
pub struct FullTextIndex {
    pub(crate) store: Store,
    pub(crate) keys: Keys,
    pub(crate) options: AnalysisOptions,
    /// Held by the one who changes the index.
    pub(crate) writer: Mutex<()>,
}

/// A change under way.
struct Update<'s> {
    snapshot: &'s Snapshot,
    keys: Keys,
    state: State,
    dead: DeadMarks<'s>,
    batch: Batch,
}

impl FullTextIndex {
    /// Opens index number `id`, or begins it, empty and at change number 0. `id` is from the same source as the numbers of
    /// the indexes of views.
    ///
    /// # Errors
    /// Where [`FullTextError::needs_rebuild`]: [`reset`](Self::reset) and build again. [`FullTextError::NewerFormat`],
    /// [`FullTextError::Store`].
    pub fn open(store: &Store, id: u64, options: AnalysisOptions) -> Result<Self, FullTextError> {
        let this = Self { store: store.clone(), keys: Keys { id }, options, writer: Mutex::new(()) };
        let snapshot = store.snapshot();
        State::load(&snapshot, this.keys, &options)?;
        if snapshot.get(POINTS, &this.keys.state())?.is_none() {
            this.clear_away(&snapshot)?;
        }
        Ok(this)
    }

    /// Empties index number `id`, whatever is there. Readers keep what they have.
    ///
    /// # Errors
    /// [`FullTextError::Store`].
    pub fn reset(store: &Store, id: u64) -> Result<(), FullTextError> {
        let mut batch = Batch::new();
        Keys { id }.remove_all(&mut batch);
        Ok(store.derived().write(batch)?)
    }

    /// Without a state there is no index, whatever else is there.
    fn clear_away(&self, snapshot: &Snapshot) -> Result<(), FullTextError> {
        let (from, to) = self.keys.all();
        for family in [POINTS, POSTINGS, TAIL] {
            let mut cursor = snapshot.cursor(family, KeyRange::new(&from, &to), Direction::Forward);
            if cursor.next()?.is_some() {
                return Self::reset(&self.store, self.keys.id);
            }
        }
        Ok(())
    }

    /// The change number that the last update carried; 0 for an index just begun.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn reached(&self) -> Result<u64, FullTextError> {
        Ok(self.figures()?.reached)
    }

    /// What it holds.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn figures(&self) -> Result<Figures, FullTextError> {
        Ok(State::load(&self.store.snapshot(), self.keys, &self.options)?.figures())
    }

    /// The index in a snapshot, in which its caller reads documents, too.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn reader(&self, snapshot: &Snapshot) -> Result<Reader, FullTextError> {
        Reader::open(snapshot, self.keys, &self.options)
    }

    /// Removes documents, then adds those of `segment`, whose older versions go, and moves on to change number `reached`; all
    /// of it as one. Ids that are not there are no error.
    ///
    /// The cost is that of the words of these documents, and for every sixteen or few hundred documents, that of bringing
    /// them together.
    ///
    /// # Errors
    /// [`FullTextError::Exhausted`], [`FullTextError::Damaged`], [`FullTextError::Store`]; nothing was changed then.
    pub fn update<S: AsRef<str>>(
        &self,
        removed: &[S],
        segment: &Segment,
        reached: u64,
    ) -> Result<(), FullTextError> {
        let _writer = self.writer.lock();
        let snapshot = self.store.snapshot();
        let state = State::load(&snapshot, self.keys, &self.options)?;
        let dead = DeadMarks::new(&snapshot, self.keys);
        let mut update = Update { snapshot: &snapshot, keys: self.keys, state, dead, batch: Batch::new() };
        update.add(removed, segment)?;
        update.state.reached = reached;
        update.dead.write(&mut update.batch);
        update.batch.put(POINTS, &self.keys.state(), &update.state.encode(&self.options));
        Ok(self.store.derived().write(update.batch)?)
    }
}

/// The addresses of documents in a snapshot; `None` for one that is not there.
pub(crate) fn addresses_of<'i>(
    snapshot: &Snapshot,
    keys: Keys,
    ids: impl Iterator<Item = &'i str>,
) -> Result<Vec<Option<Address>>, FullTextError> {
    let found = snapshot.multi_get(POINTS, &ids.map(|id| keys.address(id)).collect::<Vec<_>>())?;
    let address = |value: &[u8]| {
        let bytes: Result<[u8; ADDRESS_BYTES], _> = value.try_into();
        bytes.map(Address::from_be_bytes).map_err(|_| keys.damaged("an address cannot be read"))
    };
    found.iter().map(|value| value.as_deref().map(address).transpose()).collect()
}

impl Update<'_> {
    fn add<S: AsRef<str>>(&mut self, removed: &[S], segment: &Segment) -> Result<(), FullTextError> {
        let is_first = self.state.added() == 0;
        let whole = self.state.admit(self.keys, segment)?;
        self.replace(removed, &whole, is_first)?;
        if segment.documents > 0 {
            let bytes = u32::try_from(segment.bytes.len()).unwrap_or(u32::MAX);
            let entry = TailEntry { first: whole.first, documents: segment.documents, bytes };
            self.state.tail.insert(0, entry);
            self.settle_tail(whole)?;
        }
        Ok(())
    }

    /// Marks what goes, and notes the addresses of what comes. Before the first segment there is nothing that could go.
    fn replace<S: AsRef<str>>(
        &mut self,
        removed: &[S],
        segment: &TailSegment,
        is_first: bool,
    ) -> Result<(), FullTextError> {
        let view = segment.view();
        let ids: Vec<&str> = view.documents().map(|document| document.id).collect();
        let mut seen: HashSet<&str> = HashSet::with_capacity(ids.len());
        let old = if is_first { vec![None; ids.len()] } else { self.addresses(ids.iter().copied())? };
        for ((address, id), old) in addresses_from(segment.first).zip(&ids).zip(old) {
            self.state.documents += 1;
            if !seen.insert(id) {
                // A newer version of it came with the same update.
                self.bury(address)?;
                continue;
            }
            if let Some(old) = old {
                self.bury(old)?;
            }
            self.batch.put(POINTS, &self.keys.address(id), &address.to_be_bytes());
        }
        let removed: Vec<&str> = removed.iter().map(AsRef::as_ref).filter(|id| seen.insert(id)).collect();
        if is_first {
            return Ok(());
        }
        for (old, id) in self.addresses(removed.iter().copied())?.into_iter().zip(&removed) {
            if let Some(old) = old {
                self.bury(old)?;
                self.batch.delete(POINTS, &self.keys.address(id));
            }
        }
        Ok(())
    }

    fn addresses<'i>(
        &self,
        ids: impl Iterator<Item = &'i str>,
    ) -> Result<Vec<Option<Address>>, FullTextError> {
        addresses_of(self.snapshot, self.keys, ids)
    }

    fn bury(&mut self, address: Address) -> Result<(), FullTextError> {
        if self.dead.mark(address)? {
            self.state.dead += 1;
            self.state.documents = self.state.documents.saturating_sub(1);
        }
        Ok(())
    }

    /// Keeps the newest segment whole, or brings it together with those before.
    fn settle_tail(&mut self, newest: TailSegment) -> Result<(), FullTextError> {
        let (count, is_join) = match next_step(&self.state.tail) {
            TailStep::Keep => {
                self.batch.put(TAIL, &self.keys.tail(newest.first), &newest.bytes);
                return Ok(());
            }
            TailStep::Join(count) => (count, true),
            TailStep::Fold => (self.state.tail.len(), false),
        };
        let first = newest.first;
        let mut segments = vec![newest];
        for entry in self.state.tail.get(1..count).unwrap_or_default() {
            segments.push(TailSegment::load(self.snapshot, self.keys, entry)?);
            self.batch.delete(TAIL, &self.keys.tail(entry.first));
        }
        let joined: Vec<TailEntry> = self.state.tail.drain(..count).collect();
        let documents = joined.iter().map(|entry| entry.documents).sum();
        if is_join {
            let bytes = join(self.keys, &segments)?;
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            self.batch.put(TAIL, &self.keys.tail(first), &bytes);
            self.state.tail.insert(0, TailEntry { first, documents, bytes: length });
        } else {
            self.state.fresh += u64::from(documents);
            fold(self.snapshot, self.keys, &segments, &mut self.dead, &mut self.batch)?;
        }
        Ok(())
    }
}
