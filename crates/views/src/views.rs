//! Views: design documents' formulas over all documents, kept in counted indexes.
//!
//! An index belongs to what a view *is* (its selection and columns), not to its name: views that are the
//! same share one, and a changed design document builds again only what it changed. Indexes are derived:
//! they are not logged, know which change they have reached, and catch up from the change feed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use scrinium_database::access::readers::restricts;
use scrinium_database::{
    Access, DatabaseError, Freshness, ReadOptions, Result, RowQuery, Rows, keys, size_in,
};
use scrinium_document::collation::COLLATION_VERSION;
use scrinium_document::json::stored_value;
use serde_json::{Value, json};

use crate::collection::Collection;
use crate::counts::Waiting;
use crate::definition::Source;
use crate::group::{DESIGNS_AT_ONCE, Group, KnownIndexes, MangoIndexes, View, access_for_designs};
use crate::open::OpenDatabase;
use crate::policy::{Policies, UpdatePolicy};
use crate::resort::Resorted;
use crate::waiting::{Patience, Reading, ViewUpdate};
use crate::{design, failures, info, read, registry};

/// How many entries somebody sees in all views of a group; `None` where that cannot be told at once.
fn seen_entries(group: &Group, access: &Access) -> Result<Option<u64>> {
    let mut entries = 0;
    for view in &group.views {
        let collection = Collection::open(view, access)?;
        if !collection.counts_at_once() {
            return Ok(None);
        }
        entries += collection.len()?;
    }
    Ok(Some(entries))
}

impl OpenDatabase {
    /// Rows of a view.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] (`missing_named_view`), parameters that contradict each other, and what
    /// the store reports.
    #[allow(clippy::needless_pass_by_value, reason = "used up by reading, as for the other rows")]
    pub fn view(&self, design: &str, view: &str, query: RowQuery, access: &Access) -> Result<Rows> {
        self.view_or_wait((design, view), &query, access, Patience::Here)?.ready()
    }

    /// As [`view`](Self::view) for a reader who waits without a thread. `reached` is what [`ViewUpdate::done`] gave, for one
    /// who has waited.
    ///
    /// # Errors
    /// As [`view`](Self::view), and [`DatabaseError::Busy`] if too many wait.
    pub fn begin_view(
        &self,
        design: &str,
        view: &str,
        query: &RowQuery,
        access: &Access,
        reached: Option<u64>,
    ) -> Result<Reading<Rows>> {
        self.view_or_wait((design, view), query, access, Patience::Elsewhere(reached))
    }

    fn view_or_wait(
        &self,
        (design, view): (&str, &str),
        query: &RowQuery,
        access: &Access,
        patience: Patience,
    ) -> Result<Reading<Rows>> {
        self.check_there()?;
        let missing = || DatabaseError::NotFound { reason: "missing_named_view".to_owned() };
        let now = self.readable_group(design, access)?;
        now.begin_order(self, now.view(view).ok_or_else(missing)?, query)?;
        let asked = now.answering(view, query).ok_or_else(missing)?;
        let was_discarded = asked.index.usage.is_discarded();
        let _reading = asked.index.usage.begin();
        let group = match query.freshness {
            Freshness::UpToDate => Arc::clone(&now),
            _ => self.answering(design, view, query, &now),
        };
        let answering = group.answering(view, query).ok_or_else(missing)?;
        let _answering = answering.index.usage.begin();
        let update = match query.freshness {
            Freshness::Usual => self.update_as_usual(&now, &group, answering, patience)?,
            Freshness::UpToDate => self.update_views_for(&now, asked, patience)?,
            // It is not there because nobody read it for long, which now somebody does.
            _ if was_discarded => self.update_as_usual(&now, &group, answering, patience)?,
            Freshness::AsItStands => None,
            Freshness::UpToDateSoon => {
                asked.index.wanted.store(true, Ordering::Release);
                self.want_views(design);
                None
            }
        };
        if let Some(update) = update {
            return Ok(Reading::Behind(update));
        }
        if let Err(error) = self.remember(design, &now) {
            tracing::warn!(%error, view, "the list of built views could not be recorded");
        }
        Ok(Reading::Ready(read::rows((self, access), answering, query)?))
    }

    /// Brings `view` up to date in `group`, the views that answer for those of `now`, if its policy says that a read
    /// does. One that was never built is built, whatever the policy.
    fn update_as_usual(
        &self,
        now: &Group,
        group: &Group,
        view: &View,
        patience: Patience,
    ) -> Result<Option<ViewUpdate>> {
        let stands = match now.policies.get(&view.definition.name) {
            UpdatePolicy::OnRead | UpdatePolicy::Automatic => false,
            UpdatePolicy::Every(age) => view.index.is_younger_than(age),
            UpdatePolicy::Manual => true,
        };
        if stands && view.is_built() {
            return Ok(None);
        }
        // Views that are not built are left to the background where there are others to answer for them.
        let others_answer = now.before.lock().is_some();
        if others_answer {
            self.update_built_views_for(group, view, patience)
        } else {
            self.update_views_for(group, view, patience)
        }
    }

    /// `_design/x/_info`: how large the indexes are and what they have reached. What counts documents, and on which a
    /// function failed, is shown to those who see all of them.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn view_info(&self, design: &str, access: &Access) -> Result<Value> {
        self.check_there()?;
        let group = self.readable_group(design, access)?;
        let last = self.visible_change_number();
        let reached = group.views.iter().map(|view| view.index.reached()).min().unwrap_or(last);
        let pending = last.saturating_sub(reached);
        let entries = seen_entries(&group, access)?;
        let updating = group.kept().any(|view| view.index.is_updating());
        let progress = info::progress(self, &group, reached < last || updating);
        // Failures name documents, and may tell what is in them.
        let sees_all = self.shows_all(access)?;
        let mut errors = serde_json::Map::new();
        let mut log = serde_json::Map::new();
        for view in &group.views {
            let failures::Told { count, last, off } = view.index.failures.told();
            if count > 0 || off.is_some() {
                let last = sees_all.then_some(last);
                errors.insert(
                    view.definition.name.clone(),
                    json!({"count": sees_all.then_some(count), "last": last, "off": off}),
                );
            }
            let lines = if sees_all { view.index.failures.lines() } else { Vec::new() };
            if !lines.is_empty() {
                log.insert(view.definition.name.clone(), json!(lines));
            }
        }
        Ok(json!({
            "name": design,
            "view_index": {
                "language": language(&group),
                "collator_versions": [COLLATION_VERSION.to_string()],
                "signature": signature(&group),
                "update_seq": reached,
                "pending_changes": pending,
                "progress": progress.percent,
                "eta_seconds": progress.eta_s,
                "updates_pending": {"minimum": pending, "preferred": pending, "total": pending},
                "updater_running": updating,
                "compact_running": false,
                "waiting_commit": false,
                "waiting_clients": 0,
                "purge_seq": 0,
                "entries": entries,
                "errors": errors,
                "log": log,
                "sizes": if sees_all { info::sizes(self, &group)? } else { Value::Null },
            }
        }))
    }

    /// Brings the views of a design document up to date, but for those whose policy keeps them as they are.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn update_view_group(&self, design: &str) -> Result<()> {
        let group = self.view_group(design)?;
        self.update_chosen(&group, Waiting::Nobody, |view| {
            view.index.wanted.swap(false, Ordering::AcqRel) || group.follows_reads(view)
        })?;
        self.settle(design, &group)
    }

    /// Brings all views and folders up to date, or those of one name; `rebuild` builds them again from all documents,
    /// whatever their indexes hold, while readers have the old entries. Returns how many there were.
    ///
    /// # Errors
    /// What the store reports, and [`DatabaseError::Unavailable`] if the task was told to stop.
    pub fn update_all_views(&self, name: Option<&str>, rebuild: bool) -> Result<usize> {
        let mut found = 0;
        for design in self.design_names()? {
            let Some(group) = self.sound_group(&design)? else { continue };
            let is_wanted = |view: &&View| name.is_none_or(|name| name == view.definition.name);
            let views: Vec<&View> = group.kept().filter(is_wanted).collect();
            found += views.iter().filter(|view| view.definition.keys.shown.is_none()).count();
            if views.is_empty() {
                continue;
            }
            if rebuild {
                self.rebuild_views(views)?;
            }
            self.update_chosen(&group, Waiting::Nobody, |view| is_wanted(&view))?;
            self.settle(&design, &group)?;
        }
        Ok(found + self.update_all_folders(name, rebuild)? + self.update_all_texts(name, rebuild)?)
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
    pub fn clean_up_views(&self) -> Result<usize> {
        self.check_there()?;
        let (mut used, mut there) = (HashSet::new(), HashSet::new());
        let designs = self.design_names()?;
        // Nobody holds the indexes of those that are gone.
        self.views.groups.lock().retain(|design, _| designs.contains(design));
        for design in designs {
            let Some(group) = self.sound_group(&design)? else { continue };
            self.remember(&design, &group)?;
            there.extend(group.views.iter().map(|view| (design.clone(), view.definition.name.clone())));
            used.extend(group.with_before().flat_map(|group| group.identities().collect::<Vec<_>>()));
        }
        used.extend(self.folder_identities()?);
        self.forget_views(|design, view| there.contains(&(design.to_owned(), view.to_owned())))?;
        Ok(registry::drop_unused(self, &used)? + self.clean_up_texts()?)
    }

    pub(crate) fn design_names(&self) -> Result<Vec<String>> {
        let mut rows = self.design_documents(RowQuery::default(), &access_for_designs())?;
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

    /// The Mango indexes of all design documents that somebody may read, by design document and name, and of which
    /// generation they are.
    pub(crate) fn mango_indexes_of_generation(&self, access: &Access) -> Result<(u64, MangoIndexes)> {
        let (generation, KnownIndexes { indexes, restricted }) = self.known_indexes()?;
        let mut hidden = HashSet::new();
        for design in restricted.iter() {
            match self.check_design_read(design, access) {
                Err(DatabaseError::NotFound { .. }) => drop(hidden.insert(design.as_str())),
                read => read?,
            }
        }
        if hidden.is_empty() {
            return Ok((generation, indexes));
        }
        let shown = indexes.iter().filter(|index| !hidden.contains(index.design())).cloned();
        Ok((generation, shown.collect()))
    }

    fn known_indexes(&self) -> Result<(u64, KnownIndexes)> {
        let generation = self.design_generation();
        if let Some((of, known)) = &*self.views.mango.lock()
            && *of == generation
        {
            return Ok((generation, known.clone()));
        }
        let query = RowQuery { include_documents: true, ..RowQuery::default() };
        let mut rows = self.design_documents(query, &access_for_designs())?;
        let (mut indexes, mut restricted) = (Vec::new(), Vec::new());
        loop {
            let some = rows.next_rows(DESIGNS_AT_ONCE)?;
            if some.is_empty() {
                break;
            }
            for document in some.into_iter().filter_map(|row| stored_value(&row.document?)) {
                let of_design = design::mango_indexes(&document);
                let first = of_design.first().filter(|_| restricts(&document));
                restricted.extend(first.map(|index| index.design().to_owned()));
                indexes.extend(of_design);
            }
        }
        indexes.sort_by(|left, right| (left.design(), left.name()).cmp(&(right.design(), right.name())));
        let known = KnownIndexes { indexes: indexes.into(), restricted: restricted.into() };
        *self.views.mango.lock() = Some((generation, known.clone()));
        Ok((generation, known))
    }

    /// As [`view_group`](Self::view_group) where all design documents are gone through: one that is gone meanwhile, or
    /// was stored before such were refused, has no views.
    pub(crate) fn sound_group(&self, design: &str) -> Result<Option<Arc<Group>>> {
        match self.view_group(design) {
            Err(DatabaseError::NotFound { .. }) => Ok(None),
            group => self.pass_over(&format!("{}{design}", scrinium_document::DESIGN_PREFIX), group),
        }
    }

    /// The views of a design document for somebody; who may not read it finds none, as if it were not there.
    fn readable_group(&self, design: &str, access: &Access) -> Result<Arc<Group>> {
        let group = self.view_group(design)?;
        if group.is_restricted {
            self.check_design_read(&format!("{}{design}", scrinium_document::DESIGN_PREFIX), access)?;
        }
        Ok(group)
    }

    /// # Errors
    /// [`DatabaseError::NotFound`] if somebody may not read the design document.
    fn check_design_read(&self, id: &str, access: &Access) -> Result<()> {
        if access.reads_everything() {
            return Ok(());
        }
        self.read(id, &ReadOptions::default(), access).map(drop)
    }

    /// The views of a design document as it is now.
    pub(crate) fn view_group(&self, design: &str) -> Result<Arc<Group>> {
        let generation = self.design_generation();
        if let Some((of, group)) = self.views.groups.lock().get(design)
            && *of == generation
        {
            return Ok(Arc::clone(group));
        }
        let id = format!("{}{design}", scrinium_document::DESIGN_PREFIX);
        let document = match self.read(&id, &ReadOptions::default(), &access_for_designs()) {
            Ok(document) => document,
            Err(error) => {
                self.views.groups.lock().remove(design);
                return Err(error);
            }
        };
        let parsed =
            stored_value(&document.json).ok_or_else(|| DatabaseError::damaged("design document", &id))?;
        let views = design::parse_stored(&parsed)?
            .into_iter()
            .map(|definition| {
                let index = registry::index(self, &definition)?;
                Ok(View { definition: Arc::new(definition), index, folder: None })
            })
            .collect::<Result<Vec<View>>>()?;
        let policies = Policies::of(&parsed);
        let before = self.stand_in(design, &views, &policies)?;
        let resorted = Resorted::all(self, &views)?;
        let mut group = Group::new(views, resorted, policies, before);
        group.is_restricted = restricts(&parsed);
        let group = Arc::new(group);
        self.views.groups.lock().insert(design.to_owned(), (generation, Arc::clone(&group)));
        Ok(group)
    }

    /// Memory of the trees of its indexes that are open, in bytes, about.
    #[must_use]
    pub fn view_tree_bytes(&self) -> u64 {
        self.views.tree_bytes()
    }

    /// When one of its open indexes was last read, in seconds since 1970.
    #[must_use]
    pub fn views_last_read_s(&self) -> i64 {
        self.views.last_read_s()
    }

    /// Approximate bytes of everything derived from this database's documents.
    #[must_use]
    pub fn derived_bytes(&self) -> u64 {
        size_in(self.store(), self.number(), keys::DERIVED_FAMILIES)
    }
}

fn language(group: &Group) -> &'static str {
    match group.views.first().map(|view| &view.definition.source) {
        Some(Source::Formulas { .. }) => "formula",
        Some(Source::Mango(_)) => "query",
        Some(Source::Script(_)) | None => "javascript",
    }
}

fn signature(group: &Group) -> String {
    let mut hasher = blake3::Hasher::new();
    group.views.iter().for_each(|view| {
        hasher.update(&view.definition.identity);
    });
    hasher.finalize().to_hex().chars().take(32).collect()
}
