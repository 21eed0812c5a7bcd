//! Databases of which the store has damaged files: they are refused as a whole, rather than served with holes, until
//! the store's tree is rewritten or restored.

use scrinium_store::{Family, Store};

use crate::databases::Databases;
use crate::error::{DatabaseError, Result};
use crate::volumes::Entry;

/// Which databases have keys in damaged files.
#[derive(Default)]
pub(crate) struct Damage {
    /// The first and the last number of a database in each file, and the file's name.
    files: Vec<(u32, u32, String)>,
}

impl Damage {
    pub(crate) fn of(store: &Store) -> Self {
        let number = |key: &[u8], otherwise| key.first_chunk().copied().map_or(otherwise, u32::from_be_bytes);
        // What is derived can be made again, and what databases share is missed only where it is read.
        let of_databases =
            |family: &Option<Family>| matches!(family, Some(Family::Point | Family::Scan | Family::Churn));
        let files = store.admin().damaged_files().iter().filter(|file| of_databases(&file.family));
        let files = files
            .map(|file| (number(&file.from, 0), number(&file.to, u32::MAX), file.name.clone()))
            .collect();
        Self { files }
    }

    /// # Errors
    /// [`DatabaseError::Unavailable`] for a database that may have keys in a damaged file.
    pub(crate) fn check(&self, number: u32, name: &str) -> Result<()> {
        let found = self.files.iter().find(|(first, last, _)| (*first..=*last).contains(&number));
        let Some((_, _, file)) = found else { return Ok(()) };
        Err(DatabaseError::Unavailable {
            reason: format!(
                "The database `{name}` is set aside: the file tree/{file} of the store, in which it has records, is \
                 damaged. Restore it from a backup, or stop the server and run `scrinium fixup --engine`, which keeps \
                 what can be read; see docs/operate/fixup.md."
            ),
        })
    }
}

impl Databases {
    /// The databases that are refused, because they have records in damaged files of a store, or lie on a volume that is
    /// not there.
    ///
    /// # Errors
    /// What the store reports.
    pub fn refused(&self) -> Result<Vec<String>> {
        let commons = self.commons();
        let mut refused = Vec::new();
        self.each_entry(|name, Entry { number, volume }| {
            let common = commons.iter().find(|common| common.volume == volume);
            if common.is_none_or(|common| common.damage.check(number, name).is_err()) {
                refused.push(name.to_owned());
            }
        })?;
        Ok(refused)
    }

    /// # Errors
    /// [`DatabaseError::NotFound`] if there is no database of this name.
    pub fn check_name(&self, name: &str) -> Result<()> {
        self.entry(name).map(drop)
    }
}
