//! What each person has not read yet.
//!
//! Every document is unread for everybody until it is marked. What is kept is who has read what, with the number of
//! the change that made it so; what somebody else edits is unread again. How much a person has read is counted in
//! the same batch, for the database and for each folder, so that what is unread is a subtraction.
//!
//! A document that is edited, deleted, or goes from folder to folder takes the counts of those along who have a mark
//! on it. There are at most [`MAX_READERS`] of them, and what goes beyond is refused.

use std::sync::Arc;

use scrinium_store::{Direction, Family, KeyRange, Snapshot};

use crate::access::Access;
use crate::access::readable::ReadableId;
use crate::database::{Database, header_at};
use crate::error::{DatabaseError, Result};
use crate::folder::members::MAX_MEMBERS_AT_ONCE;
use crate::folder::record::{MarkChange, ReadCounts};
use crate::folder::{record_at, state_at};
use crate::keys;
use crate::update::{Update, check_number};
use crate::writer::PrefetchedHeads;

/// What this many persons have read of one document is kept.
pub const MAX_READERS: u64 = 10_000;

/// A person's name has at most this many bytes.
pub const MAX_PERSON_BYTES: usize = 256;

/// Documents marked by one batch when a whole folder is.
const MARKED_AT_ONCE: usize = 1000;

/// What became of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// The document's id.
    pub id: String,
    /// Whether it was otherwise before.
    pub changed: bool,
}

/// How many documents a person has not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// In the database; design documents do not count.
    pub database: u64,
    /// In each folder, by its name, in the order of [`Database::folders`].
    pub folders: Vec<(String, u64)>,
}

/// A document that a person marked, or that became unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedChange {
    /// The number of the change.
    pub change_number: u64,
    /// The document's id.
    pub id: String,
    /// Whether it is read now.
    pub read: bool,
}

/// What a person's marks became, each document once, in the order of the changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedChanges {
    /// The changes.
    pub changes: Vec<MarkedChange>,
    /// The number from which a reader continues.
    pub last: u64,
    /// Whether there are more already.
    pub more: bool,
}

impl Database {
    /// Marks documents as read by a person, or as unread, in one atomic batch. Each has its own result.
    ///
    /// # Errors
    /// A person without a name or with one that is too long, the database is gone, the store takes no writes, or
    /// there are more than [`crate::MAX_EDITS`] documents.
    pub fn mark(
        self: &Arc<Self>,
        person: &str,
        ids: Vec<String>,
        read: bool,
        access: &Access,
    ) -> Result<Update<Marked>> {
        self.mark_each(person, ids.into_iter().map(|id| (id, read)).collect(), access)
    }

    /// The same with what each document shall be. What `access` does not let the person read is not there.
    ///
    /// # Errors
    /// As [`Database::mark`].
    pub fn mark_each(
        self: &Arc<Self>,
        person: &str,
        marks: Vec<(String, bool)>,
        access: &Access,
    ) -> Result<Update<Marked>> {
        const RECORDS_BYTES: usize = 128;
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.mark_each(person, marks, access),
        };
        self.check_there()?;
        check_person(person)?;
        check_number(marks.len())?;
        let prefetched = PrefetchedHeads::read(self, marks.iter().map(|(id, _)| id.as_str()))?;
        let record_bytes = |id: &String| 2 * (id.len() + person.len()) + RECORDS_BYTES;
        let room_bytes = marks.iter().map(|(id, _)| record_bytes(id)).sum();
        let snapshot = self.store().snapshot();
        self.transact(prefetched, room_bytes, |transaction| {
            transaction.each(marks, |transaction, (id, read)| {
                let id = access.readable_id(self, &snapshot, id)?.ok_or_else(DatabaseError::missing)?;
                transaction.mark(person, id.into_string(), read)
            })
        })
    }

    /// Marks everything that is in a folder now, and that `access` lets the person read, as read by a person, or as
    /// unread, in batches of a thousand documents. Returns how many were otherwise before; durable when it returns.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and as [`Database::mark`]; then some batches may be stored.
    pub fn mark_folder(
        self: &Arc<Self>,
        person: &str,
        name: &str,
        read: bool,
        access: &Access,
    ) -> Result<u64> {
        self.check_there()?;
        let snapshot = self.store().snapshot();
        let folder = record_at(&snapshot, self.number(), name)?;
        let end_uid = state_at(&snapshot, self.number(), &folder)?.next_uid;
        drop(snapshot);
        let (mut since_uid, mut changed) = (0, 0);
        loop {
            let snapshot = self.store().snapshot();
            let members = self.members_at(&snapshot, folder.number, since_uid, MARKED_AT_ONCE)?;
            let members: Vec<_> = members.into_iter().filter(|(uid, _)| *uid < end_uid).collect();
            let Some((last, _)) = members.last() else { return Ok(changed) };
            since_uid = *last;
            // What may not be read is not found.
            let ids = members.into_iter().map(|(_, member)| member.id).collect();
            for marked in self.mark(person, ids, read, access)?.wait()? {
                match marked {
                    Ok(marked) => changed += u64::from(marked.changed),
                    // Deleted this moment.
                    Err(DatabaseError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Gives what a person has read to another name, or, without one, forgets it: of a thousand documents in one batch, durable
    /// when it returns. How many marks there were; at 0 there is none left.
    ///
    /// # Errors
    /// As [`Database::mark`].
    pub fn move_marks(self: &Arc<Self>, from: &str, to: Option<&str>) -> Result<usize> {
        const RECORDS_BYTES: usize = 256;
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.move_marks(from, to),
        };
        self.check_there()?;
        check_person(from)?;
        to.map_or(Ok(()), check_person)?;
        if to == Some(from) {
            return Ok(0);
        }
        let ids = self.marked_by(from)?;
        if ids.is_empty() {
            return Ok(0);
        }
        let prefetched = PrefetchedHeads::read(self, ids.iter().map(String::as_str))?;
        let room_bytes = ids.iter().map(|id| 2 * id.len() + RECORDS_BYTES).sum();
        let update = self.transact(prefetched, room_bytes, |transaction| {
            transaction.each(ids, |transaction, id| transaction.move_mark(from, to, &id))
        })?;
        let moved = update.wait()?.into_iter().collect::<Result<Vec<bool>>>()?;
        Ok(moved.into_iter().filter(|moved| *moved).count())
    }

    /// Documents with a mark of a person: the first of them, by the order of their marks.
    fn marked_by(&self, person: &str) -> Result<Vec<String>> {
        let snapshot = self.store().snapshot();
        let from = keys::mark_changes(self.number(), person);
        let to = keys::successor(&from);
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
        let mut ids = Vec::new();
        while let Some((_, stored)) = cursor.next()? {
            if ids.len() == MARKED_AT_ONCE {
                break;
            }
            let change = MarkChange::decode(stored);
            ids.push(change.ok_or_else(|| DatabaseError::damaged("change of a mark", person))?.id);
        }
        Ok(ids)
    }

    /// How much of the database and of each folder a person has not read.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn unread(&self, person: &str) -> Result<Unread> {
        self.check_there()?;
        let snapshot = self.store().snapshot();
        let counts = counts_at(&snapshot, self.number(), person)?;
        let readable = header_at(&snapshot, self.number())?.readable_count();
        let folders = self.folders_at(&snapshot, Some(&counts))?;
        Ok(Unread {
            database: readable.saturating_sub(counts.database),
            folders: folders.into_iter().map(|folder| (folder.name, folder.unread.unwrap_or(0))).collect(),
        })
    }

    /// Whether a person has read a document that is there.
    ///
    /// # Errors
    /// What the store reports.
    pub fn is_read(&self, person: &str, id: &str) -> Result<bool> {
        self.check_there()?;
        self.has_read(&self.store().snapshot(), id, person)
    }

    /// What a person's marks became after change `since`, at most `limit` (and [`MAX_MEMBERS_AT_ONCE`]) changes. A
    /// document that was deleted is left to the feed of changes.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn mark_changes(
        &self,
        person: &str,
        since: u64,
        limit: usize,
        access: &Access,
    ) -> Result<MarkedChanges> {
        self.check_there()?;
        // Seen before the snapshot is taken, so that the snapshot has at least this change.
        let visible = self.visible_change_number();
        let snapshot = self.store().snapshot();
        let limit = limit.min(MAX_MEMBERS_AT_ONCE);
        let from = keys::mark_change(self.number(), person, since.saturating_add(1));
        let to = keys::successor(&keys::mark_changes(self.number(), person));
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
        let given_up_to = self.given_up_to(visible);
        let mut changes: Vec<MarkedChange> = Vec::new();
        let mut more = false;
        while let Some((key, stored)) = cursor.next()? {
            if changes.len() == limit {
                more = true;
                break;
            }
            let change = keys::change_number_of(key).zip(MarkChange::decode(stored));
            let (change_number, MarkChange { read, id }) =
                change.ok_or_else(|| DatabaseError::damaged("change of a mark", person))?;
            if change_number > given_up_to {
                break;
            }
            changes.push(MarkedChange { change_number, id, read });
        }
        let reached = changes.last().map_or(since, |change| change.change_number);
        let mut readable = Vec::with_capacity(changes.len());
        for MarkedChange { change_number, id, read } in changes {
            let id = access.readable_id(self, &snapshot, id)?.map(ReadableId::into_string);
            readable.extend(id.map(|id| MarkedChange { change_number, id, read }));
        }
        let changes = readable;
        Ok(MarkedChanges { changes, last: if more { reached } else { reached.max(visible) }, more })
    }
}

/// How much a person has read, as of a snapshot.
pub(crate) fn counts_at(snapshot: &Snapshot, database: u32, person: &str) -> Result<ReadCounts> {
    match snapshot.get(Family::Point, &keys::read_counts(database, person))? {
        None => Ok(ReadCounts::default()),
        Some(stored) => ReadCounts::decode(&stored)
            .ok_or_else(|| DatabaseError::damaged("count of what was read", person)),
    }
}

/// # Errors
/// A name that is empty or longer than [`MAX_PERSON_BYTES`].
pub(crate) fn check_person(person: &str) -> Result<()> {
    if (1..=MAX_PERSON_BYTES).contains(&person.len()) {
        return Ok(());
    }
    Err(DatabaseError::bad_request(format!("A person's name has 1 to {MAX_PERSON_BYTES} bytes.")))
}
