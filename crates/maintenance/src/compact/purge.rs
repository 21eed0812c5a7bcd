//! Purging what only says that something is gone: tombstones of documents, and of what has left folders.
//!
//! A purged document leaves no trace but its entry among the last purged ones: feeds of changes, views and `_all_docs` go
//! on without it, and it is no more than a document that never was. Like CouchDB's purge it is not replicated; each server
//! purges for itself. Documents go in small batches under the database's lock, each checked to be the tombstone that
//! was found; an update that read one before finds out that it has gone, and builds on nothing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use scrinium_contents::Pin;
use scrinium_database::compaction_record::{CompactionRecord, PurgedDocument};
use scrinium_database::folder::record::{FolderRecord, MemberChange};
use scrinium_database::head::{ChangeRecord, Head};
use scrinium_database::header::Header;
use scrinium_database::undelete::is_kept;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_document::Revision;
use scrinium_store::{Batch, Direction, Family, KeyRange};

use super::Subject;
use super::limit::Limit;
use super::work::Halt;

/// Documents purged by one batch, so that nobody waits long for the lock.
const DOCUMENTS_AT_ONCE: usize = 100;

/// Changes of folders looked at by one step.
const MEMBERSHIPS_AT_ONCE: usize = 1000;

/// What was purged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Tombstones of documents.
    pub documents: u64,
    /// Tombstones of what had left folders.
    pub memberships: u64,
    /// Who keeps older ones from being purged, in words.
    pub held_by: Option<String>,
}

/// Asked between two batches: whether to go on.
pub(super) type GoOn<'a> = &'a mut dyn FnMut() -> std::result::Result<(), Halt>;

/// Some tombstones.
#[derive(Default)]
struct Tombstones {
    /// Their changes and ids.
    found: Vec<(u64, String)>,
    /// The change to go on from; `None` at the end.
    last: Option<u64>,
    /// The first that must stay: it was made later than its number says, since somebody set the clock.
    young: Option<u64>,
}

/// A batch that purges documents.
struct Purge {
    batch: Batch,
    pins: Vec<Pin>,
    header: Header,
    purged: u64,
}

impl Subject<'_> {
    /// Purges tombstones older than `after`, as far as all who are known to follow have seen them; zero: none.
    pub(super) fn purge_tombstones(
        &self,
        after: Duration,
        go_on: GoOn<'_>,
    ) -> std::result::Result<Purged, Halt> {
        let after_ms = scrinium_clock::milliseconds(after);
        if after_ms == 0 {
            return Ok(Purged::default());
        }
        if self.is_held() {
            return Ok(Purged { held_by: Some("a legal hold".to_owned()), ..Purged::default() });
        }
        let until_ms = self.now_ms().saturating_sub(after_ms);
        let Limit { change_number: limit, held_by } = self.purge_limit(until_ms)?;
        let mut purged = Purged { held_by, ..Purged::default() };
        let from = self.compaction_record()?.purged_to;
        if from >= limit {
            return Ok(purged);
        }
        // What the indexes have followed may be in memory only, and after a crash they would follow it again.
        self.store().admin().checkpoint()?;
        let (mut next, mut young) = (Some(from), None::<u64>);
        while let Some(from) = next {
            let tombstones = self.tombstones(from, limit, until_ms)?;
            let (documents, busy) = self.purge_documents(&tombstones.found)?;
            purged.documents += documents;
            young = young.into_iter().chain(tombstones.young).chain(busy).min();
            next = tombstones.last;
            go_on()?;
        }
        let to = young.map_or(limit, |young| young.saturating_sub(1));
        // First, and no further: clients from before must be told that they have missed what left a folder.
        self.change_record(|record| record.purged_to = to)?;
        purged.memberships = self.purge_memberships(to, go_on)?;
        self.change_record(|record| record.purged_memberships += purged.memberships)?;
        let counts = &self.compactions.counts;
        counts.purged_documents.fetch_add(purged.documents, Ordering::Relaxed);
        counts.purged_memberships.fetch_add(purged.memberships, Ordering::Relaxed);
        Ok(purged)
    }

    /// Changes what is remembered, which purges by hand change too.
    pub(super) fn change_record(&self, change: impl FnOnce(&mut CompactionRecord)) -> Result<()> {
        let _purges = self.lock_purges();
        let mut record = self.compaction_record()?;
        change(&mut record);
        let mut batch = Batch::for_removing();
        batch.put(Family::Meta, &keys::compaction(self.number()), &record.encode());
        Ok(self.store().commit(batch)?)
    }

    /// Some tombstones of changes after `from` up to `to` that were made by `until_ms`.
    fn tombstones(&self, from: u64, to: u64, until_ms: u64) -> Result<Tombstones> {
        let mut tombstones = Tombstones::default();
        let number = self.number();
        let (first, end) = (keys::change(number, from + 1), keys::change(number, to.saturating_add(1)));
        if first >= end {
            return Ok(tombstones);
        }
        let snapshot = self.store().snapshot();
        let range = KeyRange { from: &first, to: Some(&end) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
        while let Some((key, stored)) = cursor.next()? {
            let change = keys::change_number_of(key).zip(ChangeRecord::decode(stored));
            let (change_number, change) =
                change.ok_or_else(|| DatabaseError::damaged("change", self.name()))?;
            if !change.deleted {
                continue;
            }
            if self.modified_ms(&snapshot, &change.id)? > until_ms {
                tombstones.young.get_or_insert(change_number);
                continue;
            }
            tombstones.found.push((change_number, change.id));
            if tombstones.found.len() >= DOCUMENTS_AT_ONCE {
                tombstones.last = Some(change_number);
                break;
            }
        }
        Ok(tombstones)
    }

    /// How many of these were purged, and the first that must be looked at again, since an update has it at hand.
    fn purge_documents(&self, dead: &[(u64, String)]) -> Result<(u64, Option<u64>)> {
        if dead.is_empty() {
            return Ok((0, None));
        }
        let _purges = self.lock_purges();
        let (mut record, limit) = (self.compaction_record()?, self.purged_limit()?);
        let mut writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        self.check_not_held("its tombstones can be purged")?;
        let mut purge = Purge {
            batch: Batch::for_removing(),
            pins: Vec::new(),
            header: writer.header.clone(),
            purged: 0,
        };
        let mut busy = None;
        for (change_number, id) in dead {
            // It may be changed just now; or it is kept for updates on their way, which would build on it.
            if writer.pending(id).is_some() {
                busy = busy.or(Some(*change_number));
            } else {
                let before = record.purged_documents;
                if !self.purge_document(&mut purge, (*change_number, id), (before, limit))? {
                    busy = busy.or(Some(*change_number));
                }
            }
        }
        let Purge { mut batch, pins, mut header, purged } = purge;
        if purged == 0 {
            return Ok((0, busy));
        }
        header.change_number += 1;
        record.purged_documents += purged;
        batch.put(Family::Meta, &keys::header(self.number()), &header.encode());
        batch.put(Family::Meta, &keys::compaction(self.number()), &record.encode());
        let change_number = header.change_number;
        let before = std::mem::replace(&mut writer.header, header);
        let submitted = self.submit(&writer, batch, pins, |_| {});
        let commit = submitted.inspect_err(|_| writer.header = before)?;
        // Held until it is stored: anyone who comes next must find that the documents are gone.
        commit.wait()?;
        writer.forget_what_was_read_before(change_number);
        drop(writer);
        Ok((purged, busy))
    }

    /// Adds a document to the batch if it is the tombstone that was found; false if it must be looked at again, because it is
    /// of a message that can be had back.
    fn purge_document(
        &self,
        purge: &mut Purge,
        (change_number, id): (u64, &str),
        (purged_before, remembered_max): (u64, u64),
    ) -> Result<bool> {
        let number = self.number();
        let Some(stored) = self.store().get(Family::Point, &keys::head(number, id))? else { return Ok(true) };
        let head = Head::decode(&stored).ok_or_else(|| DatabaseError::damaged("revision tree", id))?;
        if head.change_number != change_number || head.tree.leaves().any(|leaf| !leaf.deleted) {
            return Ok(true);
        }
        for body in &head.earlier {
            if is_kept(self.store(), number, id, body)? {
                return Ok(false);
            }
        }
        let Purge { batch, pins, header, purged } = purge;
        let winner = head.tree.winner().map(|winner| winner.revision.clone());
        let revisions: Vec<Revision> = head.tree.leaves().map(|leaf| leaf.revision.clone()).collect();
        batch.delete(Family::Point, &keys::head(number, id));
        batch.delete(Family::Scan, &keys::winner(number, id));
        batch.delete(Family::Churn, &keys::change(number, change_number));
        for loser in revisions.iter().filter(|revision| Some(*revision) != winner.as_ref()) {
            batch.delete(Family::Scan, &keys::loser(number, id, loser));
        }
        for body in &head.earlier {
            batch.delete(Family::Scan, &keys::earlier(number, id, &body.revision));
        }
        for digest in &head.contents {
            pins.push(self.context.contents.pin(digest));
            batch.delete(Family::Point, &keys::reference(digest, number, id));
            batch.put(Family::Point, &keys::collectable(digest), &[]);
        }
        header.deleted_count = header.deleted_count.saturating_sub(1);
        header.external_bytes = header.external_bytes.saturating_sub(head.external_bytes);
        header.stored_bytes = header.stored_bytes.saturating_sub(head.stored_bytes);
        *purged += 1;
        let purge_number = purged_before + *purged;
        let remembered = PurgedDocument { id: id.to_owned(), revisions };
        batch.put(Family::Churn, &keys::purged(number, purge_number), &remembered.encode());
        if let Some(forgotten) = purge_number.checked_sub(remembered_max) {
            batch.delete(Family::Churn, &keys::purged(number, forgotten));
        }
        Ok(true)
    }

    /// Purges what has left folders by change `limit`. Nobody writes these records a second time, so no lock is needed.
    fn purge_memberships(&self, limit: u64, go_on: GoOn<'_>) -> std::result::Result<u64, Halt> {
        let mut purged = 0;
        for folder in self.folder_numbers()? {
            let mut from = keys::member_change(self.number(), folder, 0);
            let to = keys::member_change(self.number(), folder, limit.saturating_add(1));
            loop {
                let (batch, found, next) = self.left_folder(&from, &to)?;
                self.store().commit(batch).map_err(DatabaseError::from)?;
                purged += found;
                go_on()?;
                match next {
                    Some(next) => from = next,
                    None => break,
                }
            }
        }
        Ok(purged)
    }

    fn left_folder(&self, from: &[u8], to: &[u8]) -> Result<(Batch, u64, Option<Vec<u8>>)> {
        let snapshot = self.store().snapshot();
        let mut cursor = snapshot.cursor(Family::Churn, KeyRange::new(from, to), Direction::Forward);
        let (mut batch, mut found) = (Batch::for_removing(), 0);
        for _ in 0..MEMBERSHIPS_AT_ONCE {
            let Some((key, stored)) = cursor.next()? else { return Ok((batch, found, None)) };
            let change = MemberChange::decode(stored)
                .ok_or_else(|| DatabaseError::damaged("change of a folder", self.name()))?;
            if change.has_left() {
                batch.delete(Family::Churn, key);
                found += 1;
            }
        }
        let next = cursor.next()?.map(|(key, _)| key.to_vec());
        Ok((batch, found, next))
    }

    fn folder_numbers(&self) -> Result<Vec<u32>> {
        let (from, to) = keys::folder_range(self.number());
        let snapshot = self.store().snapshot();
        let mut cursor = snapshot.cursor(Family::Point, KeyRange::new(&from, &to), Direction::Forward);
        let mut numbers = Vec::new();
        while let Some((_, stored)) = cursor.next()? {
            numbers.extend(FolderRecord::decode(stored).map(|folder| folder.number));
        }
        Ok(numbers)
    }
}
