//! Legal holds of all databases.

use scrinium_database::hold::decode_holds;
use scrinium_database::{DatabaseError, LegalHold, Result, keys, read_header};
use scrinium_store::{Direction, Family, KeyRange};

use crate::databases::Databases;

impl Databases {
    /// The databases that are under legal hold, by name, with their holds. Each hold costs two look-ups, and nothing else.
    ///
    /// # Errors
    /// What the stores report.
    pub fn legal_holds(&self) -> Result<Vec<(String, Vec<LegalHold>)>> {
        let mut held = Vec::new();
        for context in self.contexts() {
            let (from, to) = keys::LEGAL_HOLDS_RANGE;
            let snapshot = context.store.snapshot();
            let range = KeyRange { from, to: Some(to) };
            let mut cursor = snapshot.cursor(Family::Meta, range, Direction::Forward);
            while let Some((key, stored)) = cursor.next()? {
                let number = key.get(1..).and_then(|number| number.try_into().ok()).map(u32::from_be_bytes);
                let Some(number) = number else { continue };
                match read_header(&context.store, number) {
                    Ok(header) => held.push((header.name.clone(), decode_holds(stored, &header.name)?)),
                    // It was dropped this moment.
                    Err(DatabaseError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        held.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(held)
    }
}
