//! Databases of which the store has damaged files: they are refused as a whole, rather than served with holes, until
//! the store's tree is rewritten or restored.

use scrinium_store::{Family, Store};

use crate::error::{DatabaseError, Result};

/// Which databases have keys in damaged files.
#[derive(Default)]
pub struct Damage {
    /// The first and the last number of a database in each file, and the file's name.
    files: Vec<(u32, u32, String)>,
}

impl Damage {
    /// What the store knows of its files.
    #[must_use]
    pub fn of(store: &Store) -> Self {
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

    /// Whether a database may be served.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] for a database that may have keys in a damaged file.
    pub fn check(&self, number: u32, name: &str) -> Result<()> {
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
