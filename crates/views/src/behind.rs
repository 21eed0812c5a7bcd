//! How far the slowest index of a database is: a change may be forgotten only when every index has followed it.

use scrinium_database::Result;
use scrinium_index::Index;

use crate::counts::Waiting;
use crate::error::OrDatabaseError as _;
use crate::open::OpenDatabase;
use crate::registry::{index_id, stored_indexes};
use crate::update::unfinished_build;

impl OpenDatabase {
    /// The last change that all indexes of the database have followed; `u64::MAX` if there is none that follows. An
    /// index that is empty begins with the documents as they are then, and asks for no change before.
    pub fn followed_by_all(&self) -> Result<u64> {
        let building = |index: &crate::registry::ViewIndex| index.is_updating() && index.reached() == 0;
        if self.views.indexes.lock().values().any(|index| building(index)) {
            return Ok(0);
        }
        let mut least = unfinished_build(self)?.unwrap_or(u64::MAX);
        for (_, numbers) in stored_indexes(self.store(), self.number())? {
            let id = index_id(self.number(), numbers.index);
            let reached = Index::stored_reached(self.store(), id).or_database_error()?;
            least = least.min(reached.filter(|reached| *reached > 0).unwrap_or(u64::MAX));
        }
        Ok(least)
    }

    /// Brings the views up to date that have been built, whatever their policy, so that what they have followed may be
    /// purged; no other is built, and folders are left as they are.
    ///
    /// # Errors
    /// What the store reports, and [`DatabaseError::Unavailable`](scrinium_database::DatabaseError::Unavailable) if the task was told to
    /// stop.
    pub fn update_built_views(&self) -> Result<()> {
        for design in self.design_names()? {
            let Some(group) = self.sound_group(&design)? else { continue };
            self.update_chosen(&group, Waiting::Nobody, |view| {
                view.is_built() && !view.index.usage.is_discarded()
            })?;
        }
        Ok(())
    }

    /// Empties the indexes of all views and folders but those that somebody reads or updates just now; they are built
    /// again when they are read. Returns how many there were.
    pub fn discard_views(&self) -> Result<usize> {
        let mut discarded = 0;
        for (identity, _) in stored_indexes(self.store(), self.number())? {
            if let Ok(identity) = <[u8; 16]>::try_from(identity) {
                discarded += usize::from(self.discard_index(&identity, i64::MAX)?);
            }
        }
        Ok(discarded)
    }

    /// The ranges of keys of a design document's indexes in the derived families.
    pub fn index_ranges(&self, design: &str) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let group = self.view_group(design)?;
        let ids = group.kept().map(|view| view.index.id);
        Ok(ids.map(|id| (id.to_be_bytes().to_vec(), (id + 1).to_be_bytes().to_vec())).collect())
    }
}
