//! What becomes of a candidate: whether it is a result, and what is answered of it.

use std::sync::Arc;

use scrinium_database::leaf::Leaf;
use scrinium_database::read::Renderer;
use scrinium_database::{Access, DatabaseError, ReadOptions, Result, keys};
use scrinium_document::json::{JsonText, stored_value};
use scrinium_mango::{Bookmark, IndexDefinition, Plan, Projection, Query, Selector};
use scrinium_store::{Family, Snapshot};
use serde_json::Value;

use super::ExecutionStatistics;
use super::document::QueriedDocument;
use super::walk::{Candidate, IndexWalk};
use crate::entries::StoredEntry;
use crate::open::OpenDatabase;

pub(super) struct Examiner {
    database: OpenDatabase,
    plan: Plan,
    /// What is checked of a document.
    selector: Selector,
    fields: Projection,
    options: ReadOptions,
    access: Access,
    /// Documents are read from here.
    snapshot: Snapshot,
    skip: u64,
    left: u64,
    /// The documents count as read by several servers.
    quorum: bool,
    /// The index that is read has conflicts in its keys, so that what is checked may ask for them.
    reads_conflicts: bool,
    bookmark: Option<Bookmark>,
    statistics: ExecutionStatistics,
}

impl Examiner {
    pub(super) fn new(
        database: &OpenDatabase,
        (query, access): (&Query, &Access),
        plan: Plan,
        selector: Selector,
        snapshot: Snapshot,
    ) -> Self {
        let has_conflicts = |index: &Arc<IndexDefinition>| {
            let mut names = index.fields().iter().filter_map(|field| field.path.names().first());
            names.any(|name| matches!(name.as_str(), "_conflicts" | "_deleted_conflicts"))
        };
        let reads_conflicts = plan.index().is_some_and(has_conflicts);
        Self {
            database: database.clone(),
            reads_conflicts,
            plan,
            selector,
            fields: query.fields.clone(),
            options: ReadOptions { conflicts: query.conflicts, ..ReadOptions::default() },
            access: access.clone(),
            snapshot,
            skip: query.skip,
            left: query.limit,
            quorum: query.read_quorum > 1,
            bookmark: query.bookmark.clone(),
            statistics: ExecutionStatistics::default(),
        }
    }

    /// Where every entry is a result, those that are left out need not be looked at.
    pub(super) fn skip_by_counting(&mut self, walk: &mut IndexWalk) {
        if self.selector.is_empty() {
            walk.skip(std::mem::take(&mut self.skip));
        }
    }

    /// All results that are asked for have been given.
    pub(super) const fn has_all(&self) -> bool {
        self.left == 0
    }

    pub(super) fn bookmark(&self) -> String {
        Bookmark::encode_or_nil(self.bookmark.as_ref())
    }

    pub(super) fn warning(&self) -> Option<String> {
        let statistics = &self.statistics;
        let examined = statistics.documents_examined + statistics.quorum_documents_examined;
        self.plan.warning(examined, statistics.results_returned)
    }

    pub(super) const fn statistics(&self) -> ExecutionStatistics {
        self.statistics
    }

    /// What is answered, if it is a result.
    pub(super) fn examine(&mut self, candidate: &Candidate<'_>) -> Result<Option<JsonText>> {
        match *candidate {
            Candidate::Record { id, record } => {
                let result = self.examine_sound(id, record)?;
                let key = || Ok(vec![Value::from(id)]);
                self.given(result, id, key)
            }
            Candidate::Hit { id, record, page } => {
                let result = self.examine_sound(id, record)?;
                self.given(result, id, || Ok(vec![page.map_or(Value::Null, Value::from)]))
            }
            Candidate::Entry { id, entry } => {
                self.statistics.keys_examined += 1;
                let result = if self.plan.covering {
                    self.examine_entry(id, &key_of(id, entry)?)
                } else {
                    let snapshot = self.snapshot.clone();
                    // It may have been deleted since.
                    match snapshot.get(Family::Scan, &keys::winner(self.database.number(), id))? {
                        Some(record) => self.examine_sound(id, &record)?,
                        None => None,
                    }
                };
                self.given(result, id, || key_of(id, entry))
            }
        }
    }

    /// The entry says all that is needed.
    fn examine_entry(&mut self, id: &str, key: &[Value]) -> Option<JsonText> {
        let document = self.plan.document_from_key(id, key);
        self.selector.matches(&document).then(|| JsonText::from(&self.fields.project(&document)))
    }

    /// A document that cannot be read is no result.
    fn examine_sound(&mut self, id: &str, record: &[u8]) -> Result<Option<JsonText>> {
        let database = self.database.clone();
        let examined = self.examine_document(id, record);
        Ok(database.pass_over(id, examined)?.flatten())
    }

    fn examine_document(&mut self, id: &str, record: &[u8]) -> Result<Option<JsonText>> {
        let access = &self.access;
        let leaf = access.readable(&self.database, id, Leaf::decode(id, record)?)?;
        let Some(leaf) = leaf.filter(|leaf| !leaf.deleted) else { return Ok(None) };
        if self.plan.index().is_none() {
            self.statistics.keys_examined += 1;
        }
        match self.quorum {
            true => self.statistics.quorum_documents_examined += 1,
            false => self.statistics.documents_examined += 1,
        }
        let head = if self.options.conflicts { self.database.head(&self.snapshot, id)? } else { None };
        let head = head.as_ref().map(|head| access.readable_head(&self.database, &self.snapshot, id, head));
        let head = head.transpose()?;
        let asked = self.reads_conflicts.then_some((&self.snapshot, access));
        let document = QueriedDocument::new(&self.database, leaf, head.as_ref(), asked)?;
        let matches = self.selector.matches(&document);
        document.check()?;
        if !matches || self.skip > 0 {
            // What is left out need not be written.
            return Ok(matches.then(JsonText::default));
        }
        if self.fields == Projection::All {
            let renderer = Renderer::new(&self.database, &self.options);
            return Ok(Some(renderer.render(&leaf, head.as_ref())?.json));
        }
        let projected = JsonText::from(&self.fields.project(&document));
        document.check()?;
        Ok(Some(projected))
    }

    /// A result is left out or counted, and the next page begins behind it.
    fn given(
        &mut self,
        result: Option<JsonText>,
        id: &str,
        key: impl FnOnce() -> Result<Vec<Value>>,
    ) -> Result<Option<JsonText>> {
        if result.is_some() && self.skip > 0 {
            self.skip -= 1;
            return Ok(None);
        }
        if result.is_some() {
            self.left -= 1;
            self.statistics.results_returned += 1;
            self.bookmark = Some(Bookmark { key: key()?, id: id.to_owned() });
        }
        Ok(result)
    }
}

/// The values of an entry's key.
fn key_of(id: &str, entry: &StoredEntry<'_>) -> Result<Vec<Value>> {
    let values = entry
        .columns
        .iter()
        .map(|json| stored_value(json).ok_or_else(|| DatabaseError::damaged("entry of an index", id)));
    values.collect()
}
