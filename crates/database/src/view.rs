//! Views: design documents' formulas over all documents, kept in counted indexes.
//!
//! An index belongs to what a view *is* (its selection and columns), not to its name: views that are the
//! same share one, and a changed design document builds anew only what it changed. Indexes are derived:
//! they are not logged, know which change they have reached, and catch up from the change feed.

pub(crate) mod definition;
mod entries;
mod folder;
mod read;
mod registry;
mod update;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use scrinium_store::Family;
use serde_json::{Value, json};

use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::read::ReadOptions;
use crate::rows::{Freshness, RowQuery, Rows};
use definition::Definition;
use registry::ViewIndex;

pub(crate) use read::ViewRows;
pub(crate) use registry::drop_all;

/// What a database keeps in memory of its views.
#[derive(Default)]
pub(crate) struct Views {
    /// Grows whenever a design document changes.
    generation: AtomicU64,
    groups: Mutex<HashMap<String, (u64, Arc<Group>)>>,
    indexes: Mutex<HashMap<[u8; 16], Arc<ViewIndex>>>,
    /// By the folder's number, with the columns that it had.
    folders: Mutex<HashMap<u32, (String, Arc<Group>)>>,
    /// Design documents whose views a reader wants brought up to date soon.
    wanted: Mutex<HashSet<String>>,
    /// Folders, in the same way.
    wanted_folders: Mutex<HashSet<String>>,
}

/// The views of one design document, or the collection of one folder.
pub(crate) struct Group {
    pub(crate) views: Vec<View>,
    /// The folder's number; its collection is of what is in it.
    pub(crate) folder: Option<u32>,
}

/// A view and its index.
pub(crate) struct View {
    pub(crate) definition: Definition,
    pub(crate) index: Arc<ViewIndex>,
}

impl Views {
    /// A design document changed: what is known of them is read again.
    pub(crate) fn design_changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

impl Group {
    fn view(&self, name: &str) -> Option<&View> {
        self.views.iter().find(|view| view.definition.name == name)
    }
}

impl Database {
    /// Rows of a view.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] (`missing_named_view`), parameters that contradict each other, and what
    /// the store reports.
    #[allow(clippy::needless_pass_by_value, reason = "used up by reading, as for the other rows")]
    pub fn view(self: &Arc<Self>, design: &str, view: &str, query: RowQuery) -> Result<Rows> {
        self.check_there()?;
        let group = self.view_group(design)?;
        let view = group
            .view(view)
            .ok_or_else(|| DatabaseError::NotFound { reason: "missing_named_view".to_owned() })?;
        match query.freshness {
            Freshness::UpToDate => self.update_views(&group)?,
            Freshness::AsItStands => {}
            Freshness::UpToDateSoon => drop(self.views.wanted.lock().insert(design.to_owned())),
        }
        read::rows(self, view, &query)
    }

    /// `_design/x/_info`: how large the indexes are and what they have reached.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn view_info(self: &Arc<Self>, design: &str) -> Result<Value> {
        self.check_there()?;
        let group = self.view_group(design)?;
        let last = self.visible_change_number();
        let reached = group.views.iter().map(|view| view.index.reached()).min().unwrap_or(last);
        let size: u64 = group.views.iter().map(|view| view.index.size_bytes(self.store())).sum();
        let entries: u64 = group.views.iter().map(|view| view.index.len()).sum();
        let updating = group.views.iter().any(|view| view.index.is_updating());
        Ok(json!({
            "name": design,
            "view_index": {
                "language": "formula",
                "signature": signature(&group),
                "update_seq": reached,
                "pending_changes": last.saturating_sub(reached),
                "updater_running": updating,
                "compact_running": false,
                "waiting_commit": false,
                "waiting_clients": 0,
                "purge_seq": 0,
                "entries": entries,
                "sizes": {"file": size, "active": size, "external": size},
            }
        }))
    }

    /// Brings the views of a design document up to date.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn update_view_group(self: &Arc<Self>, design: &str) -> Result<()> {
        let group = self.view_group(design)?;
        self.update_views(&group)
    }

    /// Design documents whose views a reader wanted brought up to date soon (`update=lazy`); forgotten
    /// with this call.
    #[must_use]
    pub fn take_wanted_views(&self) -> Vec<String> {
        self.views.wanted.lock().drain().collect()
    }

    /// Removes indexes that no design document has a view for.
    ///
    /// # Errors
    /// What the store reports.
    pub fn clean_up_views(self: &Arc<Self>) -> Result<usize> {
        self.check_there()?;
        let mut used = HashSet::new();
        for design in self.design_names()? {
            used.extend(self.view_group(&design)?.views.iter().map(|view| view.definition.identity));
        }
        used.extend(self.folder_identities()?);
        registry::drop_unused(self, &used)
    }

    fn design_names(self: &Arc<Self>) -> Result<Vec<String>> {
        let mut rows = self.design_documents(RowQuery::default())?;
        let mut names = Vec::new();
        loop {
            let some = rows.next_rows(100)?;
            if some.is_empty() {
                return Ok(names);
            }
            let ids = some.into_iter().filter_map(|row| row.id);
            names.extend(ids.map(|id| id.trim_start_matches(scrinium_document::DESIGN_PREFIX).to_owned()));
        }
    }

    /// The views of a design document as it is now.
    fn view_group(self: &Arc<Self>, design: &str) -> Result<Arc<Group>> {
        let generation = self.views.generation.load(Ordering::Acquire);
        if let Some((of, group)) = self.views.groups.lock().get(design)
            && *of == generation
        {
            return Ok(Arc::clone(group));
        }
        let id = format!("{}{design}", scrinium_document::DESIGN_PREFIX);
        let document = match self.read(&id, &ReadOptions::default()) {
            Ok(document) => document,
            Err(error) => {
                self.views.groups.lock().remove(design);
                return Err(error);
            }
        };
        let parsed: Value = serde_json::from_str(&document.json)
            .map_err(|_| DatabaseError::damaged("design document", &id))?;
        let views = definition::parse(&parsed)?
            .into_iter()
            .map(|definition| {
                let index = registry::index(self, &definition)?;
                Ok(View { definition, index })
            })
            .collect::<Result<Vec<View>>>()?;
        let group = Arc::new(Group { views, folder: None });
        self.views.groups.lock().insert(design.to_owned(), (generation, Arc::clone(&group)));
        Ok(group)
    }

    /// Approximate bytes of everything derived from this database's documents.
    #[must_use]
    pub fn derived_bytes(&self) -> u64 {
        let (from, to) = crate::keys::database_range(self.number());
        [Family::DerivedPoint, Family::DerivedScan, Family::DerivedChurn]
            .iter()
            .map(|family| self.store().size_of(*family, &from, &to))
            .sum()
    }
}

fn signature(group: &Group) -> String {
    let mut hasher = blake3::Hasher::new();
    group.views.iter().for_each(|view| {
        hasher.update(&view.definition.identity);
    });
    hasher.finalize().to_hex().chars().take(32).collect()
}
