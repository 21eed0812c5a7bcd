//! The sorted collection of a folder: a view whose selection is what people have put there.

use std::sync::Arc;

use scrinium_database::folder::members::FolderPlaces;
use scrinium_database::folder::name::folded;
use scrinium_database::folder::record::FolderRecord;
use scrinium_database::folder::{columns_of, record_at};
use scrinium_database::{Access, Freshness, Result, RowQuery, Rows};

use crate::counts::Waiting;
use crate::group::{Group, View};
use crate::open::OpenDatabase;
use crate::policy::Policies;
use crate::waiting::{Patience, Reading};
use crate::{design, read, registry};

impl OpenDatabase {
    /// Rows of a folder, in the order of its columns, each with its [`scrinium_database::FolderPlace`], for a person with
    /// this access.
    ///
    /// # Errors
    /// [`scrinium_database::DatabaseError::NotFound`], parameters that contradict each other, and what the store reports.
    #[allow(clippy::needless_pass_by_value, reason = "used up by reading, as for the other rows")]
    pub fn folder_rows(
        &self,
        name: &str,
        query: RowQuery,
        (person, access): (Option<&str>, &Access),
    ) -> Result<Rows> {
        self.folder_or_wait(name, &query, (person, access), Patience::Here)?.ready()
    }

    /// As [`folder_rows`](Self::folder_rows) for a reader who waits without a thread. `reached` is what
    /// [`ViewUpdate::done`](crate::ViewUpdate::done) gave, for one who has waited.
    ///
    /// # Errors
    /// As [`folder_rows`](Self::folder_rows), and [`scrinium_database::DatabaseError::Busy`] if too many wait.
    pub fn begin_folder_rows(
        &self,
        name: &str,
        query: &RowQuery,
        (person, access): (Option<&str>, &Access),
        reached: Option<u64>,
    ) -> Result<Reading<Rows>> {
        self.folder_or_wait(name, query, (person, access), Patience::Elsewhere(reached))
    }

    fn folder_or_wait(
        &self,
        name: &str,
        query: &RowQuery,
        (person, access): (Option<&str>, &Access),
        patience: Patience,
    ) -> Result<Reading<Rows>> {
        self.check_there()?;
        let record = record_at(&self.store().snapshot(), self.number(), name)?;
        let group = self.folder_group(&record)?;
        let view = group.views.first().ok_or_else(|| scrinium_database::folder::missing_folder(name))?;
        let was_discarded = view.index.usage.is_discarded();
        let _reading = view.index.usage.begin();
        let update = match query.freshness {
            Freshness::Usual | Freshness::UpToDate => self.update_views_for(&group, view, patience)?,
            _ if was_discarded => self.update_views_for(&group, view, patience)?,
            Freshness::AsItStands => None,
            Freshness::UpToDateSoon => {
                self.views.wanted_folders.lock().insert(record.name.clone());
                self.announce();
                None
            }
        };
        if let Some(update) = update {
            return Ok(Reading::Behind(update));
        }
        group.begin_order(self, view, query)?;
        let mut rows = read::rows((self, access), view, query)?;
        if !rows.reduced {
            rows.tell_places(FolderPlaces {
                database: Arc::clone(self.database()),
                snapshot: self.store().snapshot(),
                folder: record.number,
                person: person.map(Arc::from),
            });
        }
        Ok(Reading::Ready(rows))
    }

    /// Brings a folder's collection up to date.
    ///
    /// # Errors
    /// [`scrinium_database::DatabaseError::NotFound`], and what the store reports.
    pub fn update_folder(&self, name: &str) -> Result<()> {
        let record = record_at(&self.store().snapshot(), self.number(), name)?;
        let group = self.folder_group(&record)?;
        self.update_chosen(&group, Waiting::Nobody, |_| true)
    }

    /// Brings all folders up to date, or the one of this name; `rebuild` builds them again. Returns how many there were.
    pub(super) fn update_all_folders(&self, name: Option<&str>, rebuild: bool) -> Result<usize> {
        let mut found = 0;
        for folder in self.folders(None)? {
            if name.is_none_or(|name| folded(name) == folded(&folder.name)) {
                let record = record_at(&self.store().snapshot(), self.number(), &folder.name)?;
                let group = self.folder_group(&record)?;
                if rebuild {
                    self.rebuild_views(group.views.iter().collect())?;
                }
                self.update_chosen(&group, Waiting::Nobody, |_| true)?;
                found += 1;
            }
        }
        Ok(found)
    }

    /// Folders that a reader wanted brought up to date soon (`update=lazy`); forgotten with this call.
    #[must_use]
    pub fn take_wanted_folders(&self) -> Vec<String> {
        self.views.wanted_folders.lock().drain().collect()
    }

    /// The collection of a folder with the columns that it has now.
    /// The collection of the folder of this name.
    pub(super) fn group_of_folder(&self, name: &str) -> Result<Arc<Group>> {
        self.folder_group(&record_at(&self.store().snapshot(), self.number(), name)?)
    }

    fn folder_group(&self, record: &FolderRecord) -> Result<Arc<Group>> {
        if let Some((columns, group)) = self.views.folders.lock().get(&record.number)
            && *columns == record.columns
        {
            return Ok(Arc::clone(group));
        }
        let definition = design::of_folder(&record.name, record.number, &columns_of(record)?)?;
        let index = registry::index(self, &definition)?;
        let view = View { definition: Arc::new(definition), index, folder: Some(record.number) };
        let group = Arc::new(Group::new(vec![view], Vec::new(), Policies::default(), None));
        let known = (record.columns.clone(), Arc::clone(&group));
        self.views.folders.lock().insert(record.number, known);
        Ok(group)
    }

    /// The indexes that folders have.
    pub(super) fn folder_identities(&self) -> Result<Vec<[u8; 16]>> {
        let folders = self.folders(None)?;
        // What is known of those that are gone need not be kept.
        self.views.folders.lock().retain(|number, _| folders.iter().any(|folder| folder.number == *number));
        let identity = |folder: &scrinium_database::FolderInfo| {
            let definition = design::of_folder(&folder.name, folder.number, &folder.columns)?;
            Ok(registry::stored_identity(&definition.identity, self.context.collation))
        };
        folders.iter().map(identity).collect()
    }
}
