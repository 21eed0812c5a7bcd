//! How much a database may hold, and what is refused when it is full.
//!
//! What it holds is counted with every edit, in its [`Header`](crate::header::Header), which fixup counts again. So a look at the quota
//! costs an edit nothing that grows. What takes nothing more is never refused: deletions, edits that make a document smaller, folders,
//! flags and marks.

use serde_json::Value;

use crate::error::{DatabaseError, Result};

/// A deletion may bring this many bytes whatever is full: CouchDB's clients keep a word on why in it.
pub(crate) const TOMBSTONE_BYTES: u64 = 1_024;

/// Where nothing is said, administrators are warned from this share on.
const WARN_PERCENT: u64 = 90;

/// How much a database may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of all fields and attachments, before compression and sharing; 0: as many as there is room for.
    pub bytes: u64,
    /// Documents that are there; 0: as many as there is room for.
    pub documents: u64,
    /// From this share of either on, in percent, it is nearly full.
    pub warn_percent: u64,
}

/// How full a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaState {
    /// There is room.
    Room,
    /// It is nearly full.
    NearlyFull,
    /// It takes nothing more.
    Full,
}

impl QuotaState {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::NearlyFull => "nearly full",
            Self::Full => "full",
        }
    }
}

impl Quota {
    /// None.
    pub const NONE: Self = Self { bytes: 0, documents: 0, warn_percent: WARN_PERCENT };

    /// Whether it allows everything.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.bytes == 0 && self.documents == 0
    }

    /// How full a database is that holds so much.
    #[must_use]
    pub fn state(&self, bytes: u64, documents: u64) -> QuotaState {
        let reaches = |used: u64, limit: u64, percent: u64| {
            limit > 0 && u128::from(used) * 100 >= u128::from(limit) * u128::from(percent)
        };
        let either =
            |percent| reaches(bytes, self.bytes, percent) || reaches(documents, self.documents, percent);
        if either(100) {
            QuotaState::Full
        } else if either(self.warn_percent) {
            QuotaState::NearlyFull
        } else {
            QuotaState::Room
        }
    }

    /// Whether so much is more than it allows.
    pub(crate) const fn is_passed(&self, bytes: u64, documents: u64) -> bool {
        self.bytes > 0 && bytes > self.bytes || self.documents > 0 && documents > self.documents
    }

    pub(crate) fn to_members(self) -> [(String, Value); 3] {
        [
            ("quota_bytes".to_owned(), self.bytes.into()),
            ("quota_documents".to_owned(), self.documents.into()),
            ("quota_warn_percent".to_owned(), self.warn_percent.into()),
        ]
    }

    /// Sets what a client wishes; whether it is a part of the quota.
    pub(crate) fn set(&mut self, name: &str, value: &Value) -> Result<bool> {
        let (part, limit) = match name {
            "quota_bytes" => (&mut self.bytes, u64::MAX),
            "quota_documents" => (&mut self.documents, u64::MAX),
            "quota_warn_percent" => (&mut self.warn_percent, 100),
            _ => return Ok(false),
        };
        match value.as_u64().filter(|number| *number <= limit) {
            Some(number) => *part = number,
            None => {
                let most = if limit == 100 { ", at most 100" } else { "" };
                return Err(DatabaseError::bad_request(format!("`{name}` must be a whole number{most}")));
            }
        }
        Ok(true)
    }
}
