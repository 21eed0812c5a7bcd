//! Views that answer for those that are not built yet: what a view was before its design document changed, or before
//! the collation did.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | number `FFFFFFFF` `s` length of design (4 bytes) design view | JSON: what the view was when it was last built |
//!
//! The record is a design document of that view alone, with the collation of its index. It is written when the view is
//! built, and so replaced when the next one is: until then the index before is not cleaned away, and a server that is
//! started again in the middle of the build has it answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use scrinium_database::head::Head;
use scrinium_database::{Collation, DatabaseError, ReadOptions, Result, RowQuery, keys};
use scrinium_document::Revision;
use scrinium_document::json::stored_value;
use scrinium_store::{Batch, Direction, Family, KeyRange};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::definition::{Definition, Source};
use crate::group::{Group, View};
use crate::open::OpenDatabase;
use crate::policy::Policies;
use crate::resort::Resorted;
use crate::{design, registry, update};

const NO_INDEX: u32 = u32::MAX;

/// What a view was when it was last built.
#[derive(PartialEq, Serialize, Deserialize)]
struct LastBuilt {
    collation: Collation,
    /// Of its design document.
    revision: String,
    design: Value,
}

impl LastBuilt {
    fn of(view: &View, revision: &str, design: &Value) -> Option<Self> {
        let design = alone(design, &view.definition.name)?;
        // The design document may have changed since the view was made of it.
        let definition = design::parse_stored(&design).ok()?.pop()?;
        let is_same = definition.identity == view.definition.identity;
        is_same.then_some(Self { collation: view.index.collation, revision: revision.to_owned(), design })
    }

    fn definition(&self) -> Option<Definition> {
        design::parse_stored(&self.design).ok()?.pop()
    }
}

/// A design document of one of its views.
fn alone(design: &Value, view: &str) -> Option<Value> {
    let views = design.get("views")?;
    let mut kept = serde_json::Map::new();
    if let Some(library) = views.get("lib").filter(|library| library.get("map").is_none()) {
        kept.insert("lib".to_owned(), library.clone());
    }
    kept.insert(view.to_owned(), views.get(view)?.clone());
    let member = |name: &str| design.get(name).cloned().unwrap_or(Value::Null);
    let mut alone = json!({"_id": member("_id"), "views": kept});
    for name in ["language", "options"] {
        if let (Some(value), Some(members)) = (design.get(name), alone.as_object_mut()) {
            members.insert(name.to_owned(), value.clone());
        }
    }
    Some(alone)
}

fn key(database: u32, design: &str, view: &str) -> Vec<u8> {
    let length = u32::try_from(design.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&prefix(database)[..], &length, design.as_bytes(), view.as_bytes()].concat()
}

fn prefix(database: u32) -> Vec<u8> {
    [&database.to_be_bytes()[..], &NO_INDEX.to_be_bytes(), b"s"].concat()
}

/// The design document and the view in a key.
fn names(key: &[u8]) -> Option<(String, String)> {
    let rest = key.get(prefix(0).len()..)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (design, view) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some((String::from_utf8(design.to_vec()).ok()?, String::from_utf8(view.to_vec()).ok()?))
}

impl OpenDatabase {
    /// Whether building a view takes so long that readers should not wait for it.
    fn is_large(&self) -> bool {
        self.visible_change_number() > update::BUILD_FROM_CHANGES
    }

    /// What can answer for those of `views` that are not built, if that takes long.
    pub(super) fn stand_in(
        &self,
        design: &str,
        views: &[View],
        policies: &Policies,
    ) -> Result<Option<Arc<Group>>> {
        let is_missing = |view: &&View| !view.is_built() && is_kept(view);
        if !self.is_large() || !views.iter().any(|view| is_missing(&view)) {
            return Ok(None);
        }
        let lineage = self.lineage(design)?;
        let mut standing = Vec::new();
        for view in views.iter().filter(is_missing) {
            standing.extend(self.stored_before(design, view, &lineage)?);
        }
        if standing.is_empty() {
            return Ok(None);
        }
        let resorted = Resorted::all(self, &standing)?;
        Ok(Some(Arc::new(Group::new(standing, resorted, policies.clone(), None))))
    }

    /// The revisions of a design document as it is, back to when it was made: not those before it was deleted and made
    /// again, the views of which were others.
    fn lineage(&self, design: &str) -> Result<HashSet<String>> {
        let id = format!("{}{design}", scrinium_document::DESIGN_PREFIX);
        let stored = self.store().get(Family::Point, &keys::head(self.number(), &id))?;
        let Some(stored) = stored else { return Ok(HashSet::new()) };
        let tree = Head::decode(&stored).ok_or_else(|| DatabaseError::damaged("document", &id))?.tree;
        let path = tree.winner().and_then(|winner| tree.path(winner.revision)).unwrap_or_default();
        let is_there = |revision: &&Revision| tree.revision(revision).is_some_and(|known| !known.deleted);
        Ok(path.iter().take_while(is_there).map(ToString::to_string).collect())
    }

    /// What the view was when it was last built, if its index is still there and its keys can be read back.
    fn stored_before(&self, design: &str, view: &View, lineage: &HashSet<String>) -> Result<Option<View>> {
        let key = key(self.number(), design, &view.definition.name);
        let Some(stored) = self.store().get(Family::DerivedPoint, &key)? else { return Ok(None) };
        // A note of another version, or that is damaged, leads to no index; the views are built as new ones are.
        let Ok(last) = serde_json::from_slice::<LastBuilt>(&stored) else { return Ok(None) };
        if last.collation.read_back != self.context.collation.read_back || !lineage.contains(&last.revision) {
            return Ok(None);
        }
        let Some(definition) = last.definition() else { return Ok(None) };
        let index = registry::stored_index(self, &definition, last.collation)?;
        let view = index.map(|index| View { definition: Arc::new(definition), index, folder: None });
        Ok(view.filter(View::is_built))
    }

    /// The views that answer for one of `now`: while it is not built, the one before it, if there is one. It is then
    /// built in the background.
    pub(super) fn answering(
        &self,
        design: &str,
        view: &str,
        query: &RowQuery,
        now: &Arc<Group>,
    ) -> Arc<Group> {
        let Some(before) = now.before.lock().clone() else { return Arc::clone(now) };
        self.want_views(design);
        let is_built = |group: &Group| group.answering(view, query).is_some_and(View::is_built);
        if !is_built(now) && is_built(&before) { before } else { Arc::clone(now) }
    }

    /// Notes which of the views are built, so that they can stand in for what they become. Costs a look at each index
    /// unless something was built since the last call.
    pub(super) fn remember(&self, design: &str, group: &Group) -> Result<()> {
        if !self.is_large() {
            return Ok(());
        }
        let is_noted = |view: &&View| view.is_built() && is_kept(view);
        if group.views.iter().filter(is_noted).count() <= group.remembered.load(Ordering::Acquire) {
            return Ok(());
        }
        let built: Vec<&View> = group.views.iter().filter(is_noted).collect();
        let id = format!("{}{design}", scrinium_document::DESIGN_PREFIX);
        let document = match self.read(&id, &ReadOptions::default(), &crate::group::access_for_designs()) {
            Ok(document) => document,
            Err(DatabaseError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let parsed =
            stored_value(&document.json).ok_or_else(|| DatabaseError::damaged("design document", &id))?;
        let mut batch = Batch::new();
        for view in &built {
            let Some(last) = LastBuilt::of(view, &document.revision, &parsed) else { continue };
            let key = key(self.number(), design, &view.definition.name);
            let stored = self.store().get(Family::DerivedPoint, &key)?;
            let stored = stored.and_then(|stored| serde_json::from_slice::<LastBuilt>(&stored).ok());
            if stored.as_ref() != Some(&last) {
                batch.put(Family::DerivedPoint, &key, json!(last).to_string().as_bytes());
            }
        }
        if !batch.is_empty() {
            self.store().derived().write(batch)?;
        }
        group.remembered.store(built.len(), Ordering::Release);
        Ok(())
    }

    /// After views of a group were built: what stood in for them does so no more once all are built, and an index of
    /// another collation is removed, which nobody will ask for again.
    pub(super) fn settle(&self, design: &str, group: &Group) -> Result<()> {
        self.remember(design, group)?;
        if !group.kept().all(|view| view.is_built() || view.index.usage.is_discarded()) {
            return Ok(());
        }
        let before = group.before.lock().take();
        let is_outdated = |view: &View| view.index.collation != self.context.collation;
        if before.is_some_and(|before| before.views.iter().any(is_outdated)) {
            self.clean_up_views()?;
        }
        Ok(())
    }

    /// Removes what is remembered of views for which `is_there` says no.
    pub(super) fn forget_views(&self, is_there: impl Fn(&str, &str) -> bool) -> Result<()> {
        let from = prefix(self.number());
        let to = keys::successor(&from);
        let snapshot = self.store().snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::DerivedPoint, range, Direction::Forward);
        let mut batch = Batch::new();
        while let Some((key, _)) = cursor.next()? {
            if !names(key).is_some_and(|(design, view)| is_there(&design, &view)) {
                batch.delete(Family::DerivedPoint, key);
            }
        }
        if batch.is_empty() { Ok(()) } else { Ok(self.store().derived().write(batch)?) }
    }
}

/// Queries wait for their index, since what another one holds would not answer them.
fn is_kept(view: &View) -> bool {
    !matches!(view.definition.source, Source::Mango(_))
}
