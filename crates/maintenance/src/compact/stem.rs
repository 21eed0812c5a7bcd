//! Histories that are longer than a database keeps, since its limit of revisions was lowered after they were made.

use std::sync::atomic::Ordering;

use scrinium_database::head::Head;
use scrinium_database::header::DEFAULT_REVISION_LIMIT;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_store::{Batch, Direction, Family, KeyRange};

use super::Subject;
use super::purge::GoOn;
use super::work::Halt;

/// Documents looked at by one step, and cut by one batch.
const DOCUMENTS_AT_ONCE: usize = 500;

impl Subject<'_> {
    /// Cuts the histories that are too long. Nothing is looked at under the usual limit: edits keep to it by themselves.
    pub(super) fn stem_histories(&self, go_on: GoOn<'_>) -> std::result::Result<(), Halt> {
        if self.revision_limit() >= DEFAULT_REVISION_LIMIT {
            return Ok(());
        }
        let (from, _) = keys::head_range(self.number());
        let mut next = Some(from);
        while let Some(from) = next {
            let (long, behind) = self.long_histories(&from)?;
            self.stem_some(&long)?;
            go_on()?;
            next = behind;
        }
        Ok(())
    }

    fn most_revisions(&self) -> usize {
        usize::try_from(self.revision_limit()).unwrap_or(usize::MAX)
    }

    /// Documents with more revisions than the limit, and where to go on.
    fn long_histories(&self, from: &[u8]) -> Result<(Vec<String>, Option<Vec<u8>>)> {
        let (_, to) = keys::head_range(self.number());
        let snapshot = self.store().snapshot();
        let range = KeyRange { from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Point, range, Direction::Forward);
        let mut long = Vec::new();
        for _ in 0..DOCUMENTS_AT_ONCE {
            let Some((key, stored)) = cursor.next()? else { return Ok((long, None)) };
            // What cannot be read stays as it is.
            if let (Some(id), Some(head)) = (keys::id_of(key), Head::decode(stored))
                && head.tree.len() > self.most_revisions()
            {
                long.push(id.to_owned());
            }
        }
        let behind = cursor.next()?.map(|(key, _)| key.to_vec());
        Ok((long, behind))
    }

    /// Cuts these, but for those that are just being edited, which their edits cut.
    fn stem_some(&self, ids: &[String]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        let (mut batch, mut header) = (Batch::for_removing(), writer.header.clone());
        for id in ids.iter().filter(|id| writer.pending(id).is_none()) {
            let key = keys::head(self.number(), id);
            let Some(stored) = self.store().get(Family::Point, &key)? else { continue };
            let mut head =
                Head::decode(&stored).ok_or_else(|| DatabaseError::damaged("revision tree", id))?;
            let (before_bytes, revisions) = (head.stored_bytes, head.tree.len());
            head.tree.stem(self.most_revisions());
            if head.tree.len() < revisions {
                let record = head.encode_counting(before_bytes.saturating_sub(stored.len() as u64));
                header.stored_bytes = header.stored_bytes.saturating_sub(before_bytes) + head.stored_bytes;
                batch.put(Family::Point, &key, &record);
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        header.change_number += 1;
        let change_number = header.change_number;
        batch.put(Family::Meta, &keys::header(self.number()), &header.encode());
        let before = std::mem::replace(&mut writer.header, header);
        let submitted = self.submit(&writer, batch, (), |_| {});
        // Held until it is stored: anyone who comes next must build on what is left.
        submitted.inspect_err(|_| writer.header = before)?.wait()?;
        writer.forget_what_was_read_before(change_number);
        Ok(())
    }
}
