//! The state record of an index.
//!
//! ```text
//! state = format (1), analysis version (2), options (1), next address (4), reached (8), documents (8), words (8),
//!         restricted (8), languages (8), dead (8), fresh (8), tail count, tail × (first address (4), documents, bytes),
//!         00 | 01 term to go on with
//! ```
//!
//! Numbers with a width are little endian, others LEB128.

use scrinium_store::Snapshot;

use crate::format::{ADDRESSES_END, Address, Bytes, Keys, POINTS, push_number, push_part};
use crate::forms::ANALYSIS_VERSION;
use crate::language::LanguageSet;
use crate::tail::TailSegment;
use crate::{AnalysisOptions, FullTextError, Segment};

const FORMAT: u8 = 1;

/// A segment that is kept whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailEntry {
    pub(crate) first: Address,
    pub(crate) documents: u32,
    pub(crate) bytes: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The address of the newest document, or the end of all addresses.
    pub(crate) next: Address,
    pub(crate) reached: u64,
    /// Documents that can be found.
    pub(crate) documents: u64,
    /// Words of all documents that were ever added.
    pub(crate) words: u64,
    /// Documents that not everybody may read, of all that were ever added.
    pub(crate) restricted: u64,
    pub(crate) languages: LanguageSet,
    /// Documents that are gone and that blocks may still name.
    pub(crate) dead: u64,
    /// Documents that were added since blocks were last compacted.
    pub(crate) fresh: u64,
    /// The newest first.
    pub(crate) tail: Vec<TailEntry>,
    /// Where a compaction goes on.
    pub(crate) compaction: Option<Vec<u8>>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            next: ADDRESSES_END,
            reached: 0,
            documents: 0,
            words: 0,
            restricted: 0,
            languages: LanguageSet::default(),
            dead: 0,
            fresh: 0,
            tail: Vec::new(),
            compaction: None,
        }
    }
}

impl State {
    /// The state of an index in a snapshot; that of an empty one if there is none.
    pub(crate) fn load(
        snapshot: &Snapshot,
        keys: Keys,
        options: &AnalysisOptions,
    ) -> Result<Self, FullTextError> {
        let Some(bytes) = snapshot.get(POINTS, &keys.state())? else { return Ok(Self::default()) };
        let mut bytes = Bytes(&bytes);
        match bytes.byte() {
            Some(FORMAT) => {}
            Some(found) if found > FORMAT => {
                return Err(FullTextError::NewerFormat { id: keys.id, found, newest: FORMAT });
            }
            _ => return Err(FullTextError::Outdated { id: keys.id, what: "format" }),
        }
        let made = bytes.fixed().map(u16::from_le_bytes).zip(bytes.byte());
        if made != Some((ANALYSIS_VERSION, options.code())) {
            return Err(FullTextError::Outdated { id: keys.id, what: "analysis" });
        }
        Self::read(&mut bytes).ok_or_else(|| keys.damaged("its state cannot be read"))
    }

    fn read(bytes: &mut Bytes<'_>) -> Option<Self> {
        let next = Address::from_le_bytes(bytes.fixed()?);
        let mut number = || bytes.fixed().map(u64::from_le_bytes);
        let (reached, documents, words, restricted) = (number()?, number()?, number()?, number()?);
        let (languages, dead, fresh) = (LanguageSet(number()?), number()?, number()?);
        let count = bytes.size()?;
        let mut tail = Vec::new();
        for _ in 0..count {
            let first = Address::from_le_bytes(bytes.fixed()?);
            tail.push(TailEntry { first, documents: bytes.number()?, bytes: bytes.number()? });
        }
        let compaction = if bytes.byte()? == 1 { Some(bytes.part()?.to_vec()) } else { None };
        let this =
            Self { next, reached, documents, words, restricted, languages, dead, fresh, tail, compaction };
        bytes.0.is_empty().then_some(this)
    }

    pub(crate) fn encode(&self, options: &AnalysisOptions) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&ANALYSIS_VERSION.to_le_bytes());
        bytes.push(options.code());
        bytes.extend_from_slice(&self.next.to_le_bytes());
        let numbers = [
            self.reached,
            self.documents,
            self.words,
            self.restricted,
            self.languages.0,
            self.dead,
            self.fresh,
        ];
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        push_number(&mut bytes, self.tail.len() as u64);
        for entry in &self.tail {
            bytes.extend_from_slice(&entry.first.to_le_bytes());
            push_number(&mut bytes, u64::from(entry.documents));
            push_number(&mut bytes, u64::from(entry.bytes));
        }
        match &self.compaction {
            Some(term) => {
                bytes.push(1);
                push_part(&mut bytes, term);
            }
            None => bytes.push(0),
        }
        bytes
    }

    /// Gives a segment its addresses, in front of all others, and counts it in.
    pub(crate) fn admit(&mut self, keys: Keys, segment: &Segment) -> Result<TailSegment, FullTextError> {
        let first = self.next.checked_sub(segment.documents);
        let first = first.ok_or(FullTextError::Exhausted { id: keys.id })?;
        let whole = TailSegment::new(first, segment.bytes.clone());
        let whole = whole.ok_or_else(|| keys.damaged("a segment that was just made cannot be read"))?;
        self.next = first;
        self.words = self.words.saturating_add(segment.words);
        self.restricted += u64::from(segment.restricted);
        self.languages.0 |= whole.view().languages.0;
        Ok(whole)
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            reached: self.reached,
            documents: self.documents,
            dead: self.dead,
            compaction_is_due: self.compaction_is_due(),
        }
    }

    /// Documents that were ever added.
    pub(crate) fn added(&self) -> u64 {
        u64::from(ADDRESSES_END.saturating_sub(self.next))
    }

    /// Whether so much is dead or in small pieces that a compaction pays.
    pub(crate) fn compaction_is_due(&self) -> bool {
        const AT_LEAST: u64 = 4096;
        self.compaction.is_some()
            || self.dead > AT_LEAST / 16 + self.documents / 4
            || self.fresh > AT_LEAST + self.added() / 2
    }
}

/// What an index holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The change number that it has reached.
    pub reached: u64,
    /// Documents that can be found.
    pub documents: u64,
    /// Documents that are gone and still take room.
    pub dead: u64,
    /// Whether [`FullTextIndex::compact`](crate::FullTextIndex::compact) would be worth its while.
    pub compaction_is_due: bool,
}
