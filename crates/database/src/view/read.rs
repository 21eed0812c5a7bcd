//! Reading a view: ranges of entries, keys, and totals of categories.

use std::sync::Arc;

use scrinium_index::{Entry, Reader};
use scrinium_store::{Direction, Snapshot};
use serde_json::{Map, Value, json};

use super::View;
use super::definition::Sort;
use super::entries::{END_OF_KEY, StoredEntry, write_component};
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::read::ReadOptions;
use crate::rows::{Row, RowQuery, Rows};

/// A range of an index: from the first key up to, not including, the second.
type Range = (Vec<u8>, Vec<u8>);

/// Entries of a view, or totals of its categories, on their way to a reader.
pub(crate) struct ViewRows {
    database: Arc<Database>,
    reader: Reader,
    /// What is left to read, in this order.
    ranges: std::collections::VecDeque<Range>,
    direction: Direction,
    skip: u64,
    left: u64,
    /// Documents are read from here, if they are wanted.
    documents: Option<(Snapshot, ReadOptions)>,
    totals: Option<Totals>,
}

/// How totals are taken.
struct Totals {
    titles: Vec<String>,
    /// So many elements of the key make a category; 0: one total of everything.
    level: usize,
}

/// The rows of a view that a query asks for.
pub(super) fn rows(database: &Arc<Database>, view: &View, query: &RowQuery) -> Result<Rows> {
    let reader = view.index.index.reader()?;
    let sorts: Vec<Sort> = view.definition.sorted().map(|(_, sort)| sort).collect();
    let totals = wanted_totals(view, query, sorts.len())?;
    let ranges = ranges(query, &sorts);
    let direction = if query.descending { Direction::Backward } else { Direction::Forward };
    let total_rows = reader.len();
    let offset = match (ranges.as_slice(), direction) {
        ([(from, _)], Direction::Forward) => reader.position(from)? + query.skip,
        ([(_, to)], Direction::Backward) => total_rows - reader.position(to)? + query.skip,
        _ => query.skip,
    };
    let documents = query.include_documents.then(|| (database.store().snapshot(), query.read_options()));
    let reduced = totals.is_some();
    let rows = ViewRows {
        database: Arc::clone(database),
        reader,
        ranges: ranges.into(),
        direction,
        skip: query.skip,
        left: query.limit.unwrap_or(u64::MAX),
        documents,
        totals,
    };
    let mut rows = Rows::of_view(rows, total_rows, offset.min(total_rows), reduced);
    if query.update_sequence {
        rows.update_sequence = Some(database.sequence_text(view.index.reached()));
    }
    Ok(rows)
}

/// A formula view gives rows unless totals are asked for, by `reduce`, `group` or `group_level`.
fn wanted_totals(view: &View, query: &RowQuery, sorted: usize) -> Result<Option<Totals>> {
    let grouped = query.group || query.group_level.is_some();
    if query.reduce == Some(false) && grouped || query.reduce.is_none() && !grouped {
        return Ok(None);
    }
    if query.reduce == Some(false) {
        return Ok(None);
    }
    if query.include_documents {
        return Err(DatabaseError::BadRequest {
            error: "query_parse_error",
            reason: "`include_docs` is invalid for reduce".to_owned(),
        });
    }
    let level = match query.group_level {
        Some(level) => usize::try_from(level).unwrap_or(usize::MAX).min(sorted),
        None if query.group || query.keys.is_some() => sorted,
        None => 0,
    };
    Ok(Some(Totals { titles: view.definition.totals().map(|column| column.title.clone()).collect(), level }))
}

/// The ranges that a query asks for, in the order in which they are read.
fn ranges(query: &RowQuery, sorts: &[Sort]) -> Vec<Range> {
    if let Some(keys) = &query.keys {
        let keys = keys.iter().map(|key| {
            let start = key_prefix(key, sorts);
            let mut end = start.clone();
            end.push(END_OF_KEY + 1);
            (start, end)
        });
        return if query.descending { keys.rev().collect() } else { keys.collect() };
    }
    let (low, low_id, high, high_id) = if query.descending {
        (&query.end_key, &query.end_id, &query.start_key, &query.start_id)
    } else {
        (&query.start_key, &query.start_id, &query.end_key, &query.end_id)
    };
    let low_inclusive = !query.descending || query.inclusive_end;
    let high_inclusive = query.descending || query.inclusive_end;
    let from = match low {
        None => Vec::new(),
        Some(key) => edge(key_prefix(key, sorts), low_id.as_deref(), !low_inclusive),
    };
    // All entries are below this: no sort key, inverted or not, begins with it.
    let to = match high {
        None => vec![u8::MAX],
        Some(key) => edge(key_prefix(key, sorts), high_id.as_deref(), high_inclusive),
    };
    vec![(from, to)]
}

/// What the entries of a key begin with. An array is a key of several columns; anything else is the
/// first column's.
fn key_prefix(key: &Value, sorts: &[Sort]) -> Vec<u8> {
    let elements = match key {
        Value::Array(elements) => elements.as_slice(),
        single => std::slice::from_ref(single),
    };
    let mut prefix = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        write_component(&mut prefix, element, sorts.get(index).copied().unwrap_or(Sort::Ascending));
    }
    prefix
}

/// The place before a key's entries, or behind them; with an id, before or behind that document's.
fn edge(mut prefix: Vec<u8>, id: Option<&str>, behind: bool) -> Vec<u8> {
    match (id, behind) {
        (None, false) => {}
        (None, true) => prefix.push(END_OF_KEY + 1),
        (Some(id), behind) => {
            prefix.push(END_OF_KEY);
            prefix.extend_from_slice(id.as_bytes());
            if behind {
                // The number behind the id is at most this.
                prefix.extend_from_slice(&[u8::MAX; 2]);
                prefix.push(0);
            }
        }
    }
    prefix
}

impl ViewRows {
    /// The next rows, at most `max_rows`; none at the end.
    pub(crate) fn next_rows(&mut self, max_rows: usize) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        while rows.len() < max_rows && self.left > 0 {
            let Some((from, to)) = self.ranges.pop_front() else { break };
            if from >= to {
                continue;
            }
            match self.totals {
                Some(_) => self.take_totals(from, to, &mut rows)?,
                None => self.take_entries(from, to, max_rows, &mut rows)?,
            }
        }
        Ok(rows)
    }

    fn take_entries(
        &mut self,
        from: Vec<u8>,
        to: Vec<u8>,
        max_rows: usize,
        rows: &mut Vec<Row>,
    ) -> Result<()> {
        let reader = self.reader.clone();
        if self.skip > 0 {
            let count = reader.count_range(&from, Some(&to))?;
            if self.skip >= count {
                self.skip -= count;
                return Ok(());
            }
        }
        let mut cursor = reader.cursor(&from, Some(&to), self.direction, self.skip)?;
        self.skip = 0;
        while self.left > 0 && rows.len() < max_rows {
            let Some(Entry { key, value, .. }) = cursor.next()? else { return Ok(()) };
            rows.push(self.row(key, value)?);
            self.left -= 1;
            if rows.len() == max_rows {
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

    fn row(&self, key: &[u8], value: &[u8]) -> Result<Row> {
        let damaged = || DatabaseError::damaged("entry of a view", self.database.name());
        let entry = StoredEntry::decode(key, value).ok_or_else(damaged)?;
        let id = entry.id().ok_or_else(damaged)?;
        let document = match &self.documents {
            None => None,
            Some((snapshot, options)) => {
                let found = self.database.read_at(snapshot, id, options)?;
                Some(found.map_or_else(|| "null".to_owned(), |document| document.json))
            }
        };
        Ok(Row {
            id: Some(id.to_owned()),
            key: entry.key_json.to_owned(),
            value: Some(entry.value_json.to_owned()),
            document,
            ..Row::default()
        })
    }

    /// One row of totals, and the rest of the range back to where it came from.
    fn take_totals(&mut self, from: Vec<u8>, to: Vec<u8>, rows: &mut Vec<Row>) -> Result<()> {
        let Some(totals) = &self.totals else { return Ok(()) };
        let reader = self.reader.clone();
        let mut cursor = reader.cursor(&from, Some(&to), self.direction, 0)?;
        let Some(Entry { key, value, .. }) = cursor.next()? else { return Ok(()) };
        let damaged = || DatabaseError::damaged("entry of a view", self.database.name());
        let entry = StoredEntry::decode(key, value).ok_or_else(damaged)?;
        let category = entry.category(totals.level).ok_or_else(damaged)?.to_vec();
        let (first, last) = if totals.level == 0 {
            (from.clone(), to.clone())
        } else {
            (category.clone().max(from.clone()), keys::successor(&category).min(to.clone()))
        };
        let row = Row {
            key: category_key(entry.key_json, totals.level).ok_or_else(damaged)?,
            value: Some(totals_of(&reader, &totals.titles, &first, &last)?),
            ..Row::default()
        };
        match self.direction {
            Direction::Forward => self.ranges.push_front((last, to)),
            Direction::Backward => self.ranges.push_front((from, first)),
        }
        if self.skip > 0 {
            self.skip -= 1;
        } else {
            self.left -= 1;
            rows.push(row);
        }
        Ok(())
    }
}

/// The key of a category: `null` for all, else the first elements of an entry's key.
fn category_key(key_json: &str, level: usize) -> Option<String> {
    if level == 0 {
        return Some("null".to_owned());
    }
    let Ok(Value::Array(mut elements)) = serde_json::from_str(key_json) else { return None };
    elements.truncate(level);
    Some(Value::Array(elements).to_string())
}

fn totals_of(reader: &Reader, titles: &[String], from: &[u8], to: &[u8]) -> Result<String> {
    let count = reader.count_range(from, Some(to))?;
    let sums = reader.sums_range(from, Some(to))?;
    let sums: Map<String, Value> =
        titles.iter().zip(sums.iter()).map(|(title, sum)| (title.clone(), json!(sum))).collect();
    Ok(json!({"count": count, "totals": sums}).to_string())
}
