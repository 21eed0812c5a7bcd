//! What each database uses of the server: reads, writes, disk, and memory for the trees of its indexes.

use std::sync::Arc;

use scrinium_database::context::StoreContext;
use scrinium_database::header::Header;
use scrinium_database::{DatabaseError, Result, keys, size_in};
use scrinium_store::{Family, Purpose, Usage};
use scrinium_views::OpenDatabase;

use crate::databases::Databases;
use crate::volumes::Entry;

/// The trees of all indexes together may hold this part of the budget, before those that were not read for longest go.
const TREES_PART: u64 = 4;

/// What a database has read and written since the server was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseActivity {
    /// Its name.
    pub name: String,
    /// The number that its keys begin with.
    pub number: u32,
    /// The volume that it lies on.
    pub volume: String,
    /// What was read and written; nothing while the volume is not there.
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
        let mut all = Vec::new();
        let contexts = self.contexts();
        self.each_entry(|name, Entry { number, volume }| {
            let context = contexts.iter().find(|context| context.volume == volume);
            let usage = context.map(|context| context.store.admin().usage(number)).unwrap_or_default();
            all.push(DatabaseActivity { name: name.to_owned(), number, volume, usage });
        })?;
        Ok(all)
    }

    /// How much a database takes. It need not be open, and is not opened.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if it is gone, and what the store reports.
    pub fn space_of(&self, database: &DatabaseActivity) -> Result<DatabaseSpace> {
        let context = self.context_of(&database.volume)?;
        let store = &context.store;
        let header = store.get(Family::Meta, &keys::header(database.number))?;
        let header = header.ok_or_else(DatabaseError::no_database)?;
        let header =
            Header::decode(&header).ok_or_else(|| DatabaseError::damaged("header", &database.name))?;
        let open = self.opened().find(&database.name);
        Ok(DatabaseSpace {
            document_count: header.document_count,
            file_bytes: size_in(store, database.number, keys::FAMILIES),
            derived_bytes: size_in(store, database.number, keys::DERIVED_FAMILIES),
            view_tree_bytes: open.map_or(0, |open| open.view_tree_bytes()),
        })
    }

    /// Whether [`Self::release_view_trees`] has something to do.
    #[must_use]
    pub fn holds_too_many_trees(&self) -> bool {
        self.contexts().iter().any(|context| trees_over(context, 1, 1))
    }

    /// Closes databases that nobody uses just now and whose indexes were not read for longest, until the trees of all
    /// indexes of a volume hold three quarters of what they may. They are opened again when they are needed. Returns how
    /// many there were.
    pub fn release_view_trees(&self) -> usize {
        let mut idle: Vec<(i64, String, Arc<StoreContext>)> = self
            .opened()
            .idle()
            .iter()
            .filter(|(_, database)| database.view_tree_bytes() > 0)
            .map(|(name, database)| (database.views_last_read_s(), name, Arc::clone(&database.context)))
            .collect();
        idle.sort_unstable_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        let full: Vec<String> = self
            .contexts()
            .iter()
            .filter(|context| trees_over(context, 1, 1))
            .map(|context| context.volume.clone())
            .collect();
        let mut released = 0;
        for (_, name, context) in idle {
            if !full.contains(&context.volume) || !trees_over(&context, 3, 4) {
                continue;
            }
            // Anyone who has it open keeps it, and its trees.
            released += usize::from(
                self.opened().idle().remove(&name).is_some_and(|(_, database)| is_last(&database)),
            );
        }
        released
    }
}

/// Whether the trees of a store's indexes hold more than this many parts of what they may.
fn trees_over(context: &StoreContext, parts: u64, of: u64) -> bool {
    context.store.admin().reserved(Purpose::ViewTrees)
        > context.store.admin().budget() / TREES_PART / of * parts
}

/// Whether nobody else holds it.
fn is_last(database: &OpenDatabase) -> bool {
    Arc::strong_count(database.database()) == 1
}
