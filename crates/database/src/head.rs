//! What is known of a document besides its content: its revisions and its place in the change feed.

#![allow(missing_docs, reason = "the names say it")]

use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_document::{Revision, RevisionTree};

use crate::header::RECORD_BYTES;
use crate::history::EarlierBody;
use crate::keys::Digest;

const VERSION: u8 = 1;

/// A head that says how many bytes the document's records have; those of version 1 do not.
const HEAD_VERSION: u8 = 2;

/// A head that lists earlier bodies as well.
const HEAD_VERSION_WITH_HISTORY: u8 = 3;

/// Where a head says so: after its version, in four bytes.
const STORED_BYTES: std::ops::Range<usize> = 1..5;

const DELETED: u8 = 1;
const SEVERAL_LEAVES: u8 = 2;

/// What is known of a document besides its content.
#[derive(Clone, Debug, Default)]
pub struct Head {
    pub change_number: u64,
    pub created_ms: u64,
    /// Bytes of all leaves, as [`crate::header::Header::external_bytes`] counts them.
    pub external_bytes: u64,
    /// The contents that the leaves and the earlier bodies refer to, sorted, each once.
    pub contents: Vec<Digest>,
    pub tree: RevisionTree,
    /// Bytes of the document's keys and records before compression: this one, those of its leaves, of its earlier bodies, and
    /// its change.
    pub stored_bytes: u64,
    /// Earlier bodies that are kept, in the order in which others have followed them.
    pub earlier: Vec<EarlierBody>,
}

impl Head {
    /// The record, after the bytes of it and of the document's other records have been counted.
    pub fn encode_counting(&mut self, others_bytes: u64) -> Vec<u8> {
        let mut out = self.encode();
        self.stored_bytes = others_bytes.saturating_add(out.len() as u64);
        let stored = u32::try_from(self.stored_bytes).unwrap_or(u32::MAX).to_be_bytes();
        if let Some(place) = out.get_mut(STORED_BYTES) {
            place.copy_from_slice(&stored);
        }
        out
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.contents.len() * 32);
        let has_history = !self.earlier.is_empty();
        out.push(if has_history { HEAD_VERSION_WITH_HISTORY } else { HEAD_VERSION });
        out.extend_from_slice(&u32::try_from(self.stored_bytes).unwrap_or(u32::MAX).to_be_bytes());
        put_number(&mut out, self.change_number);
        put_number(&mut out, self.created_ms);
        put_number(&mut out, self.external_bytes);
        put_number(&mut out, self.contents.len() as u64);
        for digest in &self.contents {
            out.extend_from_slice(digest);
        }
        if has_history {
            put_number(&mut out, self.earlier.len() as u64);
            self.earlier.iter().for_each(|body| body.encode(&mut out));
        }
        out.extend_from_slice(&self.tree.encode());
        out
    }

    /// The number of the document's last change alone.
    pub fn decode_change_number(bytes: &[u8]) -> Option<u64> {
        let mut input = Input::new(bytes);
        begin(&mut input)?;
        input.number()
    }

    /// `None`: damaged, or of a version that is not known.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let has_history = bytes.first() == Some(&HEAD_VERSION_WITH_HISTORY);
        let stored_bytes = begin(&mut input)?;
        let change_number = input.number()?;
        let created_ms = input.number()?;
        let external_bytes = input.number()?;
        let count = input.number()?;
        let mut contents = Vec::new();
        for _ in 0..count {
            contents.push(input.array()?);
        }
        let mut earlier = Vec::new();
        if has_history {
            for _ in 0..input.number()? {
                earlier.push(EarlierBody::decode(&mut input)?);
            }
        }
        let tree = RevisionTree::decode(input.rest()).ok()?;
        let stored_bytes =
            stored_bytes.map_or_else(|| external_bytes.saturating_add(RECORD_BYTES), u64::from);
        Some(Self { change_number, created_ms, external_bytes, contents, tree, stored_bytes, earlier })
    }
}

/// Reads what a head begins with: the bytes of the document's records, where they were counted. `None`: of a version
/// that is not known.
fn begin(input: &mut Input<'_>) -> Option<Option<u32>> {
    match input.byte()? {
        VERSION => Some(None),
        HEAD_VERSION | HEAD_VERSION_WITH_HISTORY => input.array().map(u32::from_be_bytes).map(Some),
        _ => None,
    }
}

/// An entry of the change feed.
#[derive(Clone, Debug)]
pub struct ChangeRecord {
    pub id: String,
    pub winner: Revision,
    pub deleted: bool,
    /// There are leaves other than the winner; the head has them.
    pub several_leaves: bool,
}

impl ChangeRecord {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(48 + self.id.len());
        out.push(VERSION);
        let deleted = if self.deleted { DELETED } else { 0 };
        let several = if self.several_leaves { SEVERAL_LEAVES } else { 0 };
        out.push(deleted | several);
        put_bytes(&mut out, self.id.as_bytes());
        put_bytes(&mut out, self.winner.to_string().as_bytes());
        out
    }

    /// `None`: damaged, or of a version that is not known.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        if input.byte()? != VERSION {
            return None;
        }
        let flags = input.byte()?;
        let id = input.text()?.to_owned();
        let winner = input.text()?.parse().ok()?;
        Some(Self { id, winner, deleted: flags & DELETED != 0, several_leaves: flags & SEVERAL_LEAVES != 0 })
    }
}
