//! Earlier bodies that are kept no longer: too old, too many since the limits were lowered, or all of them since history was
//! turned off. Documents that are edited see to theirs by themselves. Nothing goes while the database is held.

use std::sync::atomic::Ordering;

use scrinium_database::head::Head;
use scrinium_database::history::{HistoryLimits, let_go};
use scrinium_database::keys::{self, Digest};
use scrinium_database::undelete::is_kept;
use scrinium_database::{DatabaseError, Result};
use scrinium_store::{Batch, Direction, Family, KeyRange};

use super::Subject;
use super::purge::GoOn;
use super::work::Halt;

/// Documents looked at by one step: each may let a thousand bodies go.
const DOCUMENTS_AT_ONCE: usize = 20;

impl Subject<'_> {
    /// Lets go what is kept no longer. The cost goes with the documents that keep anything.
    pub(super) fn thin_out_earlier(&self, go_on: GoOn<'_>) -> std::result::Result<(), Halt> {
        let (mut from, _) = keys::earlier_range(self.number());
        loop {
            let (ids, next) = self.documents_with_earlier(&from)?;
            self.thin_out_some(&ids)?;
            go_on()?;
            match next {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
    }

    /// Some documents that keep earlier bodies, and where to go on.
    fn documents_with_earlier(&self, from: &[u8]) -> Result<(Vec<String>, Option<Vec<u8>>)> {
        let (_, to) = keys::earlier_range(self.number());
        let snapshot = self.store().snapshot();
        let mut cursor = snapshot.cursor(Family::Scan, KeyRange { from, to: Some(&to) }, Direction::Forward);
        let mut ids = Vec::new();
        while ids.len() < DOCUMENTS_AT_ONCE {
            let Some((key, _)) = cursor.next()? else { return Ok((ids, None)) };
            // What names no document is for a fixup to find.
            let Some(id) = keys::id_of_loser(key).map(str::to_owned) else { continue };
            let behind = keys::successor(&keys::earlier_of(self.number(), &id));
            ids.push(id);
            cursor.seek(&behind);
        }
        let next = ids.last().map(|id| keys::successor(&keys::earlier_of(self.number(), id)));
        Ok((ids, next))
    }

    fn thin_out_some(&self, ids: &[String]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        if self.is_held() {
            return Ok(());
        }
        let (mut batch, mut header, mut pins) = (Batch::for_removing(), writer.header.clone(), Vec::new());
        let (number, limits) = (self.number(), (self.history(), self.now_ms()));
        for id in ids.iter().filter(|id| writer.pending(id).is_none()) {
            let key = keys::head(number, id);
            let Some(stored) = self.store().get(Family::Point, &key)? else { continue };
            let mut head =
                Head::decode(&stored).ok_or_else(|| DatabaseError::damaged("revision tree", id))?;
            let before_bytes = head.stored_bytes;
            let Some(passed) = self.thin_out(&mut head, id, &mut batch, limits)? else { continue };
            let contents = self.contents_of_document(id, &head)?;
            head.contents.retain(|digest| contents.contains(digest));
            for digest in passed.iter().filter(|digest| !contents.contains(*digest)) {
                pins.push(self.context.contents.pin(digest));
                batch.delete(Family::Point, &keys::reference(digest, number, id));
                batch.put(Family::Point, &keys::collectable(digest), &[]);
            }
            let others_bytes = head.stored_bytes.saturating_sub(stored.len() as u64);
            let record = head.encode_counting(others_bytes);
            header.stored_bytes = header.stored_bytes.saturating_sub(before_bytes) + head.stored_bytes;
            batch.put(Family::Point, &key, &record);
        }
        if batch.is_empty() {
            return Ok(());
        }
        header.change_number += 1;
        let change_number = header.change_number;
        batch.put(Family::Meta, &keys::header(number), &header.encode());
        let before = std::mem::replace(&mut writer.header, header);
        let submitted = self.submit(&writer, batch, pins, |_| {});
        // Held until it is stored: anyone who comes next must build on what is left.
        submitted.inspect_err(|_| writer.header = before)?.wait()?;
        writer.forget_what_was_read_before(change_number);
        Ok(())
    }
}

impl Subject<'_> {
    /// Takes what is kept no longer out of a head and, with the batch, out of the store, where nobody edits the document
    /// meanwhile. The contents of the bodies that go; `None` if nothing changes.
    fn thin_out(
        &self,
        head: &mut Head,
        id: &str,
        batch: &mut Batch,
        (limits, now_ms): (HistoryLimits, u64),
    ) -> Result<Option<Vec<Digest>>> {
        let number = self.number();
        let mut gone = Vec::new();
        for body in let_go(&mut head.earlier, &head.tree, limits, now_ms) {
            match is_kept(self.store(), number, id, &body)? {
                true => head.earlier.push(body),
                false => gone.push(body),
            }
        }
        head.earlier.sort_by_key(|body| body.superseded_ms);
        if gone.is_empty() {
            return Ok(None);
        }
        for body in &gone {
            batch.delete(Family::Scan, &body.key(number, id));
            head.stored_bytes = head.stored_bytes.saturating_sub(body.stored_bytes);
        }
        Ok(Some(gone.into_iter().flat_map(|body| body.contents).collect()))
    }
}
