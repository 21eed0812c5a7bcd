//! Views: design documents' formulas over all documents, kept in counted indexes.
//!
//! An index belongs to what a view *is* (its selection and columns), not to its name: views that are the
//! same share one, and a changed design document builds anew only what it changed. Indexes are derived:
//! they are not logged, know which change they have reached, and catch up from the change feed.

pub(crate) mod definition;
pub(crate) mod design;
pub(crate) mod document;
pub(crate) mod entries;
mod evaluate;
mod read;
mod registry;
mod update;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use scrinium_mango::IndexDefinition;
use scrinium_store::Family;
use serde_json::{Value, json};

use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::read::ReadOptions;
use crate::rows::{Freshness, RowQuery, Rows};
use definition::{Definition, Source};
use registry::ViewIndex;

pub(crate) use read::ViewRows;
pub(crate) use registry::drop_all;
pub(crate) use update::default_rebuild_dir;

/// Design documents read at once; each may be of some size.
const DESIGNS_AT_ONCE: usize = 10;

/// What a database keeps in memory of its views.
#[derive(Default)]
pub(crate) struct Views {
    /// Grows whenever a design document changes.
    generation: AtomicU64,
    groups: Mutex<HashMap<String, (u64, Arc<Group>)>>,
    /// The Mango indexes of all design documents, and of which generation they are.
    mango: Mutex<Option<(u64, MangoIndexes)>>,
    indexes: Mutex<HashMap<[u8; 16], Arc<ViewIndex>>>,
    /// Design documents whose views a reader wants brought up to date soon.
    wanted: Mutex<HashSet<String>>,
}

/// Definitions that queries choose among.
pub(crate) type MangoIndexes = Arc<[Arc<IndexDefinition>]>;

/// The views of one design document.
pub(crate) struct Group {
    pub(crate) views: Vec<View>,
}

/// A view and its index.
pub(crate) struct View {
    pub(crate) definition: Arc<Definition>,
    pub(crate) index: Arc<ViewIndex>,
}

impl Views {
    /// A design document changed: what is known of them is read again.
    pub(crate) fn design_changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Changes with every design document.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The views of this design document are brought up to date soon.
    pub(crate) fn want(&self, design: &str) {
        self.wanted.lock().insert(design.to_owned());
    }
}

impl Group {
    pub(crate) fn view(&self, name: &str) -> Option<&View> {
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
            Freshness::UpToDateSoon => self.views.want(design),
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
        let is_mango = group.views.iter().any(|view| matches!(view.definition.source, Source::Mango(_)));
        Ok(json!({
            "name": design,
            "view_index": {
                "language": if is_mango { "query" } else { "formula" },
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

    /// The Mango indexes of all design documents, by design document and name, and of which generation they are.
    pub(crate) fn mango_indexes_of_generation(self: &Arc<Self>) -> Result<(u64, MangoIndexes)> {
        let generation = self.views.generation();
        if let Some((of, indexes)) = &*self.views.mango.lock()
            && *of == generation
        {
            return Ok((generation, Arc::clone(indexes)));
        }
        let mut rows = self.design_documents(RowQuery { include_documents: true, ..RowQuery::default() })?;
        let mut indexes = Vec::new();
        loop {
            let some = rows.next_rows(DESIGNS_AT_ONCE)?;
            if some.is_empty() {
                break;
            }
            for document in some.into_iter().filter_map(|row| row.document) {
                let design = serde_json::from_str(&document)
                    .map_err(|_| DatabaseError::damaged("design document", self.name()))?;
                indexes.extend(design::mango_indexes(&design));
            }
        }
        indexes.sort_by(|left, right| (left.design(), left.name()).cmp(&(right.design(), right.name())));
        let indexes: MangoIndexes = indexes.into();
        *self.views.mango.lock() = Some((generation, Arc::clone(&indexes)));
        Ok((generation, indexes))
    }

    /// The views of a design document as it is now.
    pub(crate) fn view_group(self: &Arc<Self>, design: &str) -> Result<Arc<Group>> {
        let generation = self.views.generation();
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
        let views = design::parse_stored(&parsed)?
            .into_iter()
            .map(|definition| {
                let index = registry::index(self, &definition)?;
                Ok(View { definition: Arc::new(definition), index })
            })
            .collect::<Result<Vec<View>>>()?;
        let group = Arc::new(Group { views });
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
