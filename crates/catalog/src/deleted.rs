//! Databases whose deleted messages can be had back.

use std::collections::BTreeSet;

use scrinium_database::{DatabaseError, Result, keys, read_header};
use scrinium_store::{Direction, Family, KeyRange};

use crate::databases::Databases;

impl Databases {
    /// Databases that have come to keep more deleted messages than they may, since this was asked for the last time. Some may be
    /// gone.
    #[must_use]
    pub fn take_too_much_deleted(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.first().server.too_much_deleted.lock())
    }

    /// The databases that keep deleted messages, by name. Each costs one look-up, and no others are looked at.
    ///
    /// # Errors
    /// What the stores report.
    pub fn that_keep_deleted(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for context in self.contexts() {
            let (from, to) = keys::KEEPS_DELETED_RANGE;
            let snapshot = context.store.snapshot();
            let range = KeyRange { from, to: Some(to) };
            let mut cursor = snapshot.cursor(Family::Meta, range, Direction::Forward);
            while let Some((key, _)) = cursor.next()? {
                let number = key.get(1..).and_then(|number| number.try_into().ok()).map(u32::from_be_bytes);
                let Some(number) = number else { continue };
                match read_header(&context.store, number) {
                    Ok(header) => names.push(header.name),
                    // It was dropped this moment.
                    Err(DatabaseError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}
