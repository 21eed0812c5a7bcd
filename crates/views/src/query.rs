//! Mango queries: an index or the documents are read as the plan says, what remains is checked, and what is asked for
//! is answered.
//!
//! A query reads from one snapshot. Where that has later changes than the index has followed, the whole selector is
//! held against each document instead of what the index leaves to be checked, so that none is answered that does
//! not match as it is.

mod design;
mod document;
mod examine;
mod walk;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use scrinium_database::{Access, DatabaseError, Result};
use scrinium_document::json::JsonText;
use scrinium_fulltext::Sort;
use scrinium_mango::{
    Bookmark, Direction, IndexDefinition, MangoError, Plan, Query, Reading, SortField, explain, plan,
};
use serde_json::{Value, json};

use crate::collection::Collection;
use crate::error::{OrDatabaseError as _, refused_query};
use crate::group::{MangoIndexes, View};
use crate::open::OpenDatabase;
use crate::waiting::{Patience, Reading as ViewReading};
use examine::Examiner;
pub(crate) use walk::Candidate;
use walk::{DocumentWalk, IndexWalk, Walk};

/// So often a query is planned again when design documents change meanwhile.
const PLANS: usize = 10;

/// What was read for a query, as CouchDB's `execution_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExecutionStatistics {
    /// Entries of the index, or documents in the order of their ids. What was skipped by counting is not among them.
    pub keys_examined: u64,
    /// Documents.
    pub documents_examined: u64,
    /// Documents, where the query asks for more than one server's answer (`r`).
    pub quorum_documents_examined: u64,
    /// Results.
    pub results_returned: u64,
    /// Time since the query began, in milliseconds.
    pub execution_time_ms: f64,
}

/// Results on their way to a reader, in bounded memory.
pub struct Find {
    walk: Walk,
    examiner: Examiner,
    begun: Instant,
    at_end: bool,
    /// Results are read at once until they hold this.
    piece_bytes: usize,
}

impl OpenDatabase {
    /// The Mango indexes of the database, by design document and name; none of those that somebody may not read. Cheap while no
    /// design document changes.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn mango_indexes(&self, access: &Access) -> Result<Arc<[Arc<IndexDefinition>]>> {
        self.check_there()?;
        Ok(self.mango_indexes_of_generation(access)?.1)
    }

    /// How a query of somebody would be answered: `_explain`.
    ///
    /// # Errors
    /// As [`scrinium_mango::explain`], and what the store reports.
    pub fn explain(&self, query: &Query, access: &Access) -> Result<Value> {
        explain(self.name(), query, &self.mango_indexes(access)?).or_database_error()
    }

    /// Begins to answer a query of somebody with this access. An index that is to be read is brought up to date first, unless the query says no.
    ///
    /// # Errors
    /// As [`scrinium_mango::plan`], a bookmark that belongs to another index, and what the store reports.
    pub fn find(&self, query: &Query, access: &Access) -> Result<Find> {
        self.find_or_wait((query, access), Patience::Here)?.ready()
    }

    /// As [`find`](Self::find) for one who waits without a thread. `reached` is what
    /// [`ViewUpdate::done`](crate::ViewUpdate::done) gave, for one who has waited.
    ///
    /// # Errors
    /// As [`find`](Self::find), and [`DatabaseError::Busy`] if too many wait.
    pub fn begin_find(
        &self,
        query: &Query,
        access: &Access,
        reached: Option<u64>,
    ) -> Result<ViewReading<Find>> {
        self.find_or_wait((query, access), Patience::Elsewhere(reached))
    }

    fn find_or_wait(&self, asked: Asked<'_>, patience: Patience) -> Result<ViewReading<Find>> {
        self.check_there()?;
        let begun = Instant::now();
        for _ in 0..PLANS {
            let (generation, indexes) = self.mango_indexes_of_generation(asked.1)?;
            let found = self.find_in(asked, &indexes, begun, patience);
            // The index may be another, or gone, where a design document has changed since it was chosen.
            if self.design_generation() == generation {
                return found;
            }
        }
        let reason = "The indexes of the database keep changing; try again later.".to_owned();
        Err(DatabaseError::Unavailable { reason })
    }

    fn find_in(
        &self,
        (query, access): Asked<'_>,
        indexes: &MangoIndexes,
        begun: Instant,
        patience: Patience,
    ) -> Result<ViewReading<Find>> {
        if let Some(text) = &query.text {
            return self.find_text((query, access), text, begun, patience);
        }
        let plan = plan(query, indexes).or_database_error()?;
        let Some(definition) = plan.index() else {
            return self.find_in_documents((query, access), plan, begun).map(ViewReading::Ready);
        };
        let (design, name) = (definition.design().to_owned(), definition.name().to_owned());
        let design = design.strip_prefix(scrinium_document::DESIGN_PREFIX).unwrap_or(&design);
        let group = self.view_group(design)?;
        let view = group.view(&name).ok_or_else(DatabaseError::missing)?;
        let was_discarded = view.index.usage.is_discarded();
        let _reading = view.index.usage.begin();
        if (query.update || was_discarded)
            && let Some(update) = self.update_views_for(&group, view, patience)?
        {
            return Ok(ViewReading::Behind(update));
        }
        self.find_in_index((query, access), plan, view, begun).map(ViewReading::Ready)
    }

    fn find_in_documents(&self, (query, access): Asked<'_>, plan: Plan, begun: Instant) -> Result<Find> {
        let snapshot = self.store().snapshot();
        let ranges = match &plan.reading {
            Reading::Documents { ranges } => ranges.as_slice(),
            Reading::Index { .. } => &[],
        };
        let mut walk = DocumentWalk::new(self, snapshot.clone(), ranges, plan.direction);
        if let Some(bookmark) = &query.bookmark {
            if bookmark.key != [Value::from(bookmark.id.as_str())] {
                return Err(foreign(bookmark));
            }
            walk.go_behind(&bookmark.id);
        }
        let selector = plan.residual.clone();
        let examiner = Examiner::new(self, (query, access), plan, selector, snapshot);
        Ok(Find {
            walk: Walk::Documents(walk),
            examiner,
            begun,
            at_end: query.limit == 0,
            piece_bytes: usize::MAX,
        })
    }

    /// Documents that words find; the rest of the selector is checked of each.
    fn find_text(
        &self,
        (query, access): Asked<'_>,
        text: &str,
        begun: Instant,
        patience: Patience,
    ) -> Result<ViewReading<Find>> {
        let place = match &query.bookmark {
            None => None,
            Some(bookmark) => match bookmark.key.as_slice() {
                [Value::Null] => Some((None, bookmark.id.clone())),
                [Value::String(page)] => Some((Some(page.clone()), bookmark.id.clone())),
                _ => return Err(foreign(bookmark)),
            },
        };
        let by_field = |field: &SortField| Sort::Field {
            name: field.path.text().to_owned(),
            is_descending: field.direction == Direction::Descending,
        };
        let sort = if query.sort.is_empty() {
            vec![Sort::Relevance]
        } else {
            query.sort.iter().map(by_field).collect()
        };
        let (walk, snapshot) =
            match self.begin_text_walk(text, sort, place, access, (query.update, patience))? {
                ViewReading::Ready(ready) => ready,
                ViewReading::Behind(update) => return Ok(ViewReading::Behind(update)),
            };
        let plan = Plan::of_documents(query);
        let selector = plan.residual.clone();
        let examiner = Examiner::new(self, (query, access), plan, selector, snapshot);
        Ok(ViewReading::Ready(Find {
            walk: Walk::Text(Box::new(walk)),
            examiner,
            begun,
            at_end: query.limit == 0,
            piece_bytes: usize::MAX,
        }))
    }

    fn find_in_index(
        &self,
        (query, access): Asked<'_>,
        plan: Plan,
        view: &View,
        begun: Instant,
    ) -> Result<Find> {
        let ranges = match &plan.reading {
            Reading::Index { ranges, .. } => ranges.as_slice(),
            Reading::Documents { .. } => &[],
        };
        let collection = Collection::open(view, access)?;
        let reached = collection.reached();
        let mut walk = IndexWalk::new(self, &view.definition, collection, ranges, plan.direction);
        if let Some(bookmark) = &query.bookmark {
            if bookmark.key.len() != view.definition.columns.len() {
                return Err(foreign(bookmark));
            }
            walk.go_behind(&bookmark.key, &bookmark.id);
        }
        let snapshot = self.store().snapshot();
        let is_exact = plan.covering || self.last_change(&snapshot)? <= reached;
        let selector = if is_exact { plan.residual.clone() } else { query.selector.clone() };
        let mut examiner = Examiner::new(self, (query, access), plan, selector, snapshot);
        if is_exact {
            examiner.skip_by_counting(&mut walk);
        }
        Ok(Find {
            walk: Walk::Index(Box::new(walk)),
            examiner,
            begun,
            at_end: query.limit == 0,
            piece_bytes: usize::MAX,
        })
    }
}

/// A query, and what the one who asks may read.
type Asked<'a> = (&'a Query, &'a Access);

/// A bookmark of another index, or of no index.
fn foreign(bookmark: &Bookmark) -> DatabaseError {
    refused_query(MangoError::InvalidBookmark(json!(bookmark.encode()).to_string()))
}

impl Find {
    /// From now on results are read at once until they hold this many bytes, however many are asked for.
    pub const fn limit_pieces(&mut self, bytes: usize) {
        self.piece_bytes = bytes;
    }

    /// The next results as JSON, at most `max_documents`, after a look at `max_examined` entries or documents at
    /// most. There may be none although more are to come: [`is_at_end`](Self::is_at_end) tells.
    ///
    /// # Errors
    /// A document or a field of it that cannot be read, and what the store reports.
    pub fn next(&mut self, max_documents: usize, max_examined: usize) -> Result<Vec<JsonText>> {
        let mut results = Vec::new();
        if self.at_end {
            return Ok(results);
        }
        let (examiner, mut examined, mut bytes) = (&mut self.examiner, 0, 0);
        let walked = self.walk.go_on(&mut |candidate| {
            examined += 1;
            if let Some(result) = examiner.examine(candidate)? {
                bytes += result.len();
                results.push(result);
            }
            let enough = results.len() >= max_documents
                || bytes >= self.piece_bytes
                || examined >= max_examined
                || examiner.has_all();
            Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        self.at_end = walked.is_continue() || self.examiner.has_all();
        Ok(results)
    }

    /// Whether there are no more results.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// Where the next page begins: behind the last result so far; the bookmark of the query if there is none.
    #[must_use]
    pub fn bookmark(&self) -> String {
        self.examiner.bookmark()
    }

    /// What a client learns about an index that is missing, was not used, or serves badly.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.examiner.warning()
    }

    /// What was read so far.
    #[must_use]
    pub fn execution_stats(&self) -> ExecutionStatistics {
        let execution_time_ms = self.begun.elapsed().as_secs_f64() * 1000.0;
        ExecutionStatistics { execution_time_ms, ..self.examiner.statistics() }
    }
}
