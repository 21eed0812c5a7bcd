//! What each database uses of the server: reads, writes, disk, and memory for the trees of its indexes.

use std::sync::{Arc, Weak};

use scrinium_store::{Direction, Family, KeyRange, Purpose, Usage};

use crate::database::Database;
use crate::databases::{Databases, number_of};
use crate::error::{DatabaseError, Result};
use crate::header::Header;
use crate::keys;

/// The trees of all indexes together may hold this part of the budget, before those that were not read for longest go.
const TREES_PART: u64 = 4;

/// What a database has read and written since the server was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseActivity {
    /// Its name.
    pub name: String,
    /// The number that its keys begin with.
    pub number: u32,
    /// What was read and written.
    pub usage: Usage,
}

/// How much a database takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseSpace {
    /// Documents that are there.
    pub document_count: u64,
    /// Bytes on disk, about, without contents that are shared and what is derived.
    pub file_bytes: u64,
    /// Bytes on disk of its indexes, about.
    pub derived_bytes: u64,
    /// Memory of the trees of its indexes that are open, in bytes, about.
    pub view_tree_bytes: u64,
}

impl Databases {
    /// What all databases have read and written, in the order of their names. Reads one small record for each.
    ///
    /// # Errors
    /// What the store reports.
    pub fn activity(&self) -> Result<Vec<DatabaseActivity>> {
        let from = keys::database_by_name("");
        let to = keys::successor(&from);
        let snapshot = self.store().snapshot();
        let mut cursor =
            snapshot.cursor(Family::Meta, KeyRange { from: &from, to: Some(&to) }, Direction::Forward);
        let mut all = Vec::new();
        while let Some((key, value)) = cursor.next()? {
            if let (Some(name), Some(number)) = (keys::name_of(key), number_of(value)) {
                all.push(DatabaseActivity {
                    name: name.to_owned(),
                    number,
                    usage: self.store().usage(number),
                });
            }
        }
        Ok(all)
    }

    /// How much a database takes. It need not be open, and is not opened.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if it is gone, and what the store reports.
    pub fn space_of(&self, database: &DatabaseActivity) -> Result<DatabaseSpace> {
        let store = self.store();
        let header = store.get(Family::Meta, &keys::header(database.number))?;
        let header = header.ok_or_else(DatabaseError::no_database)?;
        let header =
            Header::decode(&header).ok_or_else(|| DatabaseError::damaged("header", &database.name))?;
        let (from, to) = keys::database_range(database.number);
        let size =
            |families: [Family; 3]| families.iter().map(|family| store.size_of(*family, &from, &to)).sum();
        let open = self.opened().get(&database.name).and_then(Weak::upgrade);
        Ok(DatabaseSpace {
            document_count: header.document_count,
            file_bytes: size([Family::Point, Family::Scan, Family::Churn]),
            derived_bytes: size([Family::DerivedPoint, Family::DerivedScan, Family::DerivedChurn]),
            view_tree_bytes: open.map_or(0, |open| open.view_tree_bytes()),
        })
    }

    /// Whether [`Self::release_view_trees`] has something to do.
    #[must_use]
    pub fn holds_too_many_trees(&self) -> bool {
        self.store().reserved(Purpose::ViewTrees) > self.store().budget() / TREES_PART
    }

    /// Closes databases that nobody uses just now and whose indexes were not read for longest, until the trees of all
    /// indexes hold three quarters of what they may. They are opened again when they are needed. Returns how many there
    /// were.
    pub fn release_view_trees(&self) -> usize {
        let may_hold = self.store().budget() / TREES_PART;
        let mut idle: Vec<(i64, String)> = self
            .idle()
            .iter()
            .filter(|(_, database)| database.view_tree_bytes() > 0)
            .map(|(name, database)| (database.views.last_read_s(), name))
            .collect();
        idle.sort_unstable();
        let mut released = 0;
        for (_, name) in idle {
            if self.store().reserved(Purpose::ViewTrees) <= may_hold / 4 * 3 {
                break;
            }
            // Whoever has it open goes on with it, and with its trees.
            released +=
                usize::from(self.idle().remove(&name).is_some_and(|(_, database)| is_last(&database)));
        }
        released
    }
}

/// Whether nobody else holds it.
fn is_last(database: &Arc<Database>) -> bool {
    Arc::strong_count(database) == 1
}

impl Database {
    /// Memory of the trees of its indexes that are open, in bytes, about.
    #[must_use]
    pub fn view_tree_bytes(&self) -> u64 {
        self.views.tree_bytes()
    }
}
