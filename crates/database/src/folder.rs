//! Folders: named collections of documents that people put there by hand.
//!
//! That a document is in a folder is stored like the document itself: it is logged, and changes in the batch of
//! whatever changes it. A document that comes into a folder gets a number there, its *uid*, ascending and never
//! used again; when it leaves, a tombstone with its uid stays, so that a client that was away learns what is gone.
//! The sorted collection that a reader sees is derived, as that of a view is by what makes views.
//!
//! A change of what is in a folder has a number of its own among the database's changes. The feed of documents'
//! changes does not show it.

#![allow(missing_docs, reason = "the names say it")]

pub mod members;
pub mod name;
pub mod purge;
pub mod record;

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use scrinium_document::json::stored_value;
use scrinium_store::{Direction, Family, KeyRange, Snapshot};
use serde_json::{Value, json};

use crate::access::Access;
use crate::database::Database;
use crate::designs::DesignInterpreter;
use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::unread::counts_at;
use crate::update::{Update, check_number};
use crate::writer::PrefetchedHeads;
use record::{FolderKind, FolderRecord, FolderState, ReadCounts, SpecialUse};

/// A database has at most this many folders.
pub const MAX_FOLDERS: u64 = 10_000;

/// The columns of a folder may be this many bytes of JSON.
const MAX_COLUMNS_BYTES: usize = 64 << 10;

/// What clients keep with a folder may be this many bytes.
pub const MAX_FOLDER_PROPERTIES_BYTES: usize = 64 << 10;

/// The columns of a folder that was made without any.
static USUAL_COLUMNS: LazyLock<Value> = LazyLock::new(|| {
    json!([
        {"title": "Date", "formula": "@If(@IsAvailable(PostedDate); PostedDate; @Created)", "sort": "desc"},
        {"title": "From", "formula": "From"},
        {"title": "Subject", "formula": "Subject"},
        {"title": "Size", "formula": "@DocLength", "total": true},
    ])
});

/// A change of what is in folders, for one document. Folders are named as people name them: names that differ
/// only in case are the same folder's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderChange {
    /// The folder is made unless it is there.
    Make {
        /// Its name.
        folder: String,
        /// Its columns, a JSON array as in a view's definition; `None` for the usual ones.
        columns: Option<Arc<Value>>,
        /// What a mail client does with one that is made.
        special_use: Option<SpecialUse>,
    },
    /// The document is in the folder from now on.
    Add {
        /// The folder's name.
        folder: String,
    },
    /// The document is not in the folder any more.
    Remove {
        /// The folder's name.
        folder: String,
    },
    /// The document goes from one folder into another. With an edit, it need not have been in the first.
    Move {
        /// The name of the folder that it leaves.
        from: String,
        /// The name of the folder that it comes into.
        to: String,
    },
    /// The document is marked in the folder to be expunged (`\Deleted`), or is not any more. In other folders it stays
    /// as it is.
    SetDeleted {
        /// The folder's name.
        folder: String,
        /// Whether it is marked.
        deleted: bool,
    },
}

impl FolderChange {
    /// The folders that must be there.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let (first, second) = match self {
            Self::Make { .. } => (None, None),
            Self::Add { folder } | Self::Remove { folder } | Self::SetDeleted { folder, .. } => {
                (Some(folder), None)
            }
            Self::Move { from, to } => (Some(from), Some(to)),
        };
        first.into_iter().chain(second).map(String::as_str)
    }
}

/// What became of a document that was put into a folder or taken out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The document's id.
    pub id: String,
    /// Its uid in the folder that it is in now, or the one that it had; `None` if it was not there to be removed.
    pub uid: Option<u64>,
    /// Whether anything changed.
    pub changed: bool,
}

/// A document that somebody has moved, or a copy of one that they have put into another folder.
#[derive(Clone)]
pub struct MovedDocument {
    /// Where it is.
    pub database: Arc<Database>,
    /// Its id; of a copy, that of the copy.
    pub id: String,
    /// The name of the folder that it was in.
    pub from: String,
    /// The name of the folder that it came into.
    pub to: String,
}

/// Hears of moves. What the server itself moves is not told.
pub trait MoveWatcher: Send + Sync + 'static {
    /// Somebody has moved a document; that is on its way to the disk. It must not wait.
    fn moved(&self, moved: MovedDocument);
}

/// What a folder is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FolderUse {
    /// What its documents are; `None` leaves what is set.
    pub kind: Option<FolderKind>,
    /// What a mail client does with it, `Some(None)` for nothing of its own; `None` leaves what is set.
    pub special_use: Option<Option<SpecialUse>>,
    /// For how many days it keeps its documents, `Some(None)` for what the server says; `None` leaves what is set.
    pub keep_days: Option<Option<u32>>,
}

/// What is known of a folder.
#[derive(Clone, Debug, PartialEq)]
pub struct FolderInfo {
    /// Its name as it was given.
    pub name: String,
    /// Its number, which no other folder of the database ever gets.
    pub number: u32,
    /// Another one for every folder that was ever made under this name; ascending.
    pub uid_validity: u32,
    /// The uid of the next document that is added.
    pub next_uid: u64,
    /// The last change of what is in it.
    pub change_number: u64,
    /// Documents that are in it.
    pub total: u64,
    /// Those of them that are marked to be expunged.
    pub deleted: u64,
    /// What its messages are together, in bytes.
    pub bytes: u64,
    /// What those marked to be expunged are of it.
    pub deleted_bytes: u64,
    /// The last change of flags of what is in it.
    pub flags_change: u64,
    /// Those of them that the person who asks has not read; `None` if nobody asks.
    pub unread: Option<u64>,
    /// What its documents are.
    pub kind: FolderKind,
    /// What a mail client does with it.
    pub special_use: Option<SpecialUse>,
    /// For how many days it keeps its documents, 0 for ever; `None`: it does not say.
    pub keep_days: Option<u32>,
    /// Its columns, as in a view's definition.
    pub columns: Value,
    /// What clients keep with it, as they have written it.
    pub properties: Vec<u8>,
}

impl Database {
    /// All folders, in the order of their names in lower case.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn folders(&self, person: Option<&str>) -> Result<Vec<FolderInfo>> {
        self.check_there()?;
        let snapshot = self.store().snapshot();
        let counts = person.map(|person| counts_at(&snapshot, self.number(), person)).transpose()?;
        self.folders_at(&snapshot, counts.as_ref())
    }

    pub fn folders_at(&self, snapshot: &Snapshot, counts: Option<&ReadCounts>) -> Result<Vec<FolderInfo>> {
        let from = keys::folder(self.number(), "");
        let to = keys::successor(&from);
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Point, range, Direction::Forward);
        let mut folders = Vec::new();
        while let Some((_, stored)) = cursor.next()? {
            let record =
                FolderRecord::decode(stored).ok_or_else(|| DatabaseError::damaged("folder", self.name()))?;
            folders.push(info(snapshot, self.number(), record, counts)?);
        }
        Ok(folders)
    }

    /// One folder.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn folder(&self, name: &str, person: Option<&str>) -> Result<FolderInfo> {
        self.check_there()?;
        let snapshot = self.store().snapshot();
        let counts = person.map(|person| counts_at(&snapshot, self.number(), person)).transpose()?;
        let record = record_at(&snapshot, self.number(), name)?;
        info(&snapshot, self.number(), record, counts.as_ref())
    }

    /// Makes a folder, or gives one that is there other columns (a JSON array as in a view's definition; `None`:
    /// the usual ones, or those that it has). The result says whether it was made.
    ///
    /// # Errors
    /// `illegal_folder_name`, `compilation_error`, and what the store reports.
    pub fn define_folder(self: &Arc<Self>, name: &str, columns: Option<&Value>) -> Result<bool> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.define_folder(name, columns),
        };
        let prefetched = PrefetchedHeads::read(self, std::iter::empty())?;
        self.one(self.transact(prefetched, 0, |transaction| vec![transaction.define_folder(name, columns)])?)
    }

    /// Says what the documents of a folder are, and what mail clients do with it; `None` leaves what is set.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn set_folder_use(self: &Arc<Self>, name: &str, folder_use: FolderUse) -> Result<()> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.set_folder_use(name, folder_use),
        };
        let prefetched = PrefetchedHeads::read(self, std::iter::empty())?;
        self.one(
            self.transact(prefetched, 0, |transaction| vec![transaction.set_folder_use(name, folder_use)])?,
        )
    }

    /// Sets what clients keep with a folder: bytes that mean nothing here.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], more than [`MAX_FOLDER_PROPERTIES_BYTES`], and what the store reports.
    pub fn set_folder_properties(self: &Arc<Self>, name: &str, properties: &[u8]) -> Result<()> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.set_folder_properties(name, properties),
        };
        let prefetched = PrefetchedHeads::read(self, std::iter::empty())?;
        self.one(self.transact(prefetched, properties.len(), |transaction| {
            vec![transaction.set_folder_properties(name, properties)]
        })?)
    }

    /// Gives a folder another name, and those within it names that begin with it. Documents, uids and
    /// `uid_validity` stay.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Exists`], `illegal_folder_name`, and what the store reports.
    pub fn rename_folder(self: &Arc<Self>, from: &str, to: &str) -> Result<()> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.rename_folder(from, to),
        };
        let prefetched = PrefetchedHeads::read(self, std::iter::empty())?;
        self.one(self.transact(prefetched, 0, |transaction| vec![transaction.rename_folder(from, to)])?)
    }

    /// Drops a folder; the documents stay. What it held is removed by `Databases::purge_dropped` of the catalogue.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn drop_folder(self: &Arc<Self>, name: &str) -> Result<()> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.drop_folder(name),
        };
        let prefetched = PrefetchedHeads::read(self, std::iter::empty())?;
        self.one(self.transact(prefetched, 0, |transaction| vec![transaction.drop_folder(name)])?)
    }

    /// Waits for an update with one result.
    fn one<T>(&self, update: Update<T>) -> Result<T> {
        let result = update.wait()?.into_iter().next();
        result.unwrap_or_else(|| {
            Err(DatabaseError::Internal { reason: format!("An update of `{}` has no result.", self.name()) })
        })
    }

    /// Puts documents into folders, takes them out and moves them, all in one atomic batch. Each has its own
    /// result: one that is not there does not keep the others from being moved.
    ///
    /// # Errors
    /// The database is gone, the store takes no writes, or there are more than [`crate::MAX_EDITS`] changes.
    pub fn change_folders(
        self: &Arc<Self>,
        changes: Vec<(String, FolderChange)>,
        access: &Access,
    ) -> Result<Update<Placed>> {
        const RECORDS_BYTES: usize = 256;
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.change_folders(changes, access),
        };
        self.check_there()?;
        check_number(changes.len())?;
        let prefetched = PrefetchedHeads::read(self, changes.iter().map(|(id, _)| id.as_str()))?;
        let room_bytes = changes.iter().map(|(id, _)| 4 * id.len() + RECORDS_BYTES).sum();
        let snapshot = self.store().snapshot();
        let moved = RefCell::new(Vec::new());
        let update = self.transact(prefetched, room_bytes, |transaction| {
            transaction.each(changes, |transaction, (id, change)| {
                let id = access.readable_id(self, &snapshot, id)?.ok_or_else(DatabaseError::missing)?;
                let placed = transaction.place(id.into_string(), &change)?;
                if let (true, FolderChange::Move { from, to }) = (placed.changed, change) {
                    moved.borrow_mut().push((placed.id.clone(), from, to));
                }
                Ok(placed)
            })
        })?;
        for (id, from, to) in moved.into_inner() {
            self.tell_moved(id, &from, &to, access);
        }
        Ok(update)
    }

    /// Tells who watches that somebody has moved a document, or copied it.
    pub fn tell_moved(self: &Arc<Self>, id: String, from: &str, to: &str, access: &Access) {
        if access.identity().is_none() {
            return;
        }
        if let Some(watcher) = self.context.server.move_watcher() {
            let (from, to) = (from.to_owned(), to.to_owned());
            watcher.moved(MovedDocument { database: Arc::clone(self), id, from, to });
        }
    }
}

pub fn missing_folder(name: &str) -> DatabaseError {
    DatabaseError::NotFound { reason: format!("There is no folder `{name}`.") }
}

/// The record of a folder that must be there.
pub fn record_at(snapshot: &Snapshot, database: u32, name: &str) -> Result<FolderRecord> {
    let stored = snapshot.get(Family::Point, &keys::folder(database, &name::folded(name)))?;
    let stored = stored.ok_or_else(|| missing_folder(name))?;
    FolderRecord::decode(&stored).ok_or_else(|| DatabaseError::damaged("folder", name))
}

pub fn state_at(snapshot: &Snapshot, database: u32, folder: &FolderRecord) -> Result<FolderState> {
    let stored = snapshot.get(Family::Point, &keys::folder_state(database, folder.number))?;
    stored
        .and_then(|stored| FolderState::decode(&stored))
        .ok_or_else(|| DatabaseError::damaged("state of the folder", &folder.name))
}

fn info(
    snapshot: &Snapshot,
    database: u32,
    record: FolderRecord,
    counts: Option<&ReadCounts>,
) -> Result<FolderInfo> {
    let state = state_at(snapshot, database, &record)?;
    let read = counts.map(|counts| counts.folders.get(&record.number).copied().unwrap_or(0));
    Ok(FolderInfo {
        number: record.number,
        uid_validity: record.uid_validity,
        next_uid: state.next_uid,
        change_number: state.change_number,
        total: state.total,
        deleted: state.deleted,
        bytes: state.bytes,
        deleted_bytes: state.deleted_bytes,
        flags_change: state.flags_change,
        unread: read.map(|read| state.total.saturating_sub(read)),
        kind: record.kind,
        special_use: record.special_use,
        keep_days: record.keep_days,
        columns: columns_of(&record)?,
        properties: record.properties,
        name: record.name,
    })
}

pub fn columns_of(record: &FolderRecord) -> Result<Value> {
    stored_value(&record.columns).ok_or_else(|| DatabaseError::damaged("columns of the folder", &record.name))
}

/// Columns as they are stored, once they are known to compile.
///
/// # Errors
/// `compilation_error`, with the formula's line and column.
pub fn columns_text(designs: &dyn DesignInterpreter, name: &str, columns: Option<&Value>) -> Result<String> {
    let columns = columns.unwrap_or(&USUAL_COLUMNS);
    designs.check_columns(name, columns)?;
    let text = columns.to_string();
    if text.len() > MAX_COLUMNS_BYTES {
        return Err(DatabaseError::bad_request(format!(
            "The columns of a folder may be {MAX_COLUMNS_BYTES} bytes of JSON."
        )));
    }
    Ok(text)
}
