//! Removes objects that no document needs: those whose content was collected some time ago, and those that a crash or
//! a failed update left behind.

use std::collections::HashSet;

use scrinium_objects::ObjectName;
use scrinium_store::{Batch, Direction, Family, KeyRange};

use crate::contents::Contents;
use crate::error::{Result, damaged_key};
use crate::hex::hex;
use crate::keys::{self, Digest};
use crate::object::ObjectState;

/// How many notes one call looks at, so that a caller can stop in between.
const AT_ONCE: usize = 200;

/// What one call of [`Contents::remove_objects`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedObjects {
    /// Notes that were done with.
    pub examined: u64,
    /// Objects removed.
    pub removed: u64,
}

struct Note {
    key: Vec<u8>,
    digest: Digest,
    upload: u64,
    noted_ms: u64,
    place: u32,
}

impl Contents {
    /// Looks at the objects whose time has come, at most two hundred, and removes those that are not needed; none any more
    /// once `go_on` answers false.
    ///
    /// # Errors
    /// What the store reports. That a store of objects does not answer is no error: it is tried by the next call.
    pub fn remove_objects(&self, go_on: &dyn Fn() -> bool) -> Result<RemovedObjects> {
        let keep_ms = scrinium_clock::milliseconds(self.places().options().keep_removed);
        let mut done = RemovedObjects::default();
        for note in self.due(self.now_ms().saturating_sub(keep_ms))? {
            if !go_on() {
                break;
            }
            match self.settle(&note) {
                Ok(Some(removed)) => {
                    done.examined += 1;
                    done.removed += u64::from(removed);
                }
                Ok(None) => {}
                // Its store cannot be asked now; nor can the next, so that it is tried again later.
                Err(error) if error.is_unavailable() => {
                    tracing::warn!(%error, "objects of attachments stay until their store answers");
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Notes of before a time, the oldest first.
    fn due(&self, before_ms: u64) -> Result<Vec<Note>> {
        let (from, to) = keys::object_note_range();
        let snapshot = self.store.snapshot();
        let mut cursor =
            snapshot.cursor(Family::Point, KeyRange { from: &from, to: Some(&to) }, Direction::Forward);
        let mut notes = Vec::new();
        while notes.len() < AT_ONCE
            && let Some((key, value)) = cursor.next()?
        {
            let note = keys::object_note_of(key).zip(value.try_into().ok().map(u32::from_be_bytes));
            // The object stays, and a look for objects that nobody needs finds it.
            let Some(((noted_ms, digest, upload), place)) = note else {
                damaged_key("note of an object", key);
                continue;
            };
            if noted_ms > before_ms {
                break;
            }
            notes.push(Note { key: key.to_vec(), digest, upload, noted_ms, place });
        }
        Ok(notes)
    }

    /// Whether the object was removed; `None`: somebody holds the content, so that it is looked at again.
    fn settle(&self, note: &Note) -> Result<Option<bool>> {
        // Held until the removal is stored: anyone who pins the content later finds it gone and writes it again.
        let Some(_collecting) = self.collecting(&note.digest) else { return Ok(None) };
        let is_it = |upload: u64| upload == note.upload;
        let record = self.record(&note.digest)?;
        let mut done = Batch::for_removing();
        done.delete(Family::Point, &note.key);
        let needed = match &record {
            Some(record) => record.object().is_some_and(|object| is_it(object.upload)),
            // The record of the content was lost to some damage: what it said may be found again.
            None => self.is_referenced(&note.digest, &mut HashSet::new(), &mut done)?,
        };
        if needed {
            self.store.commit(done)?;
            return Ok(Some(false));
        }
        if let Some(ObjectState { object, removed_ms, .. }) = self.object_state(&note.digest)?
            && is_it(object.upload)
        {
            // It was needed again since, and a later note has been made.
            if removed_ms > note.noted_ms {
                self.store.commit(done)?;
                return Ok(Some(false));
            }
            // Nobody takes it up any more: a removal that seemed to fail may still happen.
            let mut forget = Batch::for_removing();
            forget.delete(Family::Point, &keys::object(&note.digest));
            self.store.commit(forget)?;
        }
        let own = self.places().place(note.place).filter(|_| self.places().is_own(note.place));
        if let Some(place) = &own {
            let name = ObjectName { home: place.home(), digest: note.digest, upload: note.upload };
            self.places().objects().remove(&place.address, &name)?;
            tracing::debug!(content = hex(&note.digest), "an object that nobody refers to was removed");
        }
        self.store.commit(done)?;
        Ok(Some(own.is_some()))
    }
}
