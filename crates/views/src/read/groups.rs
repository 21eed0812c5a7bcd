//! Reading the view of a map function backward: keys and ids fall, but the entries of one document under one key stay in
//! the order of their values, as CouchDB reads them.

use scrinium_database::keys::next;
use scrinium_database::rows::bytes_of;
use scrinium_database::{Result, Row};
use scrinium_store::Direction;

use super::ViewRows;
use super::range::Range;
use crate::collection::Collection;
use crate::entries::StoredEntry;

/// Bytes of a key behind the id, which tell apart the entries of a group.
const ORDINAL_BYTES: usize = 2;

/// An entry that waits until all of its group have been read, which are no more than one document emits.
pub(super) struct Held {
    key: Vec<u8>,
    value: Vec<u8>,
}

/// What the keys of a document's entries begin with under one key.
fn group_of(key: &[u8]) -> &[u8] {
    key.get(..key.len().saturating_sub(ORDINAL_BYTES)).unwrap_or_default()
}

/// The place behind the group of a key.
pub(super) fn end_of_group(key: &[u8]) -> Vec<u8> {
    [group_of(key), &[u8::MAX; ORDINAL_BYTES], &[0]].concat()
}

/// How many entries of its group come before the one behind `key`.
pub(super) fn given_of_group(collection: &Collection, key: &[u8]) -> Result<u64> {
    collection.count_range(group_of(key), &next(key))
}

impl ViewRows {
    /// The next rows of a range that is read backward; what is left of it comes next.
    pub(super) fn take_groups(
        &mut self,
        (from, mut to): Range,
        max_rows: usize,
        rows: &mut Vec<Row>,
    ) -> Result<()> {
        let collection = self.collection.clone();
        if self.skip > 0 && self.held.is_empty() && !self.skip_groups(&collection, &from, &mut to)? {
            return Ok(());
        }
        let mut cursor = collection.cursor(&from, &to, Direction::Backward, 0)?;
        let mut held = std::mem::take(&mut self.held);
        let mut bytes = bytes_of(rows);
        loop {
            let entry = cursor.next()?;
            let entry = entry.map(|entry| Held { key: entry.key.to_vec(), value: entry.value.to_vec() });
            let is_of_group =
                |entry: &Held| held.first().is_some_and(|first| group_of(&entry.key) == group_of(&first.key));
            if entry.as_ref().is_some_and(is_of_group) {
                held.extend(entry);
                continue;
            }
            // The last one read is the first of its group.
            while let Some(one) = held.pop() {
                if self.given_of_first > 0 {
                    self.given_of_first -= 1;
                    continue;
                }
                if self.left == 0 || rows.len() >= max_rows || bytes >= self.piece_bytes {
                    held.push(one);
                    let rest = entry.map_or_else(|| from.clone(), |entry| next(&entry.key));
                    self.ranges.push_front((from, rest));
                    self.held = held;
                    return Ok(());
                }
                let stored = StoredEntry::decode(&self.definition, &one.key, &one.value, std::iter::empty());
                let row = self.row(&stored.ok_or_else(|| self.damaged())?)?;
                bytes += row.bytes();
                rows.push(row);
                self.left -= 1;
                if self.left == 0 && self.tell_next {
                    self.last = Some(one.key);
                }
            }
            match entry {
                None => return Ok(()),
                Some(entry) => held.push(entry),
            }
        }
    }

    /// Leaves rows out by counting; of the group that the first row is in, what comes before it is left out when it is
    /// read. False: nothing is left of the range.
    fn skip_groups(&mut self, collection: &Collection, from: &[u8], to: &mut Vec<u8>) -> Result<bool> {
        let count = collection.count_range(from, to)?;
        if self.skip >= count {
            self.skip -= count;
            return Ok(false);
        }
        let mut cursor = collection.cursor(from, to, Direction::Backward, self.skip)?;
        self.skip = 0;
        let Some(entry) = cursor.next()? else { return Ok(false) };
        let end = end_of_group(entry.key).min(to.clone());
        self.given_of_first = collection.count_range(&next(entry.key), &end)?;
        *to = end;
        Ok(true)
    }
}
