//! The reader's side of an index.

use std::cell::Cell;
use std::collections::BTreeSet;

use scrinium_store::Snapshot;

use crate::format::{Address, Keys, addresses_from};
use crate::index::addresses_of;
use crate::state::State;
use crate::tail::TailSegment;
use crate::{AnalysisOptions, Figures, FullTextError, Segment};

/// Which documents somebody may find. Only who has checked access makes one, and no query is answered without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readership {
    /// All documents of the database.
    Everything,
    /// Those that are open to everybody, and those whose readers have one of these names: the person's own, groups and roles.
    Names(Vec<String>),
}

/// An index as it stands in a snapshot.
pub struct Reader {
    pub(crate) snapshot: Snapshot,
    pub(crate) keys: Keys,
    pub(crate) state: State,
    /// The newest first.
    pub(crate) tail: Vec<TailSegment>,
    /// Documents that the latest changes replace.
    pub(crate) hidden: BTreeSet<Address>,
    /// Whether the index itself has documents that are dead.
    pub(crate) has_dead: bool,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Reader")
            .field("id", &self.keys.id)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn open(
        snapshot: &Snapshot,
        keys: Keys,
        options: &AnalysisOptions,
    ) -> Result<Self, FullTextError> {
        let state = State::load(snapshot, keys, options)?;
        let tail = state.tail.iter().map(|entry| TailSegment::load(snapshot, keys, entry));
        let tail = tail.collect::<Result<Vec<_>, _>>()?;
        let has_dead = state.documents < state.added();
        Ok(Self { snapshot: snapshot.clone(), keys, state, tail, hidden: BTreeSet::new(), has_dead })
    }

    /// The change number that the index has reached.
    #[must_use]
    pub fn reached(&self) -> u64 {
        self.state.reached
    }

    /// What it holds.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.state.figures()
    }

    /// The same with changes that the index has not reached, as [`FullTextIndex::update`](crate::FullTextIndex::update)
    /// would make them: for who reads before the index is up to date.
    ///
    /// # Errors
    /// [`FullTextError::Exhausted`], [`FullTextError::Damaged`], [`FullTextError::Store`].
    pub fn with_latest<S: AsRef<str>>(
        mut self,
        removed: &[S],
        segment: &Segment,
    ) -> Result<Self, FullTextError> {
        let latest = self.state.admit(self.keys, segment)?;
        let mut gone = BTreeSet::new();
        for (address, document) in addresses_from(latest.first).zip(latest.view().documents()) {
            if !gone.insert(document.id) {
                self.hidden.insert(address);
            }
        }
        gone.extend(removed.iter().map(AsRef::as_ref));
        // What the changes before these brought is in no record of the store.
        for segment in &self.tail {
            for (address, document) in addresses_from(segment.first).zip(segment.view().documents()) {
                if gone.contains(document.id) {
                    self.hidden.insert(address);
                }
            }
        }
        self.hidden.extend(addresses_of(&self.snapshot, self.keys, gone.into_iter())?.into_iter().flatten());
        self.tail.insert(0, latest);
        Ok(self)
    }

    /// Words of a document, on the average.
    pub(crate) fn average_words(&self) -> f32 {
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "it is an average")]
        let average = (self.state.words as f64 / self.state.added().max(1) as f64) as f32;
        average.max(1.0)
    }

    /// The segment of the tail that an address is in.
    pub(crate) fn tail_segment(&self, address: Address) -> Option<&TailSegment> {
        let last = self.tail.last()?;
        // Nearly all lie behind the tail.
        if address.checked_sub(last.first).is_some_and(|at| at >= last.view().documents) {
            return None;
        }
        let holds = |segment: &&TailSegment| {
            address.checked_sub(segment.first).is_some_and(|at| at < segment.view().documents)
        };
        self.tail.iter().find(holds)
    }
}

/// How much a query may still read. Shared by all parts of it.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) postings: Cell<u64>,
    pub(crate) postings_max: u64,
    pub(crate) terms: Cell<u64>,
    pub(crate) terms_max: u64,
}

impl Budget {
    pub(crate) fn new(postings_max: u64, terms_max: u64) -> Self {
        Self { postings: Cell::new(postings_max), postings_max, terms: Cell::new(terms_max), terms_max }
    }

    pub(crate) fn take_postings(&self, count: usize) -> Result<(), FullTextError> {
        match self.postings.get().checked_sub(count as u64) {
            Some(left) => self.postings.set(left),
            None => return Err(FullTextError::TooBroad { what: "postings", limit: self.postings_max }),
        }
        Ok(())
    }

    pub(crate) fn take_term(&self) -> Result<(), FullTextError> {
        match self.terms.get().checked_sub(1) {
            Some(left) => self.terms.set(left),
            None => return Err(FullTextError::TooBroad { what: "terms", limit: self.terms_max }),
        }
        Ok(())
    }
}
