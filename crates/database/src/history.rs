//! Earlier bodies that a database keeps: those of revisions that others have followed, by their number, their age, or both.
//!
//! They are there only where an administrator has asked for them. A document's head lists them, so that contents that
//! only they refer to stay, and that they go with their document. A body is kept no longer than its revision is known: what
//! `_revs_limit` cuts off or `_purge` takes away has no body either. Each edit of a document lets those go that are too many or
//! too old, and compaction those of documents that nobody edits. Under a legal hold compaction leaves them all, and what an edit lets
//! go is held ([`crate::hold`]).

#![allow(missing_docs, reason = "the names say it")]

use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_document::{Revision, RevisionTree};
use serde_json::Value;

use crate::error::{DatabaseError, Result};
use crate::keys::{self, Digest};

/// A document keeps no more earlier bodies than this, whatever their age: each edit looks at the list of them.
pub const EARLIER_MAX: u32 = 1000;

/// And the bodies that a document keeps refer to no more contents than this together, attachments and long values: the list names
/// them.
pub const EARLIER_CONTENTS_MAX: usize = 10_000;

/// The longest time, a hundred years.
const DAYS_MAX: u32 = 36_500;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// How much of its documents' history a database keeps; nothing unless one of these is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Earlier bodies of a document; 0: as many as `days` leave, and 1,000 at most.
    pub revisions: u32,
    /// How long after another revision has followed; 0: for ever.
    pub days: u32,
}

impl HistoryLimits {
    /// Nothing is kept.
    pub const NONE: Self = Self { revisions: 0, days: 0 };

    /// Whether anything is kept.
    #[must_use]
    pub const fn is_on(self) -> bool {
        self.revisions > 0 || self.days > 0
    }

    /// Takes over a property of this name; whether it is one of history.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for a value that it cannot have.
    pub(crate) fn set(&mut self, name: &str, value: &Value) -> Result<bool> {
        let (most, what) = match name {
            "history_revisions" => (EARLIER_MAX, "how many earlier bodies of a document are kept"),
            "history_days" => (DAYS_MAX, "for how many days earlier bodies of documents are kept"),
            _ => return Ok(false),
        };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| *number <= most).ok_or_else(|| {
            DatabaseError::bad_request(format!(
                "`{name}` says {what}: a number from 0, which sets no limit of this kind, to {most}"
            ))
        })?;
        if name == "history_days" {
            self.days = number;
        } else {
            self.revisions = number;
        }
        Ok(true)
    }

    /// As clients see them.
    pub(crate) fn to_members(self) -> [(String, Value); 2] {
        let members = [("history_revisions", self.revisions), ("history_days", self.days)];
        members.map(|(name, value)| (name.to_owned(), value.into()))
    }

    fn most(self) -> usize {
        if !self.is_on() {
            return 0;
        }
        let most = if self.revisions > 0 { self.revisions } else { EARLIER_MAX };
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// What was superseded before this is too old.
    fn oldest_ms(self, now_ms: u64) -> u64 {
        if self.days == 0 { 0 } else { now_ms.saturating_sub(u64::from(self.days) * DAY_MS) }
    }
}

/// An earlier body that is kept, as the head of its document has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierBody {
    pub revision: Revision,
    /// When another revision followed, in milliseconds since 1970.
    pub superseded_ms: u64,
    /// Bytes of its key and its record.
    pub stored_bytes: u64,
    /// The contents that it refers to.
    pub contents: Vec<Digest>,
}

impl EarlierBody {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.revision.to_string().as_bytes());
        put_number(out, self.superseded_ms);
        put_number(out, self.stored_bytes);
        put_number(out, self.contents.len() as u64);
        for digest in &self.contents {
            out.extend_from_slice(digest);
        }
    }

    pub(crate) fn decode(input: &mut Input<'_>) -> Option<Self> {
        let revision = Revision::parse(input.text()?).ok()?;
        let (superseded_ms, stored_bytes, count) = (input.number()?, input.number()?, input.number()?);
        let mut contents = Vec::new();
        for _ in 0..count {
            contents.push(input.array()?);
        }
        Some(Self { revision, superseded_ms, stored_bytes, contents })
    }

    pub fn key(&self, number: u32, id: &str) -> Vec<u8> {
        keys::earlier(number, id, &self.revision)
    }
}

/// Whether others have followed a revision. Where all were purged, the tombstone that takes their place may have the name of
/// one that was there before.
#[must_use]
pub fn is_earlier(tree: &RevisionTree, revision: &Revision) -> bool {
    tree.contains(revision) && tree.leaf(revision).is_none()
}

/// Takes those out of `earlier`, the oldest first, that are not kept any longer, and gives them.
pub fn let_go(
    earlier: &mut Vec<EarlierBody>,
    tree: &RevisionTree,
    limits: HistoryLimits,
    now_ms: u64,
) -> Vec<EarlierBody> {
    let oldest_ms = limits.oldest_ms(now_ms);
    let is_kept = |body: &EarlierBody| body.superseded_ms >= oldest_ms && is_earlier(tree, &body.revision);
    let (mut kept, mut gone): (Vec<_>, Vec<_>) =
        std::mem::take(earlier).into_iter().partition(|body| limits.is_on() && is_kept(body));
    let too_many = kept.len().saturating_sub(limits.most()).max(too_many_contents(&kept));
    gone.extend(kept.drain(..too_many));
    *earlier = kept;
    gone
}

/// How many of the oldest bodies have to go because all together refer to more contents than a list may name.
fn too_many_contents(bodies: &[EarlierBody]) -> usize {
    let mut contents = 0;
    let fits = |body: &&EarlierBody| {
        contents += body.contents.len();
        contents <= EARLIER_CONTENTS_MAX
    };
    bodies.len() - bodies.iter().rev().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn body(generation: u64, contents: usize) -> EarlierBody {
        let revision = Revision::parse(&format!("{generation}-aa")).unwrap();
        EarlierBody {
            revision,
            superseded_ms: generation,
            stored_bytes: 1,
            contents: vec![[7; 32]; contents],
        }
    }

    /// A document with thousands of attachments keeps few bodies, however many its database allows.
    #[test]
    fn a_list_of_earlier_bodies_names_a_limited_number_of_contents() {
        let path: Vec<Revision> = (1..=9).rev().map(|number| body(number, 0).revision).collect();
        let mut tree = RevisionTree::default();
        tree.merge(&path, false).unwrap();
        let limits = HistoryLimits { revisions: EARLIER_MAX, days: 0 };
        let generations = |bodies: &[EarlierBody]| -> Vec<u64> {
            bodies.iter().map(|body| body.revision.generation()).collect()
        };
        let mut earlier: Vec<_> = (1..=8).map(|number| body(number, 2500)).collect();
        assert_eq!(generations(&let_go(&mut earlier, &tree, limits, 9)), [1, 2, 3, 4]);
        earlier.push(body(8, EARLIER_CONTENTS_MAX + 1));
        assert_eq!(let_go(&mut earlier, &tree, limits, 9).len(), 5);
        assert!(earlier.is_empty());
    }
}
