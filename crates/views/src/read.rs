//! Reading a view: ranges of entries, keys, and totals of categories.

mod categories;
mod groups;
mod linked;
mod range;
mod totals;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scrinium_database::rows::bytes_of;
use scrinium_database::{Access, DatabaseError, ReadOptions, Result, Row, RowQuery, RowSource, Rows};
use scrinium_index::Entry;
use scrinium_store::{Direction, Snapshot};

use crate::collection::Collection;
use crate::definition::Definition;
use crate::entries::StoredEntry;
use crate::group::View;
use crate::open::OpenDatabase;
use categories::{Categories, wanted_categories};
use groups::{Held, end_of_group, given_of_group};
use range::{Begin, KeyColumns, Range, begin, ranges};
use totals::{Totals, wanted_totals};

/// Entries of a view, or totals of its categories, on their way to a reader.
pub(crate) struct ViewRows {
    database: OpenDatabase,
    definition: Arc<Definition>,
    collection: Collection,
    /// What is left to read, in this order.
    ranges: std::collections::VecDeque<Range>,
    direction: Direction,
    skip: u64,
    left: u64,
    /// Rows are read at once until they hold this.
    piece_bytes: usize,
    /// The entry given last, if it is to be told where the next page begins.
    last: Option<Vec<u8>>,
    tell_next: bool,
    /// Documents are read from here, if they are wanted.
    documents: Option<Documents>,
    totals: Option<Totals>,
    /// Categories are rows too.
    categories: Option<Arc<Categories>>,
    /// Backward in the view of a map function: entries of the current group, the next one last.
    held: Vec<Held>,
    /// This many of the first group were given by an earlier page, or are left out.
    given_of_first: u64,
}

/// How the documents of rows are read.
struct Documents {
    snapshot: Snapshot,
    options: ReadOptions,
    access: Access,
}

/// The rows of a view that a query asks for and `access` lets be read.
pub(super) fn rows(
    (database, access): (&OpenDatabase, &Access),
    view: &View,
    query: &RowQuery,
) -> Result<Rows> {
    let collection = Collection::open(view, access)?;
    let columns = KeyColumns::of(&view.definition);
    let totals = wanted_totals(view, query, &columns)?;
    let categories = wanted_categories(view, query, &columns)?;
    let mut ranges = ranges(query, &columns, view.definition.responses.is_some())?;
    let mut given_of_first = 0;
    match begin(database, view, &collection, query, &columns)? {
        // A page may end within the entries that a document has under one key.
        Some(Begin::Below(key)) if query.from.is_some() && view.definition.script().is_some() => {
            given_of_first = given_of_group(&collection, &key)?;
            let place = Begin::Below(end_of_group(&key));
            ranges.iter_mut().for_each(|range| place.cut(range));
        }
        Some(place) => ranges.iter_mut().for_each(|range| place.cut(range)),
        None => {}
    }
    let direction = if query.descending { Direction::Backward } else { Direction::Forward };
    let counts = match collection.counts_at_once() {
        true => Some(counts(&collection, &ranges, query)?),
        false => None,
    };
    let documents = query.include_documents.then(|| Documents {
        snapshot: database.store().snapshot(),
        options: query.read_options(),
        access: access.clone(),
    });
    let reduced = totals.is_some();
    // What the entries hold, which may be less than what the index has reached meanwhile.
    let reached = collection.reached();
    let mut rows = ViewRows {
        database: database.clone(),
        definition: Arc::clone(&view.definition),
        collection,
        ranges: ranges.into(),
        direction,
        skip: query.skip,
        left: query.limit.unwrap_or(u64::MAX),
        piece_bytes: query.piece_bytes.unwrap_or(usize::MAX),
        last: None,
        tell_next: query.next_page,
        documents,
        totals,
        categories: None,
        held: Vec::new(),
        given_of_first,
    };
    let counts = match categories {
        None => counts,
        Some(categories) => {
            let offset = rows.begin_with_categories(categories, query.at.is_some())?;
            counts.map(|(total_rows, _)| total_rows).zip(offset)
        }
    };
    let mut rows = Rows::of_source(Box::new(rows), counts, reduced);
    if query.update_sequence {
        rows.update_sequence = Some(database.sequence_text(reached));
    }
    Ok(rows)
}

/// How many rows there are in all, and how many before the first.
fn counts(collection: &Collection, ranges: &[Range], query: &RowQuery) -> Result<(u64, u64)> {
    let total_rows = collection.len()?;
    let offset = match (ranges, query.descending) {
        ([(from, _)], false) => collection.position(from)? + query.skip,
        ([(_, to)], true) => total_rows.saturating_sub(collection.position(to)?) + query.skip,
        _ => query.skip,
    };
    Ok((total_rows, offset.min(total_rows)))
}

impl RowSource for ViewRows {
    fn next_rows(&mut self, max_rows: usize) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        while self.left > 0 && rows.len() < max_rows && bytes_of(&rows) < self.piece_bytes {
            let Some((from, to)) = self.ranges.pop_front() else { break };
            if from >= to && self.held.is_empty() {
                continue;
            }
            let is_backward = self.direction == Direction::Backward;
            match (&self.categories, &self.totals) {
                (Some(_), _) => self.take_categories((from, to), max_rows, &mut rows)?,
                (None, Some(_)) => self.take_totals(from, to, &mut rows)?,
                (None, None) if is_backward && self.definition.script().is_some() => {
                    self.take_groups((from, to), max_rows, &mut rows)?;
                }
                (None, None) => self.take_entries(from, to, max_rows, &mut rows)?,
            }
        }
        Ok(rows)
    }

    /// Where the next page begins, if the limit ended this one and there are entries behind it.
    fn next_page(&self) -> Result<Option<String>> {
        let Some(last) = &self.last else { return Ok(None) };
        if !self.held.is_empty() {
            return Ok(Some(URL_SAFE_NO_PAD.encode(last)));
        }
        for (from, to) in &self.ranges {
            let (from, to) = match self.direction {
                Direction::Forward => ([last, &[0][..]].concat().max(from.clone()), to.clone()),
                Direction::Backward => (from.clone(), last.clone().min(to.clone())),
            };
            let is_more = match &self.categories {
                Some(categories) => self.has_more(categories, (from, to))?,
                None => from < to && self.collection.count_range(&from, &to)? > 0,
            };
            if is_more {
                return Ok(Some(URL_SAFE_NO_PAD.encode(last)));
            }
        }
        Ok(None)
    }
}

impl ViewRows {
    fn take_entries(
        &mut self,
        from: Vec<u8>,
        to: Vec<u8>,
        max_rows: usize,
        rows: &mut Vec<Row>,
    ) -> Result<()> {
        let collection = self.collection.clone();
        if self.skip > 0 {
            let count = collection.count_range(&from, &to)?;
            if self.skip >= count {
                self.skip -= count;
                return Ok(());
            }
        }
        let mut cursor = collection.cursor(&from, &to, self.direction, self.skip)?;
        self.skip = 0;
        let mut bytes = bytes_of(rows);
        while self.left > 0 && rows.len() < max_rows {
            let Some(entry) = cursor.next()? else { return Ok(()) };
            let key = entry.key;
            let row = self.row(&self.stored(&entry)?)?;
            bytes += row.bytes();
            rows.push(row);
            self.left -= 1;
            if self.left == 0 && self.tell_next {
                self.last = Some(key.to_vec());
            }
            if self.left == 0 || rows.len() == max_rows || bytes >= self.piece_bytes {
                let rest = match self.direction {
                    Direction::Forward => ([key, &[0]].concat(), to),
                    Direction::Backward => (from, key.to_vec()),
                };
                self.ranges.push_front(rest);
                return Ok(());
            }
        }
        Ok(())
    }

    fn damaged(&self) -> DatabaseError {
        DatabaseError::damaged("entry of a view", self.database.name())
    }

    fn stored<'a>(&self, entry: &Entry<'a>) -> Result<StoredEntry<'a>> {
        StoredEntry::of(&self.definition, entry).ok_or_else(|| self.damaged())
    }

    fn row(&self, entry: &StoredEntry<'_>) -> Result<Row> {
        let id = entry.id().ok_or_else(|| self.damaged())?;
        let value = self.definition.value_json(&entry.columns);
        let document = self.document_of(id, &value)?;
        Ok(Row {
            id: Some(id.to_owned()),
            key: entry.key_json(&self.definition),
            level: entry.level(),
            value: Some(value),
            document,
            ..Row::default()
        })
    }
}
