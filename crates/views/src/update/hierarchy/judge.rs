//! What a view with responses makes of a document by itself, before it is known where its parent is.

use std::collections::BTreeSet;

use scrinium_assertion::never;
use scrinium_database::access::digest::NameDigest;
use scrinium_database::access::readable::ReadableLeaf;
use scrinium_database::access::readers::digests_of;
use scrinium_database::leaf::Leaf;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_formula::{Environment, Responses};
use scrinium_store::{Family, Snapshot};
use serde_json::Value;

use crate::definition::{Definition, Source};
use crate::document::Document;
use crate::evaluate::{exploded, mark_uncategorized, values};
use crate::hierarchy::record::{Placed, Record};
use crate::hierarchy::{Hierarchy, columns_of, main_entry, tail_of};
use crate::open::OpenDatabase;
use crate::update::cores;

/// This many documents are worth a thread.
const DOCUMENTS_A_THREAD: usize = 50;

/// Longer than any id.
const PARENT_BYTES_MAX: usize = 8192;

/// A document that is in the view, or would be beneath its parent.
pub(super) enum Judged {
    /// Its record, and for each entry of it the value.
    Main(Record, Vec<Vec<u8>>),
    Response(Response),
}

/// A response, wherever its parent is.
pub(super) struct Response {
    pub(super) parent: String,
    pub(super) is_selected: bool,
    pub(super) tail: Vec<u8>,
    /// What is stored of its columns.
    pub(super) columns: Vec<u8>,
    pub(super) totals: Vec<f64>,
    /// Who may read it, if not everybody.
    pub(super) readers: Option<BTreeSet<NameDigest>>,
}

/// Evaluates documents as a snapshot has them. Copies share everything.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) database: &'a OpenDatabase,
    pub(super) definition: &'a Definition,
    pub(super) hierarchy: &'a Hierarchy,
    pub(super) snapshot: &'a Snapshot,
    pub(super) environment: &'a Environment,
}

impl Judge<'_> {
    /// As [`judge`](Self::judge) for some documents, on all cores where these are many.
    pub(super) fn judge_many(&self, ids: &[&str]) -> Result<Vec<Option<Judged>>> {
        let some = ids.len().div_ceil(cores()).max(DOCUMENTS_A_THREAD);
        let judge_some = |ids: &[&str]| ids.iter().map(|id| self.judge(id)).collect::<Result<Vec<_>>>();
        if ids.len() <= some {
            return judge_some(ids);
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> = ids.chunks(some).map(|ids| scope.spawn(move || judge_some(ids))).collect();
            let mut all = Vec::with_capacity(ids.len());
            for thread in threads {
                let panicked = || DatabaseError::Internal { reason: "evaluating a view panicked".to_owned() };
                all.extend(thread.join().map_err(|_| panicked())??);
            }
            Ok(all)
        })
    }

    /// `None`: the view does not have the document, wherever its parent is.
    pub(super) fn judge(&self, id: &str) -> Result<Option<Judged>> {
        Ok(self.database.pass_over(id, self.judge_sound(id))?.flatten())
    }

    fn judge_sound(&self, id: &str) -> Result<Option<Judged>> {
        if scrinium_document::is_design(id) {
            return Ok(None);
        }
        let Some(stored) = self.snapshot.get(Family::Scan, &keys::winner(self.database.number(), id))? else {
            return Ok(None);
        };
        let leaf = Leaf::decode(id, &stored)?;
        if leaf.deleted {
            return Ok(None);
        }
        let mut judged = self.judge_document(
            id,
            &Document::new(self.database, ReadableLeaf::for_index(id, leaf))?,
            leaf.created_ms,
        )?;
        match &mut judged {
            None => {}
            Some(Judged::Main(record, _)) => record.limit(digests_of(self.database, id, &leaf)?, None),
            Some(Judged::Response(response)) => response.readers = digests_of(self.database, id, &leaf)?,
        }
        Ok(judged)
    }

    fn judge_document(&self, id: &str, document: &Document<'_>, created_ms: u64) -> Result<Option<Judged>> {
        let Source::Formulas { selection, columns } = &self.definition.source else {
            return Err(never!("a view with responses is made of formulas", "{id}").into());
        };
        // A formula that fails on a document does not select it.
        let is_selected = selection.selects(document, self.environment).unwrap_or(false);
        let row = || values(columns, document, self.environment);
        let parent = scrinium_formula::Fields::parent(document);
        let Some(parent) = parent else {
            return Ok(is_selected.then(|| self.main(id, row())));
        };
        let may_be_added = self.hierarchy.adds != Responses::None;
        if !(is_selected || may_be_added) || parent.len() > PARENT_BYTES_MAX {
            return Ok(None);
        }
        let order = match &self.hierarchy.order {
            None => Value::from(created_ms),
            Some(order) => {
                order.evaluate(document, self.environment).map_or(Value::Null, |order| order.to_json())
            }
        };
        let mut row = row();
        mark_uncategorized(self.definition, &mut row);
        let (columns, totals) = columns_of(self.definition, &row, false);
        Ok(Some(Judged::Response(Response {
            parent,
            is_selected,
            tail: tail_of(&order, id),
            columns,
            totals,
            readers: None,
        })))
    }

    fn main(&self, id: &str, row: Vec<Value>) -> Judged {
        let mut rows = exploded(self.definition, row);
        rows.iter_mut().for_each(|row| mark_uncategorized(self.definition, row));
        let entries = rows.iter().enumerate().map(|(place, row)| main_entry(self.definition, id, place, row));
        let (entries, values): (Vec<Placed>, Vec<Vec<u8>>) = entries.unzip();
        Judged::Main(Record { is_selected: true, entries, ..Record::default() }, values)
    }
}
