//! The change feed: which documents changed since a number, each once, in the order of their last change.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_document::json::JsonText;
use scrinium_document::{Revision, is_design};
use scrinium_store::{Direction, Family, KeyRange, Slice, Snapshot};

use crate::access::Access;
use crate::access::readable::{ReadableHead, ReadableId, ReadableLeaf};
use crate::database::{Database, header_at};
use crate::error::{DatabaseError, Result};
use crate::head::ChangeRecord;
use crate::keys;
use crate::leaf::Leaf;
use crate::read::{ReadOptions, Renderer};

/// From where changes are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// All of them.
    #[default]
    Beginning,
    /// Only those to come.
    Now,
    /// Those after this sequence.
    At(String),
}

/// Which changes are wanted.
#[derive(Clone, Debug, Default)]
pub struct ChangesQuery {
    /// From where.
    pub since: Since,
    /// From the last to the first.
    pub descending: bool,
    /// At most this many.
    pub limit: Option<u64>,
    /// With each change its document.
    pub include_documents: bool,
    /// In those documents the other leaves.
    pub conflicts: bool,
    /// In those documents the attachments' contents.
    pub attachments: bool,
    /// Changes are read at once until their documents hold this many bytes, however many are asked for.
    pub piece_bytes: Option<usize>,
    /// `style=all_docs`: all leaves, not the winner only.
    pub all_leaves: bool,
    /// Only these documents.
    pub ids: Option<Vec<String>>,
    /// Only design documents.
    pub design_only: bool,
    /// Only documents of which a reported revision matches, and of those revisions the ones that do.
    pub filter: Option<Arc<dyn ChangesFilter>>,
}

/// Says which revisions a reader of changes is to see.
pub trait ChangesFilter: std::fmt::Debug + Send + Sync {
    /// Whether it lets a leaf pass.
    ///
    /// # Errors
    /// What cannot be read of it.
    fn lets_pass(&self, database: &Database, leaf: ReadableLeaf<'_>) -> Result<bool>;
}

/// A document that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where a reader continues after this change.
    pub sequence: String,
    /// The change's number.
    pub change_number: u64,
    /// The document.
    pub id: String,
    /// Its winner first, then, if they were asked for, its other leaves.
    pub revisions: Vec<String>,
    /// Whether the winner is a tombstone.
    pub deleted: bool,
    /// The document as JSON, if it was asked for.
    pub document: Option<JsonText>,
}

/// Documents held against a filter by one call.
const MOST_EXAMINED: usize = 2000;

/// A call ends after a document that a filter has taken so long to look at, all before it included.
const FILTER_TIME: Duration = Duration::from_secs(1);

/// Changes that are left are counted up to here, and estimated beyond.
const MOST_COUNTED: u64 = 1000;

/// Changes on their way to a reader, as of one snapshot, in bounded memory.
pub struct Changes {
    database: Arc<Database>,
    snapshot: Snapshot,
    query: ChangesQuery,
    /// Of the one who asks; of a document that was deleted everybody learns that.
    access: Access,
    options: ReadOptions,
    ids: Option<HashSet<String>>,
    from: Vec<u8>,
    to: Vec<u8>,
    left: u64,
    reached: u64,
    last: u64,
    /// It began with the first change, or backwards with the last, and this many have been looked at since.
    is_from_end: bool,
    passed: u64,
    /// What a function of a filter failed with: that concerns the reader, and not the document it failed on alone.
    filter_failure: Mutex<Option<DatabaseError>>,
}

impl Database {
    /// The changes that `query` asks for and `access` lets be read, as of now.
    ///
    /// # Errors
    /// The database is gone, a `since` that is no sequence, and what the store reports.
    pub fn changes(self: &Arc<Self>, query: ChangesQuery, access: &Access) -> Result<Changes> {
        self.check_there()?;
        // Seen before the snapshot is taken, so that the snapshot has at least this change.
        let visible = self.visible_change_number();
        let snapshot = self.store().snapshot();
        let given_up_to = self.given_up_to(visible);
        let last = self.last_change(&snapshot)?.max(visible).min(given_up_to);
        let since = match &query.since {
            Since::Beginning => 0,
            Since::Now => last,
            Since::At(text) => self.parse_sequence(text)?,
        };
        let options = ReadOptions {
            conflicts: query.conflicts,
            attachments: query.attachments,
            ..ReadOptions::default()
        };
        let (first, end) = keys::change_range(self.number());
        // A descending feed begins at the end, whatever `since` says, as in CouchDB.
        let from =
            if query.descending { first } else { keys::change(self.number(), since.saturating_add(1)) };
        Ok(Changes {
            database: Arc::clone(self),
            snapshot,
            access: access.clone(),
            options,
            ids: query.ids.as_ref().map(|ids| ids.iter().cloned().collect()),
            from,
            to: end.min(keys::change(self.number(), given_up_to.saturating_add(1))),
            left: query.limit.unwrap_or(u64::MAX),
            reached: if query.descending { last } else { since.min(last) },
            last,
            is_from_end: query.descending || since == 0,
            passed: 0,
            filter_failure: Mutex::default(),
            query,
        })
    }

    /// The number of the last change in a snapshot.
    ///
    /// # Errors
    /// What the store reports.
    pub fn last_change(&self, snapshot: &Snapshot) -> Result<u64> {
        let (from, to) = keys::change_range(self.number());
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Backward);
        Ok(cursor.next()?.and_then(|(key, _)| keys::change_number_of(key)).unwrap_or(0))
    }
}

impl Changes {
    /// The next changes, at most `max`. With a filter there may be none although more are to come, so that a call
    /// reads a bounded number of documents: [`is_at_end`](Self::is_at_end) tells.
    ///
    /// # Errors
    /// What the store reports.
    pub fn next_changes(&mut self, max: usize) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        let snapshot = self.snapshot.clone();
        let direction = if self.query.descending { Direction::Backward } else { Direction::Forward };
        let (from, to) = (self.from.clone(), self.to.clone());
        if from >= to {
            return Ok(changes);
        }
        let mut cursor = snapshot.cursor(Family::Churn, KeyRange { from: &from, to: Some(&to) }, direction);
        let (mut examined, mut bytes) = (0, 0);
        let piece_bytes = self.query.piece_bytes.unwrap_or(usize::MAX);
        let filtering = self.query.filter.is_some().then(Instant::now);
        let is_in_time = || filtering.is_none_or(|since| since.elapsed() < FILTER_TIME);
        while is_in_time()
            && self.left > 0
            && changes.len() < max
            && examined < MOST_EXAMINED
            && bytes < piece_bytes
        {
            let Some((key, stored)) = cursor.next()? else {
                if !self.query.descending {
                    self.reached = self.last;
                }
                self.left = 0;
                break;
            };
            let damaged = || DatabaseError::damaged("change", self.database.name());
            let change_number = keys::change_number_of(key).ok_or_else(damaged)?;
            let record = ChangeRecord::decode(stored).ok_or_else(damaged)?;
            self.reached = change_number;
            self.passed += 1;
            if self.query.descending {
                self.to = key.to_vec();
            } else {
                self.from = keys::change(self.database.number(), change_number + 1);
            }
            if self.wants(&record.id) {
                let looks = self.query.filter.is_some() || !self.access.reads_everything();
                examined += usize::from(looks);
                let change = self.sound_change(change_number, record)?;
                self.left -= u64::from(change.is_some());
                let document = change.as_ref().and_then(|change| change.document.as_ref());
                bytes += document.map_or(0, |document| document.len());
                changes.extend(change);
            }
        }
        Ok(changes)
    }

    fn wants(&self, id: &str) -> bool {
        (!self.query.design_only || is_design(id)) && self.ids.as_ref().is_none_or(|ids| ids.contains(id))
    }

    /// The change of a document that cannot be read is shown to those who may read everything, without the document, and
    /// to nobody else, since nobody knows whether they may.
    fn sound_change(&self, change_number: u64, record: ChangeRecord) -> Result<Option<Change>> {
        let change = self.change(change_number, &record);
        if let Some(failure) = self.filter_failure.lock().take() {
            return Err(failure);
        }
        if let Some(change) = self.database.pass_over(&record.id, change)? {
            return Ok(change);
        }
        if !self.access.reads_everything() || self.query.filter.is_some() {
            return Ok(None);
        }
        Ok(Some(Change {
            sequence: self.database.sequence_text(change_number),
            change_number,
            revisions: vec![record.winner.to_string()],
            deleted: record.deleted,
            document: self.query.include_documents.then(JsonText::default),
            id: record.id,
        }))
    }

    /// None if the filter leaves it out, or it may not be read.
    fn change(&self, change_number: u64, record: &ChangeRecord) -> Result<Option<Change>> {
        let ChangeRecord { id, winner, deleted, several_leaves } = record;
        let several = self.query.all_leaves && *several_leaves;
        let access = &self.access;
        let needs_head = several || self.query.include_documents;
        let head = if needs_head { self.database.head(&self.snapshot, id)? } else { None };
        let readable = |head| access.readable_head(&self.database, &self.snapshot, id, head);
        let head = head.as_ref().map(readable).transpose()?;
        let (id, leaves) = match &head {
            Some(head) if several => {
                let leaves = head.leaves().map(|leaf| leaf.revision.clone()).collect();
                (head.readable_id(id.clone()), leaves)
            }
            _ => (access.readable_id(&self.database, &self.snapshot, id.clone())?, vec![winner.clone()]),
        };
        let Some(id) = id else { return Ok(None) };
        let mut revisions: Vec<Revision> = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            if self.matches(&id, &leaf, leaf == *winner)? {
                revisions.push(leaf);
            }
        }
        let Some(first) = revisions.first() else { return Ok(None) };
        let document = match &head {
            Some(head) if self.query.include_documents => {
                // The winner, or who may not read that gets the first of what they are told of.
                let shown = head.winner().map_or(first, |winner| winner.revision);
                Some(self.render(&id, shown, shown == winner, head)?)
            }
            _ => None,
        };
        Ok(Some(Change {
            sequence: self.database.sequence_text(change_number),
            change_number,
            revisions: revisions.iter().map(Revision::to_string).collect(),
            id: id.into_string(),
            deleted: *deleted,
            document,
        }))
    }

    /// Whether the filter, if there is one, lets a leaf pass.
    fn matches(&self, id: &ReadableId, revision: &Revision, is_winner: bool) -> Result<bool> {
        let Some(filter) = &self.query.filter else { return Ok(true) };
        let stored = self.stored(id, revision, is_winner)?;
        let leaf = self.access.check_read(&self.database, id, Leaf::decode(id, &stored)?)?;
        let passes = filter.lets_pass(&self.database, leaf);
        if let Err(DatabaseError::Invalid { input, .. }) = &passes
            && input.is_of_function()
        {
            *self.filter_failure.lock() = passes.clone().err();
        }
        passes
    }

    fn render(
        &self,
        id: &ReadableId,
        revision: &Revision,
        is_winner: bool,
        head: &ReadableHead<'_>,
    ) -> Result<JsonText> {
        let stored = self.stored(id, revision, is_winner)?;
        let leaf = self.access.check_read(&self.database, id, Leaf::decode(id, &stored)?)?;
        Ok(Renderer::new(&self.database, &self.options).render(&leaf, Some(head))?.json)
    }

    /// The record of the winner, or of a losing leaf.
    fn stored(&self, id: &str, revision: &Revision, is_winner: bool) -> Result<Slice> {
        let number = self.database.number();
        let key = if is_winner { keys::winner(number, id) } else { keys::loser(number, id, revision) };
        let stored = self.snapshot.get(Family::Scan, &key)?;
        stored.ok_or_else(|| DatabaseError::damaged("document", id))
    }

    /// Whether there are no more changes.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.left == 0 || self.from >= self.to
    }

    /// Where a reader continues after what was given so far; after the end, past what was filtered out.
    #[must_use]
    pub fn last_sequence(&self) -> String {
        self.database.sequence_text(self.reached)
    }

    /// How many documents' changes are not given yet, those that a filter leaves out among them. Where many are left in a
    /// feed that began in the middle, about: a document that changed twice counts twice. `None` where some may be of
    /// documents that the one who asks does not see.
    ///
    /// # Errors
    /// What the store reports.
    pub fn pending(&self) -> Result<Option<u64>> {
        let pending = self.count_pending()?;
        Ok((pending == 0 || self.database.shows_all(&self.access)?).then_some(pending))
    }

    fn count_pending(&self) -> Result<u64> {
        if self.from >= self.to {
            return Ok(0);
        }
        let range = KeyRange { from: &self.from, to: Some(&self.to) };
        let mut cursor = self.snapshot.cursor(Family::Churn, range, Direction::Forward);
        let mut counted = 0;
        while counted < MOST_COUNTED {
            if cursor.next()?.is_none() {
                return Ok(counted);
            }
            counted += 1;
        }
        // Each document has one change.
        let header = header_at(&self.snapshot, self.database.number())?;
        let all = header.document_count.saturating_add(header.deleted_count);
        let left = if self.is_from_end {
            all.saturating_sub(self.passed)
        } else {
            self.last.saturating_sub(self.reached)
        };
        Ok(left.min(all).max(counted))
    }
}
