//! What was found out about the source of a document's message, kept with the document so that nobody reads the source for it again.
//!
//! It is derived, and what it says is its maker's: here it is bytes behind the digest of the content that they are of. It comes with
//! the edit that brings the source, or later from the first who has read it, and goes with the next edit of anything but flags.

use std::sync::Arc;

use bytes::Bytes;
use scrinium_store::{Family, Snapshot};

use crate::access::readable::ReadableId;
use crate::database::Database;
use crate::error::Result;
use crate::keys::{self, Digest};
use crate::writer::PrefetchedHeads;

/// Another version is not read.
const VERSION: u8 = 1;

/// A longer one is not kept.
pub const OUTLINE_BYTES_MAX: usize = 128 << 10;

/// As it is stored: of which content it is, and what it says.
pub(crate) fn encode(content: &Digest, outline: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(1 + content.len() + outline.len());
    stored.push(VERSION);
    stored.extend_from_slice(content);
    stored.extend_from_slice(outline);
    stored
}

fn decode<'s>(stored: &'s [u8], content: &Digest) -> Option<&'s [u8]> {
    stored.strip_prefix(&[VERSION])?.strip_prefix(content.as_slice())
}

impl Database {
    /// What is kept of a document whose source is this content; `None` if nothing is, or it is of another content.
    ///
    /// # Errors
    /// What the store reports.
    pub fn outline_at(
        &self,
        snapshot: &Snapshot,
        id: &ReadableId,
        content: &Digest,
    ) -> Result<Option<Vec<u8>>> {
        let stored = snapshot.get(Family::Point, &keys::outline(self.number(), id))?;
        Ok(stored.and_then(|stored| decode(&stored, content).map(<[u8]>::to_vec)))
    }

    /// Keeps what was found out about documents, where their sources are still these contents. Nobody waits until it is durable: what is
    /// lost is found out once more.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn keep_outlines(self: &Arc<Self>, found: Vec<(String, Digest, Bytes)>) -> Result<()> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.keep_outlines(found),
        };
        self.check_there()?;
        let prefetched = PrefetchedHeads::read(self, found.iter().map(|(id, ..)| id.as_str()))?;
        let room_bytes = found.iter().map(|(id, _, outline)| id.len() + outline.len() + 80).sum();
        let update = self.transact(prefetched, room_bytes, |transaction| {
            transaction.each(found, |transaction, (id, content, outline)| {
                transaction.keep_outline(&id, &content, &outline)
            })
        })?;
        drop(update);
        Ok(())
    }
}
