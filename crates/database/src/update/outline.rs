//! What was found out about a document's source comes and goes with the document.

use scrinium_document::RevisionTree;
use scrinium_store::Family;

use super::Transaction;
use crate::edit::SideEffects;
use crate::error::Result;
use crate::keys::{self, Digest};
use crate::leaf::Leaf;
use crate::outline::{OUTLINE_BYTES_MAX, encode};
use crate::source_facts::facts_of;

impl Transaction<'_> {
    /// After an edit: what came with it takes the place of what was there, which is of another source, or of none any more.
    pub(super) fn follow_with_outline(
        &mut self,
        id: &str,
        old: &RevisionTree,
        (is_alive, effects): (bool, &SideEffects),
    ) -> Result<()> {
        let key = keys::outline(self.database.number(), id);
        let brought =
            effects.outline.as_ref().filter(|outline| is_alive && outline.len() <= OUTLINE_BYTES_MAX);
        if let Some(outline) = brought
            && let Some(content) = self.source_of(id)?
        {
            self.records.put(&mut self.batch, key, encode(&content, outline));
            return Ok(());
        }
        // Where there are no folders, nobody looks at messages, and no edit looks for this.
        if self.header.membership_count > 0 && !old.is_empty() && self.records.get(&key)?.is_some() {
            self.records.delete(&mut self.batch, key);
        }
        Ok(())
    }

    /// Keeps what was found out later, if the document's source is still this content. It is no change of the database.
    pub(crate) fn keep_outline(&mut self, id: &str, content: &Digest, outline: &[u8]) -> Result<()> {
        if outline.len() <= OUTLINE_BYTES_MAX
            && self.is_alive(id)?
            && self.source_of(id)?.as_ref() == Some(content)
        {
            let key = keys::outline(self.database.number(), id);
            self.batch.put(Family::Point, &key, &encode(content, outline));
        }
        Ok(())
    }

    /// The content that is the document's source.
    fn source_of(&self, id: &str) -> Result<Option<Digest>> {
        let Some(leaf) = self.winning_leaf(id)? else { return Ok(None) };
        Ok(facts_of(&Leaf::decode(id, &leaf)?, id)?.content)
    }
}
