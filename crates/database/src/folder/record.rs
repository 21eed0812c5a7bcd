//! What is stored of folders, of what is in them, and of what people have read.
//!
//! Folders are given by their number here, which no other folder of the database ever gets, so that what is
//! left of one that was dropped means nothing.

#![allow(missing_docs, reason = "the names say it")]

use std::collections::BTreeMap;

use scrinium_contents::wire::{Input, put_bytes, put_number};

const VERSION: u8 = 1;
const REMOVED: u8 = 1;
const READ: u8 = 1;

/// Begins a record, with room for `bytes`.
fn begin(bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 1);
    out.push(VERSION);
    out
}

/// `None`: of a version that is not known.
fn open(bytes: &[u8]) -> Option<Input<'_>> {
    let mut input = Input::new(bytes);
    (input.byte()? == VERSION).then_some(input)
}

/// What a folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderRecord {
    pub number: u32,
    /// As it was written by the one who made it.
    pub name: String,
    /// Another one for a folder that is made again under an old name, as IMAP wants it (RFC 3501 §2.3.1.1).
    pub uid_validity: u32,
    /// The columns as a view's definition has them: a JSON array.
    pub columns: String,
}

impl FolderRecord {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(self.name.len() + self.columns.len() + 16);
        put_number(&mut out, u64::from(self.number));
        put_bytes(&mut out, self.name.as_bytes());
        put_number(&mut out, u64::from(self.uid_validity));
        put_bytes(&mut out, self.columns.as_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        Some(Self {
            number: input.number()?.try_into().ok()?,
            name: input.text()?.to_owned(),
            uid_validity: input.number()?.try_into().ok()?,
            columns: input.text()?.to_owned(),
        })
    }
}

/// What changes of a folder as documents come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderState {
    /// The uid of the next document that is added.
    pub next_uid: u64,
    /// Documents that are in it.
    pub total: u64,
    /// The last change of what is in it.
    pub change_number: u64,
}

impl FolderState {
    pub const NEW: Self = Self { next_uid: 1, total: 0, change_number: 0 };

    pub fn encode(self) -> Vec<u8> {
        let mut out = begin(16);
        for number in [self.next_uid, self.total, self.change_number] {
            put_number(&mut out, number);
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        Some(Self { next_uid: input.number()?, total: input.number()?, change_number: input.number()? })
    }
}

/// That a document is in a folder, found by the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    pub uid: u64,
    /// The change that put it there.
    pub change_number: u64,
}

impl Membership {
    pub fn encode(self) -> Vec<u8> {
        let mut out = begin(12);
        put_number(&mut out, self.uid);
        put_number(&mut out, self.change_number);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        Some(Self { uid: input.number()?, change_number: input.number()? })
    }
}

/// That a document is in a folder, found by the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub change_number: u64,
    /// When it was put there, in milliseconds since 1970.
    pub added_ms: u64,
    pub id: String,
}

impl Member {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(self.id.len() + 16);
        put_number(&mut out, self.change_number);
        put_number(&mut out, self.added_ms);
        out.extend_from_slice(self.id.as_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        Some(Self {
            change_number: input.number()?,
            added_ms: input.number()?,
            id: std::str::from_utf8(input.rest()).ok()?.to_owned(),
        })
    }
}

/// That a document came into a folder or left it. One that has left is a tombstone, and stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChange {
    pub uid: u64,
    pub removed: bool,
    pub id: String,
}

impl MemberChange {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(self.id.len() + 12);
        out.push(if self.removed { REMOVED } else { 0 });
        put_number(&mut out, self.uid);
        out.extend_from_slice(self.id.as_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        Some(Self {
            removed: input.byte()? & REMOVED != 0,
            uid: input.number()?,
            id: std::str::from_utf8(input.rest()).ok()?.to_owned(),
        })
    }
}

/// Whether a person has read a document. One that says unread stays, so that the person's other clients learn
/// of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub read: bool,
    /// The change that made it so.
    pub change_number: u64,
}

impl Mark {
    pub fn encode(self) -> Vec<u8> {
        let mut out = begin(12);
        out.push(if self.read { READ } else { 0 });
        put_number(&mut out, self.change_number);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        Some(Self { read: input.byte()? & READ != 0, change_number: input.number()? })
    }
}

/// That a person's mark changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkChange {
    pub read: bool,
    pub id: String,
}

impl MarkChange {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(self.id.len() + 1);
        out.push(if self.read { READ } else { 0 });
        out.extend_from_slice(self.id.as_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        let read = input.byte()? & READ != 0;
        Some(Self { read, id: std::str::from_utf8(input.rest()).ok()?.to_owned() })
    }
}

/// How many documents a person has read: what is there less these is unread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    pub database: u64,
    /// By the folder's number; one that was dropped may be left.
    pub folders: BTreeMap<u32, u64>,
}

impl ReadCounts {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(16 + self.folders.len() * 8);
        put_number(&mut out, self.database);
        for (folder, count) in &self.folders {
            put_number(&mut out, u64::from(*folder));
            put_number(&mut out, *count);
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        let mut counts = Self { database: input.number()?, folders: BTreeMap::new() };
        while !input.rest().is_empty() {
            counts.folders.insert(input.number()?.try_into().ok()?, input.number()?);
        }
        Some(counts)
    }

    /// Counts a document that became read, or is so no more, in the database.
    pub const fn count(&mut self, read: bool) {
        count(&mut self.database, read);
    }

    /// The same in a folder.
    pub fn count_in(&mut self, folder: u32, read: bool) {
        let counted = self.folders.entry(folder).or_default();
        count(counted, read);
        if *counted == 0 {
            self.folders.remove(&folder);
        }
    }
}

const fn count(counted: &mut u64, more: bool) {
    *counted = if more { counted.saturating_add(1) } else { counted.saturating_sub(1) };
}

/// How many persons have a mark on a document.
pub fn encode_count(count: u64) -> Vec<u8> {
    let mut out = begin(5);
    put_number(&mut out, count);
    out
}

/// `None`: damaged.
pub fn decode_count(bytes: &[u8]) -> Option<u64> {
    open(bytes)?.number()
}
