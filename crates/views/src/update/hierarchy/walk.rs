//! Placing documents, and what responds to them, where they belong in the tree.
//!
//! Where a response is follows from its own record and its parent's. So whenever the entries of a document become
//! others, its responses are placed again, each followed by what responds to it if its own entries became others: a
//! walk downwards that keeps one place for each level. Whatever the order of changes, it ends where every response is
//! beneath its parent's entries: documents that respond to each other in a circle are nowhere, since each would be
//! deeper than itself.
//!
//! A large walk is written in several batches. Each of them names the documents whose responses are not all placed
//! (*marks*), and says no more than that the changes before it were followed; so after a crash the marked documents
//! are gone through again, before any change.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use scrinium_assertion::never;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_formula::{Environment, Responses};
use scrinium_index::{Change, Index};
use scrinium_store::{Batch, Direction, Family, KeyRange, Snapshot};

use super::judge::{Judge, Judged, Response};
use crate::error::OrDatabaseError as _;
use crate::group::View;
use crate::hierarchy::record::{FAMILY, Placed, Record, link, links_of, mark, marked};
use crate::hierarchy::{LEVEL_MAX, response_value};
use crate::lists::list_key;
use crate::open::OpenDatabase;

/// A batch is written when it holds about this many bytes or records.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_RECORDS: usize = 4000;

/// Responses to one document that are evaluated at once.
const RESPONSES_AT_ONCE: usize = 100;

/// A document whose responses are being placed.
struct Frame {
    parent: String,
    /// The link to read on from; `None`: there are no more.
    from: Option<Vec<u8>>,
}

/// A record as it will be after the batch, or as it was read for that.
struct Known {
    record: Option<Arc<Record>>,
    is_changed: bool,
}

/// Places documents in one view.
pub(super) struct Walk<'a> {
    view: &'a View,
    /// Where the entries go: the view's index, or one that takes its place.
    target: &'a Index,
    judge: Judge<'a>,
    /// The links as they were last written.
    stored: Snapshot,
    records: HashMap<String, Known>,
    /// Links that come or go with the batch.
    links: BTreeMap<Vec<u8>, bool>,
    changes: Vec<Change>,
    bytes: usize,
    /// The deepest comes last.
    frames: Vec<Frame>,
    /// Documents that are marked in the store.
    marked: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    /// `None`: the view shows no responses.
    pub(super) fn new(
        database: &'a OpenDatabase,
        view: &'a View,
        target: &'a Index,
        snapshot: &'a Snapshot,
        environment: &'a Environment,
    ) -> Result<Self> {
        let definition = view.definition.as_ref();
        let hierarchy = definition.responses.as_ref().ok_or_else(|| {
            never!("a view whose documents are placed beneath others says so", "{}", definition.name)
        })?;
        Ok(Self {
            view,
            target,
            judge: Judge { database, definition, hierarchy, snapshot, environment },
            stored: database.store().snapshot(),
            records: HashMap::new(),
            links: BTreeMap::new(),
            changes: Vec::new(),
            bytes: 0,
            frames: Vec::new(),
            marked: BTreeSet::new(),
        })
    }

    pub(super) const fn judge(&self) -> Judge<'a> {
        self.judge
    }

    /// Ends the walk that a crash or a failure cut off.
    pub(super) fn go_on(&mut self) -> Result<()> {
        self.stored = self.judge.database.store().snapshot();
        let ids = marked(&self.stored, self.view.index.id)?;
        self.marked = ids.iter().cloned().collect();
        ids.into_iter().for_each(|id| self.push(id));
        self.descend(self.target.reached())
    }

    /// Places a document and whatever follows from that; `reached` is the last change before.
    pub(super) fn place(&mut self, id: &str, judged: Option<Judged>, reached: u64) -> Result<()> {
        if self.put(id, judged, true)? {
            self.push(id.to_owned());
            self.descend(reached)?;
        }
        Ok(())
    }

    fn push(&mut self, parent: String) {
        let from = Some(links_of(self.view.index.id, &parent));
        self.frames.push(Frame { parent, from });
    }

    /// Places the responses of all documents that wait for it.
    fn descend(&mut self, reached: u64) -> Result<()> {
        while self.step(reached)? {}
        Ok(())
    }

    /// Places some responses of the document that waits first; false if none waits.
    fn step(&mut self, reached: u64) -> Result<bool> {
        let Some(mut frame) = self.frames.pop() else { return Ok(false) };
        let some = self.read(&mut frame)?;
        if some.is_empty() {
            return Ok(true);
        }
        // It stays among those that wait until these are written too.
        self.frames.push(frame);
        let ids: Vec<&str> = some.iter().map(String::as_str).collect();
        let judged = self.judge.judge_many(&ids)?;
        for (id, judged) in some.iter().zip(judged) {
            if self.put(id, judged, false)? {
                self.push(id.clone());
            }
            self.write_if_full(reached)?;
        }
        Ok(true)
    }

    /// The next responses to a document; none at the end.
    fn read(&self, frame: &mut Frame) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        let prefix = links_of(self.view.index.id, &frame.parent);
        let to = keys::successor(&prefix);
        while found.is_empty()
            && let Some(from) = frame.from.take()
        {
            let range = KeyRange { from: &from, to: Some(&to) };
            let mut cursor = self.stored.cursor(FAMILY, range, Direction::Forward);
            let mut links = BTreeSet::new();
            while links.len() < RESPONSES_AT_ONCE
                && let Some((key, _)) = cursor.next()?
            {
                links.insert(key.to_vec());
            }
            if links.len() == RESPONSES_AT_ONCE {
                frame.from = links.last().map(|last| keys::next(last));
            }
            for (link, is_there) in self.links.range(from..frame.from.clone().unwrap_or_else(|| to.clone())) {
                if *is_there {
                    links.insert(link.clone());
                } else {
                    links.remove(link);
                }
            }
            for link in links {
                let id = link.get(prefix.len()..).and_then(|id| std::str::from_utf8(id).ok());
                found.insert(id.ok_or_else(|| DatabaseError::damaged("link", &frame.parent))?.to_owned());
            }
        }
        Ok(found)
    }

    /// What the index knows of a document, after all that was done.
    fn record(&mut self, id: &str) -> Result<Option<Arc<Record>>> {
        if let Some(known) = self.records.get(id) {
            return Ok(known.record.clone());
        }
        let store = self.judge.database.store();
        let stored = store.get(Family::DerivedPoint, &list_key(self.view.index.id, id))?;
        let totals = self.judge.definition.totals().count();
        let decode = |bytes: &[u8]| {
            Record::decode(totals, bytes).ok_or_else(|| DatabaseError::damaged("list of entries", id))
        };
        let record = stored.map(|bytes| decode(&bytes)).transpose()?.map(Arc::new);
        self.keep(id, record.clone(), false);
        Ok(record)
    }

    fn keep(&mut self, id: &str, record: Option<Arc<Record>>, is_changed: bool) {
        self.bytes += id.len() + record.as_ref().map_or(0, |record| record.bytes());
        self.records.insert(id.to_owned(), Known { record, is_changed });
    }

    /// Gives a document the entries that it should have; true if those of its responses follow from others now. What
    /// did not change itself, and stays where it is, is left as it is.
    fn put(&mut self, id: &str, judged: Option<Judged>, is_changed: bool) -> Result<bool> {
        let old = self.record(id)?;
        let (new, values) = match judged {
            None => (None, Vec::new()),
            Some(Judged::Main(record, values)) => (Some(record), values),
            Some(Judged::Response(response)) => {
                let (record, values) = self.beneath(id, response, old.as_deref())?;
                (Some(record), values)
            }
        };
        if old.as_deref() == new.as_ref() && (!is_changed || new.is_none()) {
            return Ok(false);
        }
        let nothing = Record::default();
        let (before, after) = (old.as_deref().unwrap_or(&nothing), new.as_ref().unwrap_or(&nothing));
        for stream in before.streams() {
            for entry in &before.entries {
                let key = [&stream[..], &before.key_of(entry)].concat();
                self.change(Change::Remove { key, sums: entry.totals.clone() }, 0);
            }
        }
        for stream in after.streams() {
            for (entry, value) in after.entries.iter().zip(&values) {
                let key = [&stream[..], &after.key_of(entry)].concat();
                let (value, sums) = (value.clone(), entry.totals.clone());
                let bytes = value.len();
                self.change(Change::Insert { key, value, sums }, bytes);
            }
        }
        if before.parent != after.parent {
            let index = self.view.index.id;
            let link = |parent: &String| link(index, parent, id);
            self.links.extend(before.parent.as_ref().map(|parent| (link(parent), false)));
            self.links.extend(after.parent.as_ref().map(|parent| (link(parent), true)));
        }
        let moves = self.moves_responses(before, after);
        self.keep(id, new.map(Arc::new), true);
        Ok(moves)
    }

    fn change(&mut self, change: Change, value_bytes: usize) {
        let (Change::Insert { key, .. } | Change::Remove { key, .. }) = &change;
        self.bytes += key.len() + value_bytes;
        self.changes.push(change);
    }

    /// The record of a response, and for each of its entries the value.
    fn beneath(
        &mut self,
        id: &str,
        response: Response,
        old: Option<&Record>,
    ) -> Result<(Record, Vec<Vec<u8>>)> {
        let parent = self.record(&response.parent)?;
        let is_new_parent = old.and_then(|old| old.parent.as_ref()) != Some(&response.parent);
        let is_selected = |parent: &Record| {
            response.is_selected
                || match self.judge.hierarchy.adds {
                    Responses::None => false,
                    Responses::Children => parent.is_selected,
                    Responses::Descendants => true,
                }
        };
        let parent = parent.filter(|parent| parent.level < LEVEL_MAX && is_selected(parent));
        let parent = match parent {
            Some(parent) if !is_new_parent || !self.leads_back(&response.parent, id)? => Some(parent),
            _ => None,
        };
        let Response { parent: parent_id, is_selected, tail, columns, totals, readers } = response;
        let mut record = Record { parent: Some(parent_id), is_selected, tail, ..Record::default() };
        let Some(parent) = parent.filter(|parent| !parent.entries.is_empty()) else {
            return Ok((record, Vec::new()));
        };
        record.level = parent.level + 1;
        let placed = |above: &Placed| Placed {
            key: parent.key_of(above),
            head: above.head.clone(),
            totals: totals.clone(),
        };
        record.entries = parent.entries.iter().map(placed).collect();
        record.limit(readers, parent.readers.as_ref());
        let value = |entry: &Placed| response_value(record.level, id, &record.tail, entry, &columns);
        let values = record.entries.iter().map(value).collect();
        Ok((record, values))
    }

    /// Whether a document is among those above and including `parent`, or these are too many. It would come out all the
    /// same, but only after everything beneath it had gone down level by level.
    fn leads_back(&mut self, parent: &str, id: &str) -> Result<bool> {
        let mut above = parent.to_owned();
        for _ in 0..=LEVEL_MAX {
            if above == id {
                return Ok(true);
            }
            match self.record(&above)?.and_then(|record| record.parent.clone()) {
                Some(parent) => above = parent,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Whether anything changed that the entries of responses are made from.
    fn moves_responses(&self, before: &Record, after: &Record) -> bool {
        let same = |before: &Placed, after: &Placed| before.key == after.key && before.head == after.head;
        let pairs = || before.entries.iter().zip(&after.entries);
        before.level != after.level
            || before.tail != after.tail
            || before.readers != after.readers
            || before.entries.len() != after.entries.len()
            || pairs().any(|(before, after)| !same(before, after))
            || self.judge.hierarchy.adds == Responses::Children && before.is_selected != after.is_selected
    }

    pub(super) fn write_if_full(&mut self, reached: u64) -> Result<()> {
        let is_full = self.bytes >= BATCH_BYTES
            || self.records.len() >= BATCH_RECORDS
            || self.changes.len() >= BATCH_RECORDS;
        if is_full { self.write(reached) } else { Ok(()) }
    }

    /// Writes what was done as one batch, after which the index stands at change `reached`.
    pub(super) fn write(&mut self, reached: u64) -> Result<()> {
        let (index, target) = (&self.view.index, self.target);
        let mut batch = Batch::new();
        for (id, known) in self.records.drain().filter(|(_, known)| known.is_changed) {
            let key = list_key(index.id, &id);
            match known.record {
                Some(record) => batch.put(Family::DerivedPoint, &key, &record.encode()),
                None => batch.delete(Family::DerivedPoint, &key),
            }
        }
        for (link, is_there) in std::mem::take(&mut self.links) {
            if is_there {
                batch.put(FAMILY, &link, &[]);
            } else {
                batch.delete(FAMILY, &link);
            }
        }
        let waiting: BTreeSet<String> = self.frames.iter().map(|frame| frame.parent.clone()).collect();
        waiting.difference(&self.marked).for_each(|id| batch.put(FAMILY, &mark(index.id, id), &[]));
        self.marked.difference(&waiting).for_each(|id| batch.delete(FAMILY, &mark(index.id, id)));
        let reached = reached.max(target.reached());
        if reached > target.reached() || !batch.is_empty() || !self.changes.is_empty() {
            target.update(std::mem::take(&mut self.changes), batch, reached).or_database_error()?;
            self.stored = self.judge.database.store().snapshot();
        }
        self.marked = waiting;
        self.bytes = 0;
        Ok(())
    }
}
