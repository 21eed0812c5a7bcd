//! Transactions: edits of several databases of one store as one batch, all or none.
//!
//! The locks of the databases are taken in the order of their numbers. Under them the conditions are held against the
//! documents once more and every edit is applied; if one of them fails nothing is put into the log. Else one record of the log
//! has all of it, so that there is never half of it after a crash, and each database's feed shows its part as ordinary changes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::MutexGuard;
use scrinium_contents::{Content, Pin};
use scrinium_document::{Revision, is_local};
use scrinium_store::{Batch, Commit};

use super::{Transaction, Updated, Written, check_number};
use crate::access::Access;
use crate::changes::ChangesFilter;
use crate::database::Database;
use crate::edit::{Edit, Prepared};
use crate::edit_mode::EditMode;
use crate::error::{DatabaseError, Result};
use crate::head::Head;
use crate::header::Header;
use crate::keys::Digest;
use crate::leaf::Leaf;
use crate::validation::{PAUSE, TRIES};
use crate::writer::{Pending, PrefetchedHeads, Writer};

/// The most databases of a transaction.
pub const TRANSACTION_DATABASES_MAX: usize = 16;

/// The most edits and conditions of a transaction. The locks of its databases are held while they are applied.
pub const TRANSACTION_EDITS_MAX: usize = 1_000;

/// What a transaction does in one database.
pub struct TransactionPart {
    /// The database.
    pub database: Arc<Database>,
    /// Who acts there.
    pub access: Access,
    /// What must hold of its documents before.
    pub conditions: Vec<Condition>,
    /// What is stored.
    pub edits: Vec<Edit>,
}

/// What must hold of a document, as the one who acts sees it, for a transaction to be stored.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The document's id.
    pub id: String,
    /// What must hold.
    pub kind: ConditionKind,
}

/// What must hold of a document.
#[derive(Clone, Debug)]
pub enum ConditionKind {
    /// It is there, or it is not.
    Exists(bool),
    /// This is its revision.
    Revision(String),
    /// It is there, and its values pass this.
    Passes(Arc<dyn ChangesFilter>),
}

/// Why nothing of a transaction was stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TransactionRefusal {
    /// A condition does not hold.
    #[error("condition {place} of `{database}`, on document `{id}`, does not hold")]
    Condition {
        /// The database.
        database: String,
        /// Which of its conditions, counted from 0.
        place: usize,
        /// The document.
        id: String,
    },
    /// An edit cannot be stored.
    #[error("edit {place} of `{database}`: {error}")]
    Edit {
        /// The database.
        database: String,
        /// Which of its edits, counted from 0.
        place: usize,
        /// Why not.
        error: DatabaseError,
    },
    /// It is a matter of the databases, or of the transaction as a whole.
    #[error("{0}")]
    Whole(#[from] DatabaseError),
}

/// A transaction on its way to the disk. Nothing of it may be acknowledged before [`durable`](Self::durable) or
/// [`wait`](Self::wait) has returned `Ok`.
#[must_use = "a transaction is durable only when it was waited for"]
pub struct TransactionUpdate {
    results: Vec<Vec<Updated>>,
    commit: Option<Commit>,
}

impl TransactionUpdate {
    /// Waits until it is durable and visible. For each part what became of its edits, in their order.
    ///
    /// # Errors
    /// What the store reports; then nothing of it may be taken as stored.
    pub fn wait(self) -> Result<Vec<Vec<Updated>>> {
        if let Some(commit) = self.commit {
            commit.wait()?;
        }
        Ok(self.results)
    }

    /// As [`wait`](Self::wait), without holding a thread.
    ///
    /// # Errors
    /// As there.
    pub async fn durable(self) -> Result<Vec<Vec<Updated>>> {
        if let Some(commit) = self.commit {
            commit.await?;
        }
        Ok(self.results)
    }
}

/// A part of a transaction, ready to be held against its database.
struct Ready {
    /// Where it stood among the parts as they came.
    place: usize,
    database: Arc<Database>,
    access: Access,
    conditions: Vec<Condition>,
    edits: Vec<Prepared>,
}

/// What a document's winner must still be when its database is locked, so that what was found of a condition holds.
struct Seen {
    id: String,
    winner: Option<Revision>,
}

/// What is left of one database's part once it is applied.
struct Applied {
    written: Option<Written>,
    results: Vec<Updated>,
}

/// Stores edits of several databases, which must lie in one store, as one atomic batch, if all conditions hold and each edit
/// can be stored. Each database is named once.
///
/// # Errors
/// [`TransactionRefusal`]; nothing was stored then.
pub fn update_together(
    parts: Vec<TransactionPart>,
) -> std::result::Result<TransactionUpdate, TransactionRefusal> {
    let mut ready = ready(parts)?;
    ready.sort_by_key(|part| part.database.number());
    for _ in 0..TRIES {
        match attempt(&ready) {
            Err(TransactionRefusal::Whole(DatabaseError::Stale)) => std::thread::sleep(PAUSE),
            attempted => return attempted,
        }
    }
    Err(DatabaseError::Conflict.into())
}

/// Everything that can be done without a lock.
fn ready(parts: Vec<TransactionPart>) -> std::result::Result<Vec<Ready>, TransactionRefusal> {
    let size = parts.iter().map(|part| part.edits.len() + part.conditions.len()).sum();
    check_number(size)?;
    if parts.len() > TRANSACTION_DATABASES_MAX || size > TRANSACTION_EDITS_MAX {
        let reason = format!(
            "A transaction may have {TRANSACTION_EDITS_MAX} edits and conditions in {TRANSACTION_DATABASES_MAX} databases."
        );
        return Err(DatabaseError::bad_request(reason).into());
    }
    let mut ready: Vec<Ready> = Vec::with_capacity(parts.len());
    for (place, part) in parts.into_iter().enumerate() {
        let TransactionPart { database, access, conditions, edits } = part;
        let database = database.moved().unwrap_or(database);
        database.check_there()?;
        if ready.iter().any(|other| other.database.number() == database.number()) {
            return Err(DatabaseError::bad_request("A database stands in a transaction once.").into());
        }
        let is_validated = database.validation()?.is_some();
        let prepare = |(place, edit): (usize, Edit)| {
            let parsed = edit.parse(EditMode::Interactive, &database);
            let prepared = parsed
                .and_then(|parsed| parsed.prepare(EditMode::Interactive, (&database, &access), is_validated))
                .and_then(|prepared| match is_local(&prepared.id) {
                    false => Ok(prepared),
                    true => {
                        Err(DatabaseError::bad_request("`_local` documents have no part in transactions."))
                    }
                });
            prepared.map_err(|error| refused(&database, place, error))
        };
        let edits = edits.into_iter().enumerate().map(prepare).collect::<std::result::Result<_, _>>()?;
        ready.push(Ready { place, database, access, conditions, edits });
    }
    Ok(ready)
}

fn attempt(parts: &[Ready]) -> std::result::Result<TransactionUpdate, TransactionRefusal> {
    let stays: Vec<_> = parts
        .iter()
        .map(|part| part.database.pin_location().map_err(|_| DatabaseError::Stale))
        .collect::<Result<_>>()?;
    check_place(parts)?;
    let mut looked = Vec::with_capacity(parts.len());
    for part in parts {
        looked.push((part.look()?, part.validated()?, part.prefetched()?));
    }
    let mut writers: Vec<MutexGuard<'_, Writer>> = Vec::with_capacity(parts.len());
    for (part, (_, _, prefetched)) in parts.iter().zip(&looked) {
        writers.push(part.database.lock_writer(prefetched.others())?);
    }
    // A failed write of the store was noticed by some of them and not by others.
    if writers.windows(2).any(|pair| matches!(pair, [one, other] if one.failures != other.failures)) {
        return Err(DatabaseError::Stale.into());
    }
    let mut applied = Vec::with_capacity(parts.len());
    let mut brought = HashSet::new();
    for ((part, writer), (seen, edits, prefetched)) in parts.iter().zip(&writers).zip(looked) {
        applied.push(part.apply(writer, &seen, edits, (prefetched, &mut brought))?);
    }
    let update = submit(parts, &mut writers, applied)?;
    drop((writers, stays));
    Ok(update)
}

/// # Errors
/// Databases in several stores, or of which some are not logged: they have no batch in common.
fn check_place(parts: &[Ready]) -> Result<()> {
    let Some(first) = parts.first() else { return Ok(()) };
    for part in parts {
        if !Arc::ptr_eq(&part.database.context, &first.database.context) {
            let reason = format!(
                "A transaction is of databases of one volume: `{}` and `{}` lie on different ones.",
                first.database.name(),
                part.database.name()
            );
            return Err(DatabaseError::bad_request(reason));
        }
        if part.database.properties().logged != first.database.properties().logged {
            let reason = format!(
                "A transaction is of databases with the same property `logged`: `{}` and `{}` differ.",
                first.database.name(),
                part.database.name()
            );
            return Err(DatabaseError::bad_request(reason));
        }
    }
    Ok(())
}

impl Database {
    /// Whether changes of both can be one batch.
    #[must_use]
    pub fn shares_a_batch_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.context, &other.context) && self.properties().logged == other.properties().logged
    }
}

impl Ready {
    /// Whether the conditions hold, and what must not change for them to go on holding.
    fn look(&self) -> std::result::Result<Vec<Seen>, TransactionRefusal> {
        let snapshot = self.database.store().snapshot();
        let mut seen = Vec::with_capacity(self.conditions.len());
        for (place, Condition { id, kind }) in self.conditions.iter().enumerate() {
            let head = self.database.head(&snapshot, id)?;
            let winner = head.as_ref().and_then(winner_of);
            let holds = self.holds(&snapshot, (id, winner.as_ref()), kind)?;
            if !holds {
                return Err(TransactionRefusal::Condition {
                    database: self.database.name().to_owned(),
                    place,
                    id: id.clone(),
                });
            }
            seen.push(Seen { id: id.clone(), winner });
        }
        Ok(seen)
    }

    /// Whether a condition holds of a document as the one who acts sees it: what they may not read is not there.
    fn holds(
        &self,
        snapshot: &scrinium_store::Snapshot,
        (id, winner): (&str, Option<&Revision>),
        kind: &ConditionKind,
    ) -> Result<bool> {
        self.access.check_reader()?;
        let key = crate::keys::winner(self.database.number(), id);
        let stored = snapshot.get(scrinium_store::Family::Scan, &key)?;
        let read = |stored| self.access.check_read(&self.database, id, Leaf::decode(id, stored)?);
        let leaf = match stored.as_deref().map(read) {
            Some(Ok(leaf)) if !leaf.deleted => Some(leaf),
            Some(Ok(_) | Err(DatabaseError::NotFound { .. })) | None => None,
            Some(Err(error)) => return Err(error),
        };
        Ok(match (kind, leaf) {
            (ConditionKind::Exists(exists), leaf) => leaf.is_some() == *exists,
            (_, None) => false,
            (ConditionKind::Revision(revision), Some(_)) => {
                winner.is_some_and(|winner| winner.to_string() == *revision)
            }
            (ConditionKind::Passes(filter), Some(leaf)) => filter.lets_pass(&self.database, leaf)?,
        })
    }

    /// The edits, as the functions of design documents let them pass.
    fn validated(&self) -> std::result::Result<Vec<Result<Prepared>>, TransactionRefusal> {
        let mut edits: Vec<Result<Prepared>> = self.edits.iter().cloned().map(Ok).collect();
        if let Some(validation) = self.database.validation()? {
            validation.validate(&self.database, &mut edits, EditMode::Interactive)?;
        }
        Ok(edits)
    }

    fn prefetched(&self) -> Result<PrefetchedHeads> {
        let ids = self.edits.iter().map(|edit| edit.id.as_str());
        PrefetchedHeads::read(
            &self.database,
            ids.chain(self.conditions.iter().map(|condition| condition.id.as_str())),
        )
    }

    /// Holds the part against the database, whose lock is held.
    fn apply(
        &self,
        writer: &Writer,
        seen: &[Seen],
        edits: Vec<Result<Prepared>>,
        (prefetched, brought): (PrefetchedHeads, &mut HashSet<Digest>),
    ) -> std::result::Result<Applied, TransactionRefusal> {
        let room_bytes = edits.iter().flatten().map(Prepared::room_bytes).sum();
        let mut transaction = Transaction::new(&self.database, writer, prefetched, room_bytes);
        transaction.brought = std::mem::take(brought);
        for Seen { id, winner } in seen {
            let before = transaction.take_before(id)?;
            let now = winner_of(&before.head);
            transaction.put_back(id, before);
            if now != *winner {
                return Err(DatabaseError::Stale.into());
            }
        }
        let results =
            transaction.each(edits, |transaction, edit| edit.and_then(|edit| transaction.apply(edit)));
        let mut updated = Vec::with_capacity(results.len());
        for (place, result) in results.into_iter().enumerate() {
            updated.push(result.map_err(|error| match error {
                DatabaseError::Stale => DatabaseError::Stale.into(),
                error => refused(&self.database, place, error),
            })?);
        }
        // One of several databases that get the same attachment brings it, as the batch is stored whole or not at all.
        *brought = std::mem::take(&mut transaction.brought);
        brought.extend(transaction.contents.iter().map(|content| *content.name()));
        Ok(Applied { written: transaction.finish()?, results: updated })
    }
}

/// A document's winner, if it has a revision.
fn winner_of(head: &Head) -> Option<Revision> {
    head.tree.winner().map(|winner| winner.revision.clone())
}

fn refused(database: &Database, place: usize, error: DatabaseError) -> TransactionRefusal {
    TransactionRefusal::Edit { database: database.name().to_owned(), place, error }
}

/// What readers of one database are told of once it is stored.
struct Told {
    database: Arc<Database>,
    change_number: u64,
    has_designs: bool,
    design_changed: bool,
    contents: Vec<Content>,
    _pins: Vec<Pin>,
}

/// What a database's next update builds on.
struct Left {
    header: Header,
    changed: HashMap<String, Pending>,
    records: BTreeMap<Vec<u8>, Option<bytes::Bytes>>,
}

/// Puts all parts into the log as one batch.
fn submit(
    parts: &[Ready],
    writers: &mut [MutexGuard<'_, Writer>],
    applied: Vec<Applied>,
) -> std::result::Result<TransactionUpdate, TransactionRefusal> {
    let mut results: Vec<Vec<Updated>> = parts.iter().map(|_| Vec::new()).collect();
    let (mut batch, mut told, mut left) = (Batch::new(), Vec::new(), Vec::new());
    for ((part, writer), Applied { written, results: of_part }) in parts.iter().zip(&*writers).zip(applied) {
        if let Some(results) = results.get_mut(part.place) {
            *results = of_part;
        }
        let Some(written) = written else {
            // What is there already is answered when it is durable.
            if part.database.is_ahead(writer) {
                batch.append(&part.database.header_again(writer));
            }
            left.push(None);
            continue;
        };
        let Written { header, batch: own, changed, design_changed, contents, pins, records } = written;
        batch.append(&own);
        told.push(Told {
            database: Arc::clone(&part.database),
            change_number: header.change_number,
            has_designs: header.design_count != 0 || writer.header.design_count != 0,
            design_changed,
            contents,
            _pins: pins,
        });
        left.push(Some(Left { header, changed, records }));
    }
    let (Some(first), Some(writer)) = (parts.first(), writers.first()) else {
        return Ok(TransactionUpdate { results, commit: None });
    };
    let commit = first.database.write_batch(batch, writer)?;
    commit.then(move |stored| told.into_iter().for_each(|told| told.tell(stored)));
    for (writer, left) in writers.iter_mut().zip(left) {
        // Nothing changes in some of the databases.
        let Some(Left { header, changed, records }) = left else { continue };
        writer.header = header;
        writer.add_all(changed, records);
    }
    Ok(TransactionUpdate { results, commit: Some(commit) })
}

impl Told {
    fn tell(self, stored: bool) {
        if !stored {
            return;
        }
        self.database.show_change(self.change_number);
        self.contents.iter().for_each(Content::stored);
        if self.design_changed {
            self.database.designs_changed();
        }
        self.database.tell_followers(self.has_designs);
    }
}
