//! What is remembered of the compactions of a database, and of the documents that they purged.

#![allow(missing_docs, reason = "the names say it")]

use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_document::Revision;
use scrinium_store::{Batch, Direction, Family, KeyRange};

use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::keys;

const VERSION: u8 = 1;

/// This many purged documents are remembered where nothing else is set, as CouchDB's `_purged_infos_limit` has it.
pub const PURGED_REMEMBERED: u64 = 1000;

/// No more can be remembered, since all of them are listed at once.
pub const PURGED_REMEMBERED_MAX: u64 = 100_000;

/// What is remembered beyond a limit is forgotten in batches of this size.
const FORGOTTEN_AT_ONCE: usize = 10_000;

/// What is remembered of the compactions of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionRecord {
    /// When the last one ended, in milliseconds since 1970.
    pub finished_ms: u64,
    /// What a million bytes of records took on disk right after it; 0: not known.
    pub share_ppm: u64,
    /// Documents purged so far, the number of the last one.
    pub purged_documents: u64,
    /// Memberships purged so far.
    pub purged_memberships: u64,
    /// No tombstone of a change up to this one is left.
    pub purged_to: u64,
}

impl CompactionRecord {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        for number in
            [self.finished_ms, self.share_ppm, self.purged_documents, self.purged_memberships, self.purged_to]
        {
            put_number(&mut out, number);
        }
        out
    }

    /// `None`: damaged, or of a version that is not known.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        if input.byte()? != VERSION {
            return None;
        }
        Some(Self {
            finished_ms: input.number()?,
            share_ppm: input.number()?,
            purged_documents: input.number()?,
            purged_memberships: input.number()?,
            purged_to: input.number()?,
        })
    }
}

/// A document that was purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgedDocument {
    /// Its id.
    pub id: String,
    /// The leaves that it lost: of a tombstone that was old enough all of them, or those that somebody named.
    pub revisions: Vec<Revision>,
}

impl PurgedDocument {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_bytes(&mut out, self.id.as_bytes());
        for revision in &self.revisions {
            put_bytes(&mut out, revision.to_string().as_bytes());
        }
        out
    }

    /// `None`: damaged, or of a version that is not known.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        if input.byte()? != VERSION {
            return None;
        }
        let mut purged = Self { id: input.text()?.to_owned(), revisions: Vec::new() };
        while !input.rest().is_empty() {
            purged.revisions.push(input.text()?.parse().ok()?);
        }
        Some(purged)
    }
}

impl Database {
    /// How many purged documents are remembered.
    ///
    /// # Errors
    /// What the store reports.
    pub fn purged_limit(&self) -> Result<u64> {
        let Some(stored) = self.store().get(Family::Meta, &keys::purged_limit(self.number()))? else {
            return Ok(PURGED_REMEMBERED);
        };
        let damaged = || DatabaseError::damaged("limit of purged documents", self.name());
        let bytes: [u8; 8] = (*stored).try_into().map_err(|_| damaged())?;
        Ok(u64::from_be_bytes(bytes))
    }

    /// Sets how many purged documents are remembered, and forgets those that are beyond it. Durable when it returns.
    ///
    /// # Errors
    /// A limit of 0 or beyond [`PURGED_REMEMBERED_MAX`], and what the store reports.
    pub fn set_purged_limit(&self, limit: u64) -> Result<()> {
        if !(1..=PURGED_REMEMBERED_MAX).contains(&limit) {
            let reason =
                format!("`purge_infos_limit` must be a positive integer up to {PURGED_REMEMBERED_MAX}");
            return Err(DatabaseError::bad_request(reason));
        }
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.set_purged_limit(limit),
        };
        self.check_there()?;
        let _purges = self.lock_purges();
        let mut batch = Batch::new();
        batch.put(Family::Meta, &keys::purged_limit(self.number()), &limit.to_be_bytes());
        self.store().commit(batch)?;
        let last_forgotten = self.compaction_record()?.purged_documents.saturating_sub(limit);
        self.forget_purged(last_forgotten)
    }

    /// Forgets the purged documents up to this one.
    fn forget_purged(&self, last: u64) -> Result<()> {
        let (from, _) = keys::purged_range(self.number());
        let to = keys::purged(self.number(), last.saturating_add(1));
        loop {
            let snapshot = self.store().snapshot();
            let range = KeyRange { from: &from, to: Some(&to) };
            let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
            let (mut batch, mut count) = (Batch::for_removing(), 0);
            while count < FORGOTTEN_AT_ONCE {
                let Some((key, _)) = cursor.next()? else { break };
                batch.delete(Family::Churn, key);
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            self.store().commit(batch)?;
        }
    }

    /// The documents that were purged last, as many as are remembered, the last one first.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn purged_documents(&self) -> Result<Vec<PurgedDocument>> {
        self.check_there()?;
        let (from, to) = keys::purged_range(self.number());
        let snapshot = self.store().snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Backward);
        let mut purged = Vec::new();
        while let Some((_, stored)) = cursor.next()? {
            let document = PurgedDocument::decode(stored);
            purged.push(document.ok_or_else(|| DatabaseError::damaged("purged document", self.name()))?);
        }
        Ok(purged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_cut_ones_are_refused() {
        let record = CompactionRecord {
            finished_ms: 1_793_000_000_000,
            share_ppm: 412_000,
            purged_documents: 9,
            purged_memberships: 300,
            purged_to: 70_000,
        };
        let bytes = record.encode();
        assert_eq!(CompactionRecord::decode(&bytes), Some(record));
        for end in 0..bytes.len() {
            assert_eq!(CompactionRecord::decode(&bytes[..end]), None);
        }
        let revisions = vec![Revision::parse("2-bb").unwrap(), Revision::parse("3-aa").unwrap()];
        let purged = PurgedDocument { id: "memo ä".to_owned(), revisions };
        assert_eq!(PurgedDocument::decode(&purged.encode()), Some(purged));
    }
}
