//! What mail clients see of a document that has no message of its own: kept with the document once somebody has seen it, so that it never
//! is another one under the same UID (RFC 9051 §2.3.1.1), whatever becomes of the directory and of later versions.
//!
//! What it says is its maker's. It holds as long as the fields that the maker has named, and the files, are as they were; an edit of these
//! takes it away, and the document gets other UIDs in its folders.

use std::sync::Arc;

use bytes::Bytes;
use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_document::FieldValue;
use scrinium_store::{Family, Snapshot};

use crate::access::readable::ReadableId;
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::leaf::Leaf;
use crate::writer::PrefetchedHeads;

/// Another version is not read.
const VERSION: u8 = 1;

const FINGERPRINT_BYTES: usize = 32;

/// What is kept with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRendering {
    /// The document's id.
    pub id: String,
    /// The revision that it was made of. Where the document has another one by now, nothing is kept.
    pub revision: String,
    /// The fields that it was made of, besides the files.
    pub fields: &'static [&'static str],
    /// What it says.
    pub content: Bytes,
}

/// As it is stored.
pub(crate) struct Rendering<'s> {
    fields: Vec<&'s str>,
    fingerprint: [u8; FINGERPRINT_BYTES],
    content: &'s [u8],
}

impl<'s> Rendering<'s> {
    /// `None`: of another version, or damaged, and as good as none.
    pub(crate) fn decode(stored: &'s [u8]) -> Option<Self> {
        let mut input = Input::new(stored);
        if input.byte()? != VERSION {
            return None;
        }
        let mut fields = Vec::new();
        for _ in 0..input.number()? {
            fields.push(input.text()?);
        }
        let (fingerprint, content) = input.rest().split_first_chunk()?;
        Some(Self { fields, fingerprint: *fingerprint, content })
    }

    /// Whether it is of the document as this leaf has it.
    pub(crate) fn is_of(&self, leaf: &Leaf<'_>, id: &str) -> Result<bool> {
        Ok(fingerprint(leaf, id, &self.fields)? == self.fingerprint)
    }
}

pub(crate) fn encode(leaf: &Leaf<'_>, new: &NewRendering) -> Result<Vec<u8>> {
    let mut stored = vec![VERSION];
    put_number(&mut stored, new.fields.len() as u64);
    new.fields.iter().for_each(|name| put_bytes(&mut stored, name.as_bytes()));
    stored.extend_from_slice(&fingerprint(leaf, &new.id, new.fields)?);
    stored.extend_from_slice(&new.content);
    Ok(stored)
}

/// A digest of these fields and of all files.
fn fingerprint(leaf: &Leaf<'_>, id: &str, names: &[&str]) -> Result<[u8; FINGERPRINT_BYTES]> {
    let mut hasher = blake3::Hasher::new();
    let mut text = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    };
    let fields = leaf.fields(id)?;
    for name in names {
        let Some(value) = fields.value(name) else { continue };
        text(name.as_bytes());
        match value {
            FieldValue::Json(json) => text(json.as_bytes()),
            FieldValue::Outside(outside) => text(&outside.digest),
        }
    }
    for attachment in leaf.attachments(id)? {
        text(attachment.name.as_bytes());
        text(attachment.content_type.as_bytes());
        text(&attachment.digest);
    }
    Ok(hasher.finalize().into())
}

impl Database {
    /// What is kept of a document as it stands in the snapshot; `None` if nothing is.
    ///
    /// # Errors
    /// What the store reports.
    pub fn rendering_at(&self, snapshot: &Snapshot, id: &ReadableId) -> Result<Option<Bytes>> {
        let Some(stored) = snapshot.get(Family::Point, &keys::rendering(self.number(), id))? else {
            return Ok(None);
        };
        let Some(rendering) = Rendering::decode(&stored) else { return Ok(None) };
        let leaf = snapshot.get(Family::Scan, &keys::winner(self.number(), id))?;
        let leaf = leaf.ok_or_else(|| DatabaseError::damaged("document", id))?;
        // An earlier version may have edited it, which knows of nothing that is kept.
        let is_current = rendering.is_of(&Leaf::decode(id, &leaf)?, id)?;
        Ok(is_current.then(|| Bytes::copy_from_slice(rendering.content)))
    }

    /// Keeps what was made of documents, and returns when it is durable. What is there already stays.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn keep_renderings(self: &Arc<Self>, new: Vec<NewRendering>) -> Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.keep_renderings(new),
        };
        self.check_there()?;
        let prefetched = PrefetchedHeads::read(self, new.iter().map(|one| one.id.as_str()))?;
        let room_bytes = new.iter().map(|one| one.id.len() + one.content.len() + 400).sum();
        let update = self.transact(prefetched, room_bytes, |transaction| {
            transaction.each(new, |transaction, one| transaction.keep_rendering(&one))
        })?;
        update.wait()?.into_iter().collect()
    }
}
