//! Storing edits: one call is one atomic, durable batch.
//!
//! The way of an edit: it is parsed and its contents are made ready (no lock); under the database's
//! lock it is held against the document's revisions, gets its change number and becomes part of the
//! batch; the batch is put into the log; the lock is given back; and only then is the sync waited
//! for, which many databases and many updates share.

mod document;

use std::collections::HashMap;
use std::sync::Arc;

use scrinium_store::{Batch, Commit, Family};

use crate::content::{Content, Pin};
use crate::database::Database;
use crate::edit::{Edit, EditMode, Prepared};
use crate::error::{DatabaseError, Result};
use crate::header::Header;
use crate::keys;
use crate::writer::{Foreseen, Pending, Writer};

/// An update may have at most so many edits; a client splits more.
pub const MAX_EDITS: usize = 100_000;

/// What became of one edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The document's id.
    pub id: String,
    /// The revision that the edit made or brought.
    pub revision: String,
}

/// An update on its way to the disk. Nothing of it may be acknowledged before [`Update::wait`] or
/// [`Update::durable`] has returned `Ok`.
#[must_use = "an update is durable only when it was waited for"]
pub struct Update {
    results: Vec<Result<Updated>>,
    commit: Option<Commit>,
}

impl Update {
    pub(crate) const fn new(results: Vec<Result<Updated>>, commit: Option<Commit>) -> Self {
        Self { results, commit }
    }

    /// Waits until the update is durable and visible. Results are in the order of the edits.
    ///
    /// # Errors
    /// What the store reports; then none of the edits may be taken as stored.
    pub fn wait(self) -> Result<Vec<Result<Updated>>> {
        if let Some(commit) = self.commit {
            commit.wait()?;
        }
        Ok(self.results)
    }

    /// As [`Update::wait`], without holding a thread.
    ///
    /// # Errors
    /// What the store reports; then none of the edits may be taken as stored.
    pub async fn durable(self) -> Result<Vec<Result<Updated>>> {
        if let Some(commit) = self.commit {
            commit.await?;
        }
        Ok(self.results)
    }
}

/// What one update adds up under the database's lock.
pub(crate) struct Transaction<'a> {
    pub(crate) database: &'a Arc<Database>,
    writer: &'a Writer,
    foreseen: Foreseen,
    mode: EditMode,
    now_ms: u64,
    header: Header,
    batch: Batch,
    changed: HashMap<String, Pending>,
    design_changed: bool,
    contents: Vec<Content>,
    pins: Vec<Pin>,
}

impl Database {
    /// Stores edits as one atomic batch. Each edit has its own result: a conflict of one does not
    /// keep the others from being stored.
    ///
    /// # Errors
    /// The database is gone, the store takes no writes, or there are more than [`MAX_EDITS`] edits.
    pub fn update(self: &Arc<Self>, edits: Vec<Edit>, mode: EditMode) -> Result<Update> {
        self.check_there()?;
        if edits.len() > MAX_EDITS {
            return Err(DatabaseError::TooLarge {
                error: "too_large",
                reason: format!("One request may have at most {MAX_EDITS} documents; send several."),
            });
        }
        let prepared: Vec<Result<Prepared>> =
            edits.into_iter().map(|edit| edit.prepare(mode, self)).collect();
        self.store_prepared(prepared, mode)
    }

    pub(crate) fn store_prepared(
        self: &Arc<Self>,
        prepared: Vec<Result<Prepared>>,
        mode: EditMode,
    ) -> Result<Update> {
        let foreseen = Foreseen::read(self, &prepared)?;
        let room_bytes = prepared.iter().flatten().map(Prepared::room_bytes).sum();
        let mut writer = self.lock_writer(foreseen.others())?;
        let mut transaction = Transaction {
            database: self,
            writer: &writer,
            foreseen,
            mode,
            now_ms: crate::databases::now_ms(),
            header: writer.header.clone(),
            batch: Batch::with_capacity(room_bytes),
            changed: HashMap::new(),
            design_changed: false,
            contents: Vec::new(),
            pins: Vec::new(),
        };
        let mut results = Vec::with_capacity(prepared.len());
        for edit in prepared {
            let kept_bytes = transaction.batch.len_bytes();
            let result = edit.and_then(|edit| transaction.apply(edit));
            if result.is_err() {
                transaction.batch.take_back_to(kept_bytes);
            }
            results.push(result);
        }
        if transaction.batch.is_empty() {
            return Ok(Update::new(results, None));
        }
        let Transaction { header, mut batch, changed, design_changed, contents, pins, foreseen, .. } =
            transaction;
        drop(foreseen);
        batch.put(Family::Meta, &keys::header(self.number()), &header.encode());
        let before = std::mem::replace(&mut writer.header, header);
        let database = Arc::clone(self);
        let submitted = self.submit(&writer, batch, pins, move |stored| {
            if stored {
                contents.iter().for_each(Content::stored);
                if design_changed {
                    database.views.design_changed();
                }
            }
        });
        let commit = match submitted {
            Ok(commit) => commit,
            Err(error) => {
                writer.header = before;
                return Err(error);
            }
        };
        let mut changed: Vec<(String, Pending)> = changed.into_iter().collect();
        changed.sort_unstable_by_key(|(_, pending)| pending.head.change_number);
        for (id, pending) in changed {
            writer.add_pending(&id, pending);
        }
        Ok(Update::new(results, Some(commit)))
    }
}
