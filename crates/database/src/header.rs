//! What is known of a database as a whole; written with every batch that changes it.

#![allow(missing_docs, reason = "the names say it")]

use scrinium_contents::wire::{Input, put_bytes, put_number};

const VERSION: u8 = 4;

/// Version 3 did not count folders.
const VERSION_WITHOUT_FOLDER_COUNT: u8 = 3;

/// Version 2 did not count the bytes of records.
const VERSION_WITHOUT_STORED_BYTES: u8 = 2;

/// Version 1 knew neither folders nor marks, and did not count design documents.
const VERSION_WITHOUT_FOLDERS: u8 = 1;

/// Stands for a number of design documents, or of folders, that is not known.
pub const UNCOUNTED: u64 = u64::MAX;

/// About what a document's records take besides its content, where that was not counted.
pub const RECORD_BYTES: u64 = 200;

/// About what the records of one membership, and those of one mark, take.
const MEMBERSHIP_BYTES: u64 = 170;
const MARK_BYTES: u64 = 120;

/// How many revisions a branch keeps, as in CouchDB.
pub const DEFAULT_REVISION_LIMIT: u64 = 1000;

/// What is known of a database as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub uuid: [u8; 16],
    pub created_ms: u64,
    /// The number of the last change; 0 before the first.
    pub change_number: u64,
    pub document_count: u64,
    pub deleted_count: u64,
    /// Bytes of all leaves' fields and attachments, before compression and sharing.
    pub external_bytes: u64,
    pub revision_limit: u64,
    /// Design documents that are there; [`UNCOUNTED`] as read from version 1.
    pub design_count: u64,
    /// Folders that are there; [`UNCOUNTED`] as read from versions 2 and 3.
    pub folder_count: u64,
    /// The number of the last folder that was made; none ever gets it again.
    pub last_folder: u64,
    /// The last folder's `uid_validity`; the next one's is higher.
    pub last_uid_validity: u64,
    /// Documents in folders, one that is in two counted twice.
    pub membership_count: u64,
    /// Marks of all persons, those that say unread included.
    pub mark_count: u64,
    /// Keys and records of all documents, before compression; see [`crate::head::Head::stored_bytes`].
    pub stored_bytes: u64,
}

impl Header {
    /// About how many records the database has.
    pub const fn records(&self) -> u64 {
        3 * (self.document_count + self.deleted_count) + 3 * self.membership_count + 2 * self.mark_count
    }

    /// The header of a database that is made now.
    pub fn new(name: &str, uuid: [u8; 16], created_ms: u64) -> Self {
        Self {
            name: name.to_owned(),
            uuid,
            created_ms,
            change_number: 0,
            document_count: 0,
            deleted_count: 0,
            external_bytes: 0,
            revision_limit: DEFAULT_REVISION_LIMIT,
            design_count: 0,
            folder_count: 0,
            last_folder: 0,
            last_uid_validity: 0,
            membership_count: 0,
            mark_count: 0,
            stored_bytes: 0,
        }
    }

    /// Documents that are there and can be read or unread: all but design documents.
    pub const fn readable_count(&self) -> u64 {
        self.document_count.saturating_sub(self.design_count)
    }

    /// Keys and records of everything that is there, before compression.
    pub const fn live_bytes(&self) -> u64 {
        self.stored_bytes + self.membership_count * MEMBERSHIP_BYTES + self.mark_count * MARK_BYTES
    }

    pub fn encode(&self) -> Vec<u8> {
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
            self.design_count,
            self.last_folder,
            self.last_uid_validity,
            self.membership_count,
            self.mark_count,
            self.stored_bytes,
            self.folder_count,
        ] {
            put_number(&mut out, number);
        }
        out
    }

    /// `None`: not a header of a version that is known.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let version = input.byte()?;
        if !(VERSION_WITHOUT_FOLDERS..=VERSION).contains(&version) {
            return None;
        }
        let mut header = Self::new(input.text()?, input.array()?, input.number()?);
        for number in [
            &mut header.change_number,
            &mut header.document_count,
            &mut header.deleted_count,
            &mut header.external_bytes,
            &mut header.revision_limit,
        ] {
            *number = input.number()?;
        }
        let documents = header.document_count.saturating_add(header.deleted_count);
        header.stored_bytes = header.external_bytes.saturating_add(documents.saturating_mul(RECORD_BYTES));
        if version == VERSION_WITHOUT_FOLDERS {
            header.design_count = UNCOUNTED;
            return Some(header);
        }
        for number in [
            &mut header.design_count,
            &mut header.last_folder,
            &mut header.last_uid_validity,
            &mut header.membership_count,
            &mut header.mark_count,
        ] {
            *number = input.number()?;
        }
        if version != VERSION_WITHOUT_STORED_BYTES {
            header.stored_bytes = input.number()?;
        }
        let is_counted = version > VERSION_WITHOUT_FOLDER_COUNT;
        header.folder_count = if is_counted { input.number()? } else { UNCOUNTED };
        Some(header)
    }
}
