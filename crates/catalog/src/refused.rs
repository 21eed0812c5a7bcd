//! Databases that are not served.

use scrinium_database::Result;

use crate::databases::Databases;
use crate::volumes::Entry;

impl Databases {
    /// The databases that are refused, because they have records in damaged files of a store, or lie on a volume that is
    /// not there.
    ///
    /// # Errors
    /// What the store reports.
    pub fn refused(&self) -> Result<Vec<String>> {
        let contexts = self.contexts();
        let mut refused = Vec::new();
        self.each_entry(|name, Entry { number, volume }| {
            let context = contexts.iter().find(|context| context.volume == volume);
            if context.is_none_or(|context| context.damage.check(number, name).is_err()) {
                refused.push(name.to_owned());
            }
        })?;
        Ok(refused)
    }

    /// # Errors
    /// [`DatabaseError::NotFound`](scrinium_database::DatabaseError::NotFound) if there is no database of this name.
    pub fn check_name(&self, name: &str) -> Result<()> {
        self.entry(name).map(drop)
    }
}
