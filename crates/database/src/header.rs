//! What is known of a database as a whole; written with every batch that changes it.

use crate::wire::{Input, put_bytes, put_number};

const VERSION: u8 = 1;

/// How many revisions a branch keeps, as in CouchDB.
pub(crate) const DEFAULT_REVISION_LIMIT: u64 = 1000;

/// What is known of a database as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) uuid: [u8; 16],
    pub(crate) created_ms: u64,
    /// The number of the last change; 0 before the first.
    pub(crate) change_number: u64,
    pub(crate) document_count: u64,
    pub(crate) deleted_count: u64,
    /// Bytes of all leaves' fields and attachments, before compression and sharing.
    pub(crate) external_bytes: u64,
    pub(crate) revision_limit: u64,
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.name.len());
        out.push(VERSION);
        put_bytes(&mut out, self.name.as_bytes());
        out.extend_from_slice(&self.uuid);
        for number in [
            self.created_ms,
            self.change_number,
            self.document_count,
            self.deleted_count,
            self.external_bytes,
            self.revision_limit,
        ] {
            put_number(&mut out, number);
        }
        out
    }

    /// `None`: not a header of a version that is known.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        if input.byte()? != VERSION {
            return None;
        }
        Some(Self {
            name: input.text()?.to_owned(),
            uuid: input.array()?,
            created_ms: input.number()?,
            change_number: input.number()?,
            document_count: input.number()?,
            deleted_count: input.number()?,
            external_bytes: input.number()?,
            revision_limit: input.number()?,
        })
    }
}
