//! Reading a view: ranges of entries, keys, and totals of categories.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scrinium_document::collation;
use scrinium_index::{Entry, Reader};
use scrinium_store::{Direction, Snapshot};
use serde_json::{Map, Value, json};

use super::View;
use super::definition::{Definition, KnownReducer, Script, Sort, Total};
use super::entries::{END_OF_KEY, StoredEntry, write_component};
use super::scripts::Reducing;
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
    definition: Arc<Definition>,
    reader: Reader,
    /// What is left to read, in this order.
    ranges: std::collections::VecDeque<Range>,
    direction: Direction,
    skip: u64,
    left: u64,
    /// The entry given last, if it is to be told where the next page begins.
    last: Option<Vec<u8>>,
    tell_next: bool,
    /// Documents are read from here, if they are wanted.
    documents: Option<(Snapshot, ReadOptions)>,
    totals: Option<Totals>,
}

/// How totals are taken.
struct Totals {
    columns: Vec<(String, Total)>,
    /// So many elements of the key make a category; 0: one total of everything.
    level: usize,
    /// The function of a JavaScript view, instead of totals of columns.
    reducer: Option<Arc<KnownReducer>>,
}

/// The rows of a view that a query asks for.
pub(super) fn rows(database: &Arc<Database>, view: &View, query: &RowQuery) -> Result<Rows> {
    let reader = view.index.index.reader()?;
    // What a map function emits is one key, also if it is an array.
    let sorts: Vec<Sort> = match view.definition.script() {
        Some(_) => Vec::new(),
        None => view.definition.sorted().map(|(_, sort)| sort).collect(),
    };
    let totals = wanted_totals(view, query, sorts.len())?;
    let mut ranges = ranges(query, &sorts);
    if let Some(place) = begin(database, view, query, &sorts)? {
        ranges.iter_mut().for_each(|range| place.cut(range));
    }
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
        definition: Arc::clone(&view.definition),
        reader,
        ranges: ranges.into(),
        direction,
        skip: query.skip,
        left: query.limit.unwrap_or(u64::MAX),
        last: None,
        tell_next: query.next_page,
        documents,
        totals,
    };
    let mut rows = Rows::of_view(rows, total_rows, offset.min(total_rows), reduced);
    if query.update_sequence {
        rows.update_sequence = Some(database.sequence_text(view.index.reached()));
    }
    Ok(rows)
}

/// Where a page begins within the ranges asked for.
enum Begin {
    /// Here or above, read forward.
    From(Vec<u8>),
    /// Below, read backward.
    Below(Vec<u8>),
}

impl Begin {
    /// Leaves of a range what lies behind.
    fn cut(&self, (from, to): &mut Range) {
        match self {
            Self::From(key) if *key > *from => from.clone_from(key),
            Self::Below(key) if *key < *to => to.clone_from(key),
            _ => {}
        }
    }

    /// Behind an entry, in the direction of reading; or at it.
    fn of_entry(mut key: Vec<u8>, query: &RowQuery, behind: bool) -> Self {
        // No key lies between this one and it with a zero behind it.
        if query.descending != behind {
            key.push(0);
        }
        if query.descending { Self::Below(key) } else { Self::From(key) }
    }
}

/// Where `find`, `at` and `from` have a page begin.
fn begin(database: &Database, view: &View, query: &RowQuery, sorts: &[Sort]) -> Result<Option<Begin>> {
    let wrong =
        |reason: &str| DatabaseError::BadRequest { error: "query_parse_error", reason: reason.to_owned() };
    match (&query.from, &query.at, &query.find) {
        (None, None, None) => Ok(None),
        (Some(token), None, None) => {
            let key =
                URL_SAFE_NO_PAD.decode(token).map_err(|_| wrong("`from` is not where a page ended."))?;
            Ok(Some(Begin::of_entry(key, query, true)))
        }
        (None, Some(id), None) => {
            let keys = view.index.entry_keys(database, &view.definition, id)?;
            let first = if query.descending { keys.into_iter().max() } else { keys.into_iter().min() };
            let missing =
                || DatabaseError::NotFound { reason: "The document is not in the view.".to_owned() };
            Ok(Some(Begin::of_entry(first.ok_or_else(missing)?, query, false)))
        }
        (None, None, Some(text)) => {
            let falls = (sorts.first() == Some(&Sort::Descending)) != query.descending;
            // Where values fall, what begins with the text lies before the text itself: from the highest such on.
            let highest = if falls { "\u{ffff}" } else { "" };
            let mut key = key_prefix(&Value::from(format!("{text}{highest}")), sorts);
            if query.descending {
                key.push(u8::MAX);
            }
            Ok(Some(if query.descending { Begin::Below(key) } else { Begin::From(key) }))
        }
        _ => Err(wrong("Only one of `find`, `at` and `from` can say where a page begins.")),
    }
}

/// A formula view gives rows unless totals are asked for, by `reduce`, `group` or `group_level`.
fn wanted_totals(view: &View, query: &RowQuery, sorted: usize) -> Result<Option<Totals>> {
    let grouped = query.group || query.group_level.is_some();
    if let Some(script) = view.definition.script() {
        return wanted_reduction(script, query, grouped);
    }
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
    let columns = view.definition.totals();
    let columns = columns.filter_map(|column| Some((column.title.clone(), column.total?))).collect();
    Ok(Some(Totals { columns, level, reducer: None }))
}

/// CouchDB's rules: a view with a reduce function is reduced unless that is declined.
fn wanted_reduction(script: &Script, query: &RowQuery, grouped: bool) -> Result<Option<Totals>> {
    let wrong =
        |reason: &str| DatabaseError::BadRequest { error: "query_parse_error", reason: reason.to_owned() };
    let Some(reducer) = &script.reducer else {
        return match query.reduce {
            Some(true) => Err(wrong("Reduce is invalid for map-only views.")),
            _ if grouped => Err(wrong("Invalid use of grouping on a map view.")),
            _ => Ok(None),
        };
    };
    if query.reduce == Some(false) {
        return if grouped { Err(wrong("Invalid use of grouping on a map view.")) } else { Ok(None) };
    }
    if query.include_documents {
        return Err(wrong("`include_docs` is invalid for reduce"));
    }
    let level = match query.group_level {
        Some(level) => usize::try_from(level).unwrap_or(usize::MAX),
        None if query.group => usize::MAX,
        None if query.keys.is_some() => {
            return Err(wrong("Multi-key fetches for reduce views must use `group=true`"));
        }
        None => 0,
    };
    Ok(Some(Totals { columns: Vec::new(), level, reducer: Some(Arc::clone(reducer)) }))
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
/// first column's. Without columns that sort, the key is one, whatever it is.
fn key_prefix(key: &Value, sorts: &[Sort]) -> Vec<u8> {
    let elements = match key {
        Value::Array(elements) if !sorts.is_empty() => elements.as_slice(),
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
            let Some(entry) = cursor.next()? else { return Ok(()) };
            let key = entry.key;
            rows.push(self.row(&entry)?);
            self.left -= 1;
            if self.left == 0 && self.tell_next {
                self.last = Some(key.to_vec());
            }
            if rows.len() == max_rows || self.left == 0 {
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

    /// Where the next page begins, if the limit ended this one and there are entries behind it.
    pub(crate) fn next_page(&self) -> Result<Option<String>> {
        let Some(last) = &self.last else { return Ok(None) };
        for (from, to) in &self.ranges {
            let (from, to) = match self.direction {
                Direction::Forward => ([last, &[0][..]].concat().max(from.clone()), to.clone()),
                Direction::Backward => (from.clone(), last.clone().min(to.clone())),
            };
            if from < to && self.reader.count_range(&from, Some(&to))? > 0 {
                return Ok(Some(URL_SAFE_NO_PAD.encode(last)));
            }
        }
        Ok(None)
    }

    fn row(&self, entry: &Entry<'_>) -> Result<Row> {
        let damaged = || DatabaseError::damaged("entry of a view", self.database.name());
        let entry = StoredEntry::of(&self.definition, entry).ok_or_else(damaged)?;
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
            key: self.definition.key_json(&entry.columns),
            value: Some(self.definition.value_json(&entry.columns)),
            document,
            ..Row::default()
        })
    }

    /// One row of totals, and the rest of the range back to where it came from.
    fn take_totals(&mut self, from: Vec<u8>, to: Vec<u8>, rows: &mut Vec<Row>) -> Result<()> {
        let Some(totals) = &self.totals else { return Ok(()) };
        let reader = self.reader.clone();
        let mut cursor = reader.cursor(&from, Some(&to), self.direction, 0)?;
        let Some(stored) = cursor.next()? else { return Ok(()) };
        let damaged = || DatabaseError::damaged("entry of a view", self.database.name());
        let entry = StoredEntry::of(&self.definition, &stored).ok_or_else(damaged)?;
        if let Some(reducer) = &totals.reducer {
            let stored = stored.key.to_vec();
            let key = self.definition.key_json(&entry.columns);
            let group = Group::of(&key, totals.level).ok_or_else(damaged)?;
            let (first, last) = match &group.range {
                None => (from.clone(), to.clone()),
                // Of keys so long that they are cut, each is a group.
                Some((first, last)) if *first > stored || *last <= stored => {
                    (stored.clone(), keys::next(&stored))
                }
                Some((first, last)) => (first.clone().max(from.clone()), last.clone().min(to.clone())),
            };
            let value = self.reduced(&reader, reducer, &first, &last)?;
            let row = Row { key: group.key, value: Some(value), ..Row::default() };
            self.give_total(row, (from, to), (first, last), rows);
            return Ok(());
        }
        let category = entry.category(totals.level).ok_or_else(damaged)?.to_vec();
        let (first, last) = if totals.level == 0 {
            (from.clone(), to.clone())
        } else {
            (category.clone().max(from.clone()), keys::successor(&category).min(to.clone()))
        };
        let parent = entry.category(totals.level.saturating_sub(1)).ok_or_else(damaged)?.to_vec();
        let above = if parent.is_empty() { vec![u8::MAX] } else { keys::successor(&parent) };
        let row = Row {
            key: category_key(&self.definition.key_json(&entry.columns), totals.level).ok_or_else(damaged)?,
            value: Some(totals.of(&reader, (&first, &last), (parent.as_slice(), &above))?),
            ..Row::default()
        };
        self.give_total(row, (from, to), (first, last), rows);
        Ok(())
    }

    /// A row of totals is given or skipped; what is left of the range comes next.
    fn give_total(&mut self, row: Row, (from, to): Range, (first, last): Range, rows: &mut Vec<Row>) {
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
    }

    /// What the reduce function makes of the entries between two keys.
    fn reduced(&self, reader: &Reader, reducer: &KnownReducer, from: &[u8], to: &[u8]) -> Result<String> {
        let mut lent = self.database.common.engines.reduce(reducer)?;
        let Some(engine) = lent.get() else { return Ok("null".to_owned()) };
        let mut reducing = Reducing { definition: &self.definition, engine };
        match reader.reduce_range(from, Some(to), &mut reducing)? {
            None => Ok("null".to_owned()),
            Some(state) => Ok(reducing.engine.finish(&String::from_utf8_lossy(&state))?),
        }
    }
}

/// A group of the keys that a map function emitted.
struct Group {
    /// Its key, as the reader sees it.
    key: String,
    /// Where it lies; `None`: everything.
    range: Option<Range>,
}

impl Group {
    /// The group of a key: all keys; all arrays that agree in so many elements; or those that are the same.
    fn of(key_json: &str, level: usize) -> Option<Self> {
        if level == 0 {
            return Some(Self { key: "null".to_owned(), range: None });
        }
        let key: Value = serde_json::from_str(key_json).ok()?;
        match key {
            Value::Array(mut elements) if elements.len() > level => {
                elements.truncate(level);
                let mut from = Vec::new();
                collation::write_array_start(&mut from);
                elements.iter().for_each(|element| collation::write_sort_key(&mut from, element));
                let to = keys::successor(&from);
                Some(Self { key: Value::Array(elements).to_string(), range: Some((from, to)) })
            }
            key => {
                let from = key_prefix(&key, &[]);
                let mut to = from.clone();
                to.push(END_OF_KEY + 1);
                // An array that is as short as the group is the group of longer ones too.
                let to = match &key {
                    Value::Array(elements) if elements.len() == level => {
                        let open = from.split_last().map(|(_, open)| open).unwrap_or_default();
                        keys::successor(open)
                    }
                    _ => to,
                };
                Some(Self { key: key_json.to_owned(), range: Some((from, to)) })
            }
        }
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

impl Totals {
    /// What lies between two keys: the number of entries, and each total in its way. `parent` is the category above,
    /// or the whole view.
    fn of(&self, reader: &Reader, (from, to): (&[u8], &[u8]), parent: (&[u8], &[u8])) -> Result<String> {
        let count = reader.count_range(from, Some(to))?;
        let sums = reader.sums_range(from, Some(to))?;
        let wants = |total: Total| self.columns.iter().any(|(_, wanted)| *wanted == total);
        let of_parent = if wants(Total::PercentOfParent) {
            reader.sums_range(parent.0, Some(parent.1))?
        } else {
            Vec::new()
        };
        let of_all = if wants(Total::PercentOfAll) { reader.sums() } else { Vec::new() };
        #[allow(clippy::cast_precision_loss, reason = "an average needs no more than 53 bits")]
        let shown = |place: usize, sum: f64, total: Total| match total {
            Total::Sum => sum,
            Total::Average => sum / count.max(1) as f64,
            Total::PercentOfParent => percent(sum, of_parent.get(place)),
            Total::PercentOfAll => percent(sum, of_all.get(place)),
        };
        let columns = self.columns.iter().zip(&sums).enumerate();
        let totals: Map<String, Value> = columns
            .map(|(place, ((title, total), sum))| (title.clone(), json!(shown(place, *sum, *total))))
            .collect();
        Ok(json!({"count": count, "totals": totals}).to_string())
    }
}

/// Nothing is no percent of nothing.
fn percent(part: f64, whole: Option<&f64>) -> f64 {
    match whole {
        Some(whole) if *whole != 0.0 => part * 100.0 / whole,
        _ => 0.0,
    }
}
