//! Bodies that others follow now, kept where the database has a history.

use std::collections::BTreeSet;

use bytes::Bytes;
use scrinium_document::{Revision, RevisionTree};
use scrinium_store::Family;

use super::Transaction;
use super::document::{Before, Leaves};
use crate::error::Result;
use crate::history::{EarlierBody, let_go};
use crate::hold;
use crate::keys::{self, Digest};
use crate::leaf::Leaf;

impl Transaction<'_> {
    /// The bodies of leaves that others follow now, if they are to be kept. What came with the same batch is none of them: nobody
    /// has ever read it.
    pub(super) fn superseded(
        &self,
        id: &str,
        before: &Before,
        old: &Leaves,
        new: &Leaves,
    ) -> Result<Vec<(Revision, Bytes)>> {
        if !self.database.history().is_on() {
            return Ok(Vec::new());
        }
        let mut superseded = Vec::new();
        for revision in old.all.difference(&new.all) {
            if before.came_together.contains(revision) {
                continue;
            }
            // What a damaged disk has lost is not kept, and the edit goes on: it may be the one that replaces what is lost.
            let Ok(record) = self.known_leaf(id, before, (revision, old.is_winner(revision))) else {
                continue;
            };
            if Leaf::decode(id, &record).is_ok_and(|leaf| leaf.revision == revision.to_string()) {
                superseded.push((revision.clone(), record));
            }
        }
        Ok(superseded)
    }

    /// Keeps the bodies that were superseded, and lets those go that are too many, too old, or of revisions that are not known
    /// any more. What the document keeps from now on.
    pub(super) fn keep_earlier(
        &mut self,
        id: &str,
        before: &Before,
        tree: &RevisionTree,
        superseded: Vec<(Revision, Bytes)>,
    ) -> Result<Vec<EarlierBody>> {
        let (number, superseded_ms) = (self.database.number(), self.now_ms);
        let mut earlier = before.head.earlier.clone();
        for (revision, record) in superseded {
            let (key, mut contents) =
                (keys::earlier(number, id, &revision), Leaf::decode(id, &record)?.contents(id)?);
            contents.sort_unstable();
            contents.dedup();
            self.batch.put(Family::Scan, &key, &record);
            let stored_bytes = (key.len() + record.len()) as u64;
            earlier.push(EarlierBody { revision, superseded_ms, stored_bytes, contents });
        }
        let mut gone = let_go(&mut earlier, tree, self.database.history(), self.now_ms);
        let deleted = self.still_deleted(id, tree, &mut gone)?;
        if !deleted.is_empty() {
            earlier.extend(deleted);
            earlier.sort_by_key(|body| body.superseded_ms);
        }
        for body in gone {
            self.hold_earlier(id, &body)?;
            self.batch.delete(Family::Scan, &body.key(number, id));
        }
        Ok(earlier)
    }

    /// Where the database is held, what its history lets go is held. What the store does not show has come since the hold was
    /// set, and was held when it was replaced.
    fn hold_earlier(&mut self, id: &str, body: &EarlierBody) -> Result<()> {
        if !self.database.is_held() {
            return Ok(());
        }
        let number = self.database.number();
        let stored = self.database.store().get(Family::Scan, &body.key(number, id))?;
        let Some(stored) = stored else { return Ok(()) };
        hold::keep(&mut self.batch, number, (id, &body.revision), (body.superseded_ms, stored.as_ref()))
    }
}

/// Contents, sorted, with those that earlier bodies refer to.
pub(super) fn with_earlier(contents: Vec<Digest>, earlier: &[EarlierBody]) -> Vec<Digest> {
    if earlier.iter().all(|body| body.contents.is_empty()) {
        return contents;
    }
    let all: BTreeSet<Digest> =
        contents.into_iter().chain(earlier.iter().flat_map(|body| body.contents.iter().copied())).collect();
    all.into_iter().collect()
}
