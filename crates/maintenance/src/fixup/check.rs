//! What every check works with: a moment of the store, what was found in it, and what is to be mended.

use std::collections::{BTreeMap, BTreeSet};

use scrinium_contents::hex;
use scrinium_database::folder::record::{FolderState, ReadCounts};
use scrinium_database::header::Header;
use scrinium_database::keys::Digest;
use scrinium_database::{DatabaseError, Result};
use scrinium_statistics::Task;
use scrinium_store::{Direction, Family, Gap, KeyRange, ScanOptions, ScanStep, Snapshot, TolerantScan};
use scrinium_views::OpenDatabase;

use super::report::{FindingKind, FindingOutcome};

/// The task reports its progress after this many records.
const TOLD_EVERY: u64 = 1000;

/// At most this many things are mended in one round; what is left is found again by the next.
const MENDS_MAX: usize = 100_000;

/// How far a fixup is, and what it looked at.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) task: Option<Task>,
    pub(super) records: u64,
    pub(super) documents: u64,
    pub(super) contents: u64,
    pub(super) content_bytes: u64,
}

impl Watch {
    /// One more record was looked at.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] if the task was told to stop.
    pub(super) fn tick(&mut self) -> Result<()> {
        self.records += 1;
        if self.records.is_multiple_of(TOLD_EVERY) { self.tell() } else { Ok(()) }
    }

    pub(super) fn tell(&self) -> Result<()> {
        let Some(task) = &self.task else { return Ok(()) };
        task.progress(self.records);
        if task.is_cancelled() {
            let reason = "The fixup was cancelled; what it repaired so far is repaired.".to_owned();
            return Err(DatabaseError::Unavailable { reason });
        }
        Ok(())
    }
}

/// Something that was found, and what is to become of it.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) kind: FindingKind,
    pub(super) subject: String,
    pub(super) detail: String,
    pub(super) outcome: FindingOutcome,
}

/// What is to be mended.
#[derive(Default, Debug)]
pub(super) struct Mends {
    /// Documents whose records are held against each other and rewritten.
    pub(super) documents: BTreeSet<String>,
    /// Entries of the feed of changes that are looked at again, and removed if no document has them.
    pub(super) changes: BTreeSet<u64>,
    /// Records that are put aside, and why.
    pub(super) records: BTreeMap<(Family, Vec<u8>), &'static str>,
    pub(super) references: BTreeSet<(Digest, String)>,
    /// Contents whose stored bytes are not what they should be.
    pub(super) contents: BTreeSet<Digest>,
    /// Contents that are to be looked at by the collector.
    pub(super) unused: BTreeSet<Digest>,
    /// Folders whose counts are there and whose record is not.
    pub(super) recovered: BTreeSet<u32>,
    /// Folders that are not there, of which something is left.
    pub(super) leftovers: BTreeSet<u32>,
    /// By the folder and the document: the uids and change numbers that records of it have.
    pub(super) memberships: BTreeMap<(u32, String), BTreeSet<(u64, u64)>>,
    /// By the document and the person: the change numbers that records of it have.
    pub(super) marks: BTreeMap<(String, String), BTreeSet<u64>>,
    /// Documents whose number of marks is wrong.
    pub(super) mark_counts: BTreeSet<String>,
    /// What counts are, and what they should be; only where all records agree.
    pub(super) header: Option<(Header, Header)>,
    pub(super) states: BTreeMap<u32, (FolderState, FolderState)>,
    pub(super) counts: BTreeMap<String, (ReadCounts, ReadCounts)>,
}

impl Mends {
    /// Whether records are to be mended, besides being counted.
    pub(super) fn has_records(&self) -> bool {
        self.records_len() > 0
    }

    fn records_len(&self) -> usize {
        self.documents.len()
            + self.changes.len()
            + self.records.len()
            + self.references.len()
            + self.contents.len()
            + self.unused.len()
            + self.recovered.len()
            + self.leftovers.len()
            + self.memberships.len()
            + self.marks.len()
            + self.mark_counts.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.records_len() >= MENDS_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_records() && self.header.is_none() && self.states.is_empty() && self.counts.is_empty()
    }
}

/// A database as it stood at one moment, being checked.
pub(super) struct Check<'a> {
    pub(super) database: &'a OpenDatabase,
    pub(super) snapshot: &'a Snapshot,
    pub(super) header: Header,
    pub(super) watch: &'a mut Watch,
    pub(super) notes: Vec<Note>,
    pub(super) mends: Mends,
    /// Some of what the database consists of cannot be read.
    pub(super) has_gaps: bool,
    /// Contents that are objects are read, and not only looked for.
    pub(super) reads_objects: bool,
}

impl<'a> Check<'a> {
    pub(super) fn new(
        database: &'a OpenDatabase,
        snapshot: &'a Snapshot,
        header: Header,
        watch: &'a mut Watch,
    ) -> Self {
        let (notes, mends) = (Vec::new(), Mends::default());
        Self { database, snapshot, header, watch, notes, mends, has_gaps: false, reads_objects: false }
    }

    pub(super) fn number(&self) -> u32 {
        self.database.number()
    }

    /// Notes something that will be put right from what is sound.
    pub(super) fn repairs(
        &mut self,
        kind: FindingKind,
        subject: impl Into<String>,
        detail: impl Into<String>,
    ) {
        self.note(kind, subject, detail, FindingOutcome::Repaired);
    }

    pub(super) fn note(
        &mut self,
        kind: FindingKind,
        subject: impl Into<String>,
        detail: impl Into<String>,
        outcome: FindingOutcome,
    ) {
        self.notes.push(Note { kind, subject: subject.into(), detail: detail.into(), outcome });
    }

    /// A document that is to be mended; said once.
    pub(super) fn mend_document(
        &mut self,
        kind: FindingKind,
        id: &str,
        detail: &str,
        outcome: FindingOutcome,
    ) {
        if self.mends.is_full() || !self.mends.documents.insert(id.to_owned()) {
            return;
        }
        self.note(kind, id, detail, outcome);
    }

    /// A record that is to be put aside.
    pub(super) fn set_aside(&mut self, kind: FindingKind, family: Family, key: &[u8], reason: &'static str) {
        if !self.mends.is_full() && self.mends.records.insert((family, key.to_vec()), reason).is_none() {
            self.note(kind, hex(key), reason, FindingOutcome::SetAside);
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.has_gaps = true;
        let to = gap.to.as_ref().map_or_else(|| "the end".to_owned(), |to| hex(to));
        let detail = format!("{} records from here to {to} cannot be read: {}", gap.family, gap.error);
        self.note(FindingKind::Unreadable, hex(&gap.from), detail, FindingOutcome::Left);
    }

    /// Looks at all records of a range.
    pub(super) fn each(
        &mut self,
        family: Family,
        (from, to): &(Vec<u8>, Vec<u8>),
        mut look: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut scan = self.snapshot.tolerant(family, KeyRange { from, to: Some(to) });
        while let Some(step) = scan.next() {
            match step {
                ScanStep::Entry(key, value) => {
                    self.watch.tick()?;
                    look(self, key, value)?;
                }
                ScanStep::Gap(gap) => self.gap(&gap),
            }
        }
        Ok(())
    }

    /// A walk through one range of several.
    pub(super) fn walk(&mut self, family: Family, (from, to): &(Vec<u8>, Vec<u8>)) -> Result<Walk<'a>> {
        let scan = self.snapshot.tolerant(family, KeyRange { from, to: Some(to) });
        let mut walk = Walk { scan, is_there: false, key: Vec::new(), value: Vec::new() };
        walk.step(self)?;
        Ok(walk)
    }

    /// One record, read past the cache.
    pub(super) fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let to = scrinium_database::keys::next(key);
        let options = ScanOptions { direction: Direction::Forward, read_ahead_bytes: 0, fill_cache: false };
        let mut cursor = self.snapshot.cursor_with(family, KeyRange { from: key, to: Some(&to) }, options);
        Ok(cursor.next()?.map(|(_, value)| value.to_vec()))
    }
}

/// Stands on one record of a range.
pub(super) struct Walk<'a> {
    scan: TolerantScan<'a>,
    is_there: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Walk<'_> {
    /// The key and the value; `None` behind the last.
    pub(super) fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.is_there.then_some((&self.key, &self.value))
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        self.is_there.then_some(&self.key)
    }

    /// Goes on to the next record.
    pub(super) fn step(&mut self, check: &mut Check<'_>) -> Result<()> {
        loop {
            match self.scan.next() {
                None => {
                    self.is_there = false;
                    return Ok(());
                }
                Some(ScanStep::Gap(gap)) => check.gap(&gap),
                Some(ScanStep::Entry(key, value)) => {
                    check.watch.tick()?;
                    self.is_there = true;
                    self.key.clear();
                    self.key.extend_from_slice(key);
                    self.value.clear();
                    self.value.extend_from_slice(value);
                    return Ok(());
                }
            }
        }
    }

    /// Goes on to the first record at `key` or behind it; the next step is tried first, since it mostly is that.
    pub(super) fn reach(&mut self, check: &mut Check<'_>, key: &[u8]) -> Result<()> {
        if !self.is_there || self.key.as_slice() >= key {
            // One that comes before where the walk stands is looked for again.
            if self.is_there && self.key.as_slice() == key {
                return Ok(());
            }
            self.scan.seek(key);
            return self.step(check);
        }
        self.step(check)?;
        if self.is_there && self.key.as_slice() < key {
            self.scan.seek(key);
            self.step(check)?;
        }
        Ok(())
    }
}
