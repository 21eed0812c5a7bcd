//! Records are written: all of a round in one batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use scrinium_assertion::always;
use scrinium_database::{DatabaseError, Edit, EditMode, Updated};
use scrinium_mail::{QUEUE_KEEPER, QueuedDocument};
use scrinium_mail_queue::{Destination, QueueEntry, Record};
use serde_json::json;

use super::{BATCHES_MAX, QueueManager, RoundReport, SETTLED_AT_ONCE, Then, Told};
use crate::index::IndexedEntry;

/// Entries that one batch changes.
const EDITS_AT_ONCE: usize = 2_000;

/// A record that is to be written, and what follows.
pub(super) struct Pending {
    pub(super) id: Arc<str>,
    pub(super) record: Record,
    pub(super) then: Then,
}

/// An entry with the records that were carried out on it.
struct Staged {
    id: Arc<str>,
    document: QueuedDocument,
    records: Vec<Pending>,
    /// The last record, where nothing is left to do.
    removal: Option<Record>,
}

impl QueueManager {
    /// Writes all records that are pending, and those that follow from them.
    pub(super) fn write_all(&mut self, report: &mut RoundReport) -> Result<(), DatabaseError> {
        for _ in 0..BATCHES_MAX {
            let now_ms = self.clock.now_ms();
            for _ in 0..SETTLED_AT_ONCE {
                let Some(id) = self.unsettled.pop_first() else { break };
                if let Err(error) = self.settle(&id, now_ms) {
                    self.trouble(&id, now_ms);
                    return Err(error);
                }
            }
            if self.work.is_empty() {
                return Ok(());
            }
            self.write_some(report, now_ms)?;
        }
        Ok(())
    }

    fn write_some(&mut self, report: &mut RoundReport, now_ms: u64) -> Result<(), DatabaseError> {
        let mut by_id: BTreeMap<Arc<str>, Vec<Pending>> = BTreeMap::new();
        for pending in std::mem::take(&mut self.work) {
            if by_id.len() >= EDITS_AT_ONCE && !by_id.contains_key(&pending.id) {
                self.work.push(pending);
                continue;
            }
            by_id.entry(Arc::clone(&pending.id)).or_default().push(pending);
        }
        let mut staged = Vec::with_capacity(by_id.len());
        let mut failure = None;
        for (id, pendings) in by_id {
            match self.read(&id) {
                Ok(Some(document)) => staged.extend(self.stage(id, document, pendings, now_ms)),
                Ok(None) => {
                    self.index.set(&id, None)?;
                    pendings.into_iter().for_each(|pending| self.do_after(&id, pending.then, now_ms));
                }
                Err(error) => {
                    self.work.extend(pendings);
                    failure = Some(error);
                }
            }
        }
        let edits = staged.iter().map(|staged| staged.edit(now_ms)).collect();
        let written = self.database.update_in_parts(edits, EditMode::Interactive, &QUEUE_KEEPER);
        let results = match written.and_then(|update| update.wait()) {
            Ok(results) => results,
            Err(error) => {
                staged.into_iter().for_each(|staged| self.work.extend(staged.records));
                return Err(error);
            }
        };
        always!(results.len() == staged.len(), "each edit of an update has a result")?;
        for (staged, result) in staged.into_iter().zip(results) {
            match result {
                Ok(updated) => self.written(staged, updated, report, now_ms)?,
                // Somebody has edited it by hand this moment: the records are carried out on what it is now.
                Err(DatabaseError::Conflict) => self.work.extend(staged.records),
                Err(error) => {
                    self.work.extend(staged.records);
                    failure = Some(error);
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Carries out records on an entry.
    fn stage(
        &mut self,
        id: Arc<str>,
        mut document: QueuedDocument,
        pendings: Vec<Pending>,
        now_ms: u64,
    ) -> Option<Staged> {
        let mut records = Vec::with_capacity(pendings.len());
        for pending in pendings {
            match document.entry.apply(&pending.record) {
                Ok(()) => records.push(pending),
                Err(error) => {
                    tracing::warn!(%error, "a record of the mail queue is left out");
                    self.do_after(&id, pending.then, now_ms);
                }
            }
        }
        if records.is_empty() {
            self.unsettled.insert(id);
            return None;
        }
        let removal =
            if document.entry.removed { None } else { document.entry.remove(now_ms, &self.options.policy) };
        if let Some(removal) = &removal {
            // It follows from the step that gave it.
            let _applied = document.entry.apply(removal);
        }
        Some(Staged { id, document, records, removal })
    }

    fn written(
        &mut self,
        staged: Staged,
        updated: Updated,
        report: &mut RoundReport,
        now_ms: u64,
    ) -> Result<(), DatabaseError> {
        let Staged { id, mut document, records, removal } = staged;
        self.own.insert(updated.id, updated.revision.clone());
        document.revision = updated.revision;
        report.records += records.len() as u64;
        let tell = |record: &Record| {
            if let Some(told) = &self.on_record {
                told(&Told { record, entry: &document.entry });
            }
        };
        records.iter().for_each(|pending| tell(&pending.record));
        removal.iter().for_each(tell);
        if document.entry.removed {
            self.index.set(&id, None)?;
        } else {
            let indexed = IndexedEntry::of(&document.entry, now_ms, &self.options.policy);
            self.index.set(&id, Some(&indexed))?;
            if indexed.is_unsettled {
                self.unsettled.insert(Arc::clone(&id));
            }
        }
        for pending in records {
            match pending.then {
                Then::Send(attempt) => self.send(attempt, &document, now_ms),
                then => self.do_after(&id, then, now_ms),
            }
        }
        Ok(())
    }

    /// The rules have changed since the message was queued: who waits becomes entries of the ways that hold now, and the entry
    /// goes, in one batch.
    pub(super) fn reroute(&mut self, document: &QueuedDocument, now_ms: u64) -> Result<(), DatabaseError> {
        let entry = &document.entry;
        let mut ways: BTreeMap<Destination, QueueEntry> = BTreeMap::new();
        for recipient in entry.waiting().into_iter().filter_map(|place| entry.recipient(place)) {
            let mut destination = self.queue.options().transports.destination(&recipient.address);
            destination.require_tls |= entry.envelope.require_tls;
            let number = ways.len() + 1;
            let way = ways.entry(destination.clone()).or_insert_with(|| QueueEntry {
                id: format!("{}.{number}", entry.id),
                destination,
                recipients: Vec::new(),
                ..entry.clone()
            });
            way.recipients.push(recipient.clone());
        }
        let name = scrinium_mail::SOURCE_ATTACHMENT;
        let source = self.database.share_attachment(&entry.id, name, None, &QUEUE_KEEPER)?;
        let mut edits = vec![deletion(&entry.id, &document.revision)];
        for way in ways.values() {
            edits.push(Edit {
                id: Some(way.id.clone()),
                json: QueuedDocument::fields_of(way, document.start_bytes, now_ms).to_string().into(),
                attachments: vec![source.clone()],
                ..Edit::default()
            });
        }
        for result in self.database.update(edits, EditMode::Interactive, &QUEUE_KEEPER)?.wait()? {
            // A conflict: somebody has edited it by hand this moment, and the feed brings it.
            if let Err(error) = result
                && !matches!(error, DatabaseError::Conflict)
            {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Staged {
    fn edit(&self, now_ms: u64) -> Edit {
        let QueuedDocument { entry, revision, .. } = &self.document;
        if entry.removed {
            return deletion(&entry.id, revision);
        }
        Edit { json: self.document.edited(now_ms).to_string().into(), ..Edit::default() }
    }
}

fn deletion(id: &str, revision: &str) -> Edit {
    Edit {
        json: json!({"_id": id, "_rev": revision, "_deleted": true}).to_string().into(),
        ..Edit::default()
    }
}
