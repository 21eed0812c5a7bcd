//! Legal hold: while a database is held, no revision of a document in it is lost. What an edit or a deletion replaces is kept
//! apart, with its attachments; nothing is purged; and the database is neither deleted nor moved.
//!
//! What is kept lies under keys of its own, which no feed, view or replica shows, and refers to its contents by names that no document
//! has. A change of nothing but flags leaves a document's words as they are, and keeps nothing. A hold is set and lifted under the
//! writer's lock, so that every update is either before or behind it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use scrinium_document::Revision;
use scrinium_document::json::JsonText;
use scrinium_store::{Batch, Direction, Family, KeyRange, Store};
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::keys::{self, Digest};
use crate::leaf::Leaf;
use crate::read::{Document, ReadOptions, Renderer};

/// A database has at most this many holds.
pub const LEGAL_HOLDS_MAX: usize = 100;

/// A matter's name has at most this many bytes.
pub const MATTER_MAX_BYTES: usize = 200;

/// Revisions that are let go in one batch.
const LET_GO_AT_ONCE: usize = 500;

/// Held revisions that are shown at once have about this many bytes at most.
const SHOWN_AT_ONCE_BYTES: usize = 4 << 20;

/// Who shows what is held.
static KEEPER: Access = Access::of_the_server("keeping what is held");

/// Why documents of a database may not be lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegalHold {
    /// The case, as those call it who have asked for the hold.
    pub matter: String,
    /// Whose documents they are, by short name, where the hold is on a person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub person: Option<String>,
    /// Who has set it.
    pub by: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}

/// A revision that was replaced or deleted while its database was held.
#[derive(Clone, Debug)]
pub struct HeldRevision {
    /// The document.
    pub id: String,
    /// The revision.
    pub revision: String,
    /// When it was replaced, in milliseconds since 1970.
    pub removed_ms: u64,
    /// The document as it was, as JSON.
    pub json: JsonText,
}

/// What the contents of a held revision are referred to by, where those of documents are by their ids.
#[must_use]
pub fn held_name(id: &str, revision: &str) -> String {
    format!("{HELD_PREFIX}{revision}/{id}")
}

/// No document's id begins so.
const HELD_PREFIX: &str = "_held/";

/// The id and revision in a [`held_name`].
#[must_use]
pub fn held_name_of(name: &str) -> Option<(&str, &str)> {
    let (revision, id) = name.strip_prefix(HELD_PREFIX)?.split_once('/')?;
    Some((id, revision))
}

/// A record of a held revision: when it was replaced, and the leaf.
#[must_use]
pub fn held_leaf(stored: &[u8]) -> Option<(u64, &[u8])> {
    let (removed_ms, leaf) = stored.split_first_chunk()?;
    Some((u64::from_be_bytes(*removed_ms), leaf))
}

/// The contents that a held revision refers to; none of one that cannot be read.
#[must_use]
pub fn held_contents(id: &str, stored: &[u8]) -> Vec<Digest> {
    let leaf = held_leaf(stored).and_then(|(_, leaf)| Leaf::decode(id, leaf).ok());
    leaf.and_then(|leaf| leaf.contents(id).ok()).unwrap_or_default()
}

pub(crate) fn read(store: &Store, number: u32, name: &str) -> Result<Vec<LegalHold>> {
    let Some(stored) = store.get(Family::Meta, &keys::legal_holds(number))? else { return Ok(Vec::new()) };
    decode_holds(&stored, name)
}

/// The holds of a database of this name, as they are stored.
///
/// # Errors
/// [`DatabaseError::Damaged`]
pub fn decode_holds(stored: &[u8], name: &str) -> Result<Vec<LegalHold>> {
    serde_json::from_slice(stored).map_err(|_| DatabaseError::damaged("legal holds", name))
}

/// Puts a replaced leaf where it is held.
pub(crate) fn keep(
    batch: &mut Batch,
    number: u32,
    (id, revision): (&str, &Revision),
    (removed_ms, leaf): (u64, &[u8]),
) -> Result<()> {
    let decoded = Leaf::decode(id, leaf)?;
    if decoded.revision != revision.to_string() {
        return Err(DatabaseError::damaged("revision", id));
    }
    if decoded.deleted && !decoded.has_attachments() && decoded.value_bytes(id)? == 0 {
        return Ok(());
    }
    let stored = [&removed_ms.to_be_bytes()[..], leaf].concat();
    batch.put(Family::Scan, &keys::held(number, id, decoded.revision), &stored);
    let name = held_name(id, decoded.revision);
    for digest in decoded.contents(id)? {
        batch.put(Family::Point, &keys::reference(&digest, number, &name), &[]);
    }
    Ok(())
}

impl Database {
    /// Whether it is held, for whatever reason.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    /// # Errors
    /// [`DatabaseError::Forbidden`] where it is held.
    pub fn check_not_held(&self, what: &str) -> Result<()> {
        if !self.is_held() {
            return Ok(());
        }
        Err(DatabaseError::Forbidden {
            reason: format!(
                "The database `{}` is under a legal hold: {what} only when an administrator of the server has lifted it.",
                self.name()
            ),
        })
    }

    /// Its holds, in the order in which they were set.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn legal_holds(&self) -> Result<Vec<LegalHold>> {
        self.check_there()?;
        read(self.store(), self.number(), self.name())
    }

    /// Sets a hold; it is in force, and durable, when this returns. Whether there was none for that matter.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for a matter without a name, or one hold too many; and what the store reports.
    pub fn set_legal_hold(self: &Arc<Self>, hold: LegalHold) -> Result<bool> {
        if hold.matter.trim().is_empty() || hold.matter.len() > MATTER_MAX_BYTES {
            let reason = format!("A matter has a name of 1 to {MATTER_MAX_BYTES} bytes.");
            return Err(DatabaseError::bad_request(reason));
        }
        self.change_holds(|holds| {
            if holds.iter().any(|other| other.matter == hold.matter) {
                return Ok(false);
            }
            if holds.len() >= LEGAL_HOLDS_MAX {
                let reason = format!("A database has at most {LEGAL_HOLDS_MAX} legal holds.");
                return Err(DatabaseError::bad_request(reason));
            }
            holds.push(hold);
            Ok(true)
        })
    }

    /// Lifts the hold for a matter. With the last one, what was held goes. Whether there was one.
    ///
    /// # Errors
    /// What the store reports; then the hold stays, and lifting it may be repeated.
    pub fn lift_legal_hold(self: &Arc<Self>, matter: &str) -> Result<bool> {
        let holds = self.legal_holds()?;
        if holds.iter().all(|hold| hold.matter == matter) && !holds.is_empty() {
            // The hold is in force until nothing is left, so that a crash leaves nothing behind that nobody knows of.
            while self.let_go()? {}
        }
        self.change_holds(|holds| {
            let before = holds.len();
            holds.retain(|hold| hold.matter != matter);
            Ok(holds.len() < before)
        })
    }

    fn change_holds(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Vec<LegalHold>) -> Result<bool>,
    ) -> Result<bool> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.change_holds(change),
        };
        self.check_there()?;
        let writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        let mut holds = self.legal_holds()?;
        if !change(&mut holds)? {
            return Ok(false);
        }
        let mut batch = Batch::new();
        let key = keys::legal_holds(self.number());
        if holds.is_empty() {
            // What is on its way is not seen before it is stored.
            let mut nothing = Batch::for_removing();
            nothing.delete(Family::Meta, &keys::nothing(self.number()));
            self.submit(&writer, nothing, (), |_| {})?.wait()?;
            loop {
                let (mut released, mut pins) = (Batch::for_removing(), Vec::new());
                let count = self.add_released(&mut released, &mut pins)?;
                if count < LET_GO_AT_ONCE {
                    released.delete(Family::Meta, &key);
                }
                self.submit(&writer, released, pins, |_| {})?.wait()?;
                if count < LET_GO_AT_ONCE {
                    break;
                }
            }
        } else {
            let json = serde_json::to_vec(&holds).map_err(|error| DatabaseError::Internal {
                reason: format!("legal holds cannot be written: {error}"),
            })?;
            batch.put(Family::Meta, &key, &json);
            // Before it is durable: no update that follows may lose anything.
            self.held.store(true, Ordering::Release);
            self.submit(&writer, batch, (), |_| {})?.wait()?;
        }
        self.held.store(!holds.is_empty(), Ordering::Release);
        drop(writer);
        Ok(true)
    }

    /// Lets some of what is held go; whether there may be more.
    fn let_go(self: &Arc<Self>) -> Result<bool> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.let_go(),
        };
        let writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        let (mut batch, mut pins) = (Batch::for_removing(), Vec::new());
        let count = self.add_released(&mut batch, &mut pins)?;
        if count > 0 {
            self.submit(&writer, batch, pins, |_| {})?.wait()?;
        }
        drop(writer);
        Ok(count == LET_GO_AT_ONCE)
    }

    /// Removes some of what is held, and its references; how many revisions. The writer's lock is held.
    fn add_released(&self, batch: &mut Batch, pins: &mut Vec<scrinium_contents::Pin>) -> Result<usize> {
        let (from, to) = keys::held_range(self.number());
        let snapshot = self.store().snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        let mut count = 0;
        while count < LET_GO_AT_ONCE
            && let Some((key, stored)) = cursor.next()?
        {
            count += 1;
            if let Some((id, revision)) = keys::held_of(key) {
                for digest in held_contents(id, stored) {
                    pins.push(self.context.contents.pin(&digest));
                    let name = held_name(id, revision);
                    batch.delete(Family::Point, &keys::reference(&digest, self.number(), &name));
                    batch.put(Family::Point, &keys::collectable(&digest), &[]);
                }
            }
            batch.delete(Family::Scan, key);
        }
        Ok(count)
    }

    /// Revisions that are held, in the order of their documents' ids: at most `limit`, and fewer where they are long, after this id
    /// and revision.
    ///
    /// # Errors
    /// The database is gone, a record is damaged, and what the store reports.
    pub fn held_revisions(&self, after: Option<(&str, &str)>, limit: usize) -> Result<Vec<HeldRevision>> {
        self.check_there()?;
        let (first, to) = keys::held_range(self.number());
        let from = after.map_or(first, |(id, revision)| {
            let mut next = keys::held(self.number(), id, revision);
            next.push(0);
            next
        });
        let snapshot = self.store().snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        let (mut found, mut bytes) = (Vec::new(), 0);
        while found.len() < limit
            && bytes < SHOWN_AT_ONCE_BYTES
            && let Some((key, stored)) = cursor.next()?
        {
            let (id, _) = keys::held_of(key).ok_or_else(|| self.damaged_hold())?;
            let (document, removed_ms) = self.held_document(id, stored, false)?;
            bytes += document.json.len();
            found.push(HeldRevision {
                id: document.id,
                revision: document.revision,
                removed_ms,
                json: document.json,
            });
        }
        Ok(found)
    }

    /// One revision that is held, with its attachments in its JSON.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], a damaged record, and what the store reports.
    pub fn held_revision(&self, id: &str, revision: &str) -> Result<Document> {
        self.check_there()?;
        let stored = self.store().get(Family::Scan, &keys::held(self.number(), id, revision))?;
        let stored = stored.ok_or_else(DatabaseError::missing)?;
        Ok(self.held_document(id, &stored, true)?.0)
    }

    fn held_document(&self, id: &str, stored: &[u8], attachments: bool) -> Result<(Document, u64)> {
        let (removed_ms, leaf) = held_leaf(stored).ok_or_else(|| self.damaged_hold())?;
        let options = ReadOptions { attachments, ..ReadOptions::default() };
        let leaf = KEEPER.check_read(self, id, Leaf::decode(id, leaf)?)?;
        Ok((Renderer::new(self, &options).render(&leaf, None)?, removed_ms))
    }

    fn damaged_hold(&self) -> DatabaseError {
        DatabaseError::damaged("held revision", self.name())
    }
}
