//! The progress of a move of contents in one store, so that the next one like it resumes there.
//!
//! A bookmark holds only as long as nothing can come to lie wrongly behind it: contents that are stored meanwhile go where
//! the setting says, so a bookmark goes when the setting changes, and when something else is moved.

use scrinium_assertion::never;
use scrinium_store::{Batch, Family, StoreError};
use serde::{Deserialize, Serialize};

use crate::contents::Contents;
use crate::error::Result;
use crate::hex::hex;
use crate::keys::{self, Digest};
use crate::places::{AttachmentOptions, Places};
use crate::relocate::{RelocatedAttachments, Relocation};

/// What is moved, and where to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ordered {
    /// The number of the only database whose contents are moved.
    database: Option<u32>,
    to_volume: bool,
    store: Option<String>,
    threshold_bytes: u64,
}

/// Its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bookmark {
    ordered: Ordered,
    /// The content that was looked at last, 64 hexadecimal digits; `None`: all were.
    last: Option<String>,
    pub(crate) done: RelocatedAttachments,
}

impl Bookmark {
    pub(crate) fn new(ordered: Ordered, last: Option<&Digest>, done: RelocatedAttachments) -> Self {
        Self { ordered, last: last.map(|digest| hex(digest)), done }
    }

    /// Where the next reference lies; `None`: there is none.
    pub(crate) fn next(&self) -> Option<Vec<u8>> {
        let last = blake3::Hash::from_hex(self.last.as_deref()?).ok()?;
        Some(keys::reference_range(last.as_bytes()).1)
    }

    pub(crate) const fn is_at_end(&self) -> bool {
        self.last.is_none()
    }
}

impl Contents {
    /// What is moved here, as it is set now. `None`: contents that are stored meanwhile may go elsewhere, so that all are
    /// to be looked at each time.
    pub(crate) fn ordered(&self, database: Option<u32>, to: Relocation) -> Option<Ordered> {
        let AttachmentOptions { store, threshold_bytes, .. } = self.places().options();
        let to_volume = to == Relocation::ToVolume;
        (!to_volume || store.is_none()).then_some(Ordered { database, to_volume, store, threshold_bytes })
    }

    /// The bookmark of such a move; one of another goes.
    pub(crate) fn bookmark(&self, ordered: Option<&Ordered>) -> Result<Option<Bookmark>> {
        let found = self.places().bookmark()?;
        let is_ours = found.as_ref().is_some_and(|found| Some(&found.ordered) == ordered);
        if found.is_some() && !is_ours {
            self.places().remove_bookmark()?;
        }
        Ok(found.filter(|_| is_ours))
    }

    /// Whether a move of contents was ended before its time, and would go on where it was.
    ///
    /// # Errors
    /// What the store reports.
    pub fn is_relocation_unfinished(&self) -> Result<bool> {
        Ok(self.places().bookmark()?.is_some())
    }

    pub(crate) fn put_bookmark(&self, bookmark: &Bookmark) -> Result<()> {
        let mut batch = Batch::new();
        let json = serde_json::to_vec(bookmark)
            .map_err(|error| StoreError::from(never!("a bookmark can be written as JSON", "{error}")))?;
        batch.put(Family::Meta, keys::BOOKMARK, &json);
        Ok(self.store.commit(batch)?)
    }
}

impl Places {
    /// What cannot be read as a bookmark does not count: then everything is looked at again.
    pub(crate) fn bookmark(&self) -> Result<Option<Bookmark>> {
        let stored = self.store().get(Family::Meta, keys::BOOKMARK)?;
        Ok(stored.and_then(|stored| serde_json::from_slice(&stored).ok()))
    }

    pub(crate) fn remove_bookmark(&self) -> Result<()> {
        if !self.store().contains(Family::Meta, keys::BOOKMARK)? {
            return Ok(());
        }
        let mut batch = Batch::new();
        batch.delete(Family::Meta, keys::BOOKMARK);
        Ok(self.store().commit(batch)?)
    }

    /// Takes away a bookmark of a move under other settings.
    pub(crate) fn keep_bookmark_under(&self, options: &AttachmentOptions) -> Result<()> {
        let Some(Bookmark { ordered, .. }) = self.bookmark()? else { return Ok(()) };
        if ordered.store == options.store && ordered.threshold_bytes == options.threshold_bytes {
            return Ok(());
        }
        self.remove_bookmark()
    }
}
