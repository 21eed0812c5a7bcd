//! Totals of categories, and what functions reduce groups of keys to.

use std::sync::Arc;

use scrinium_assertion::never;
use scrinium_database::{DatabaseError, InvalidInput, Result, Row, RowQuery, keys};
use scrinium_document::json::{JsonText, stored_value};
use scrinium_javascript::Reducer;
use scrinium_store::Direction;
use serde_json::{Map, Value, json};

use super::ViewRows;
use super::range::{KeyColumns, Range, key_prefix};
use crate::collection::Collection;
use crate::definition::{Definition, Script, Total};
use crate::entries::{END_OF_KEY, StoredEntry};
use crate::error::OrDatabaseError as _;
use crate::group::View;
use crate::scripts::{Reducing, overflow_reason};

/// How totals are taken.
pub(super) struct Totals {
    columns: Vec<(String, Total)>,
    /// This many elements of the key make a category; 0: one total of everything.
    level: usize,
    /// The function of a JavaScript view, instead of totals of columns.
    reducer: Option<Arc<Reducer>>,
}

/// A formula view gives rows unless totals are asked for, by `reduce`, `group` or `group_level`.
pub(super) fn wanted_totals(view: &View, query: &RowQuery, columns: &KeyColumns) -> Result<Option<Totals>> {
    let sorted = columns.categories();
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
        return Err(DatabaseError::Invalid {
            input: InvalidInput::Query,
            reason: "`include_docs` is invalid for reduce".to_owned(),
        });
    }
    let level = match query.group_level {
        Some(level) => usize::try_from(level).unwrap_or(usize::MAX).min(sorted),
        None if query.group || query.keys.is_some() => sorted,
        None => 0,
    };
    Ok(Some(Totals { level, ..Totals::of_columns(&view.definition) }))
}

/// CouchDB's rules: a view with a reduce function is reduced unless that is declined.
fn wanted_reduction(script: &Script, query: &RowQuery, grouped: bool) -> Result<Option<Totals>> {
    let wrong =
        |reason: &str| DatabaseError::Invalid { input: InvalidInput::Query, reason: reason.to_owned() };
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
    if query.conflicts {
        return Err(wrong("`conflicts` is invalid for reduce views."));
    }
    let level = match query.group_level {
        None if query.group => usize::MAX,
        _ if query.keys.is_some() => {
            return Err(wrong("Multi-key fetches for reduce views must use `group=true`"));
        }
        Some(level) => usize::try_from(level).unwrap_or(usize::MAX),
        None => 0,
    };
    Ok(Some(Totals { columns: Vec::new(), level, reducer: Some(Arc::clone(reducer)) }))
}

impl ViewRows {
    /// One row of totals, and the rest of the range back to where it came from.
    pub(super) fn take_totals(&mut self, from: Vec<u8>, to: Vec<u8>, rows: &mut Vec<Row>) -> Result<()> {
        let totals = self.totals.as_ref().ok_or_else(|| never!("a page of totals knows which"))?;
        let collection = self.collection.clone();
        let mut cursor = collection.cursor(&from, &to, self.direction, 0)?;
        let Some(stored) = cursor.next()? else { return Ok(()) };
        let damaged = || DatabaseError::damaged("entry of a view", self.database.name());
        let entry = StoredEntry::of(&self.definition, &stored).ok_or_else(damaged)?;
        if let Some(reducer) = &totals.reducer {
            let stored = stored.key.to_vec();
            let key = self.definition.key_json(&entry.columns);
            let columns = KeyColumns::of(&self.definition);
            let group = Group::of(&key, totals.level, &columns).ok_or_else(damaged)?;
            let (first, last) = match &group.range {
                None => (from.clone(), to.clone()),
                // Of keys so long that they are cut, each is a group.
                Some((first, last)) if *first > stored || *last <= stored => {
                    (stored.clone(), keys::next(&stored))
                }
                Some((first, last)) => (first.clone().max(from.clone()), last.clone().min(to.clone())),
            };
            let row = match self.reduced(&collection, reducer, &first, &last)? {
                Reduced::Value(value) => Row { key: group.key, value: Some(value), ..Row::default() },
                // Of which key, CouchDB does not say.
                Reduced::Overflow(reason) => {
                    Row { error: Some("reduce_overflow_error"), reason: Some(reason), ..Row::default() }
                }
            };
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
            key: category_key(&entry.key_json(&self.definition), totals.level).ok_or_else(damaged)?,
            value: Some(JsonText::from(&Value::Object(totals.of(
                &collection,
                (&first, &last),
                (parent.as_slice(), &above),
            )?))),
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
    fn reduced(&self, collection: &Collection, reducer: &Reducer, from: &[u8], to: &[u8]) -> Result<Reduced> {
        let mut engine = self.database.reducer(reducer);
        let mut reducing = Reducing { definition: &self.definition, engine: &mut engine };
        let state = collection.reduce_range(from, to, &mut reducing)?;
        if let Some(reason) = state.as_deref().and_then(overflow_reason) {
            return Ok(Reduced::Overflow(reason));
        }
        match state {
            None => Ok(Reduced::Value(JsonText::default())),
            Some(state) => {
                let reduced = reducing.engine.finish(&String::from_utf8_lossy(&state)).or_database_error()?;
                // A function may give what is nested deeper than documents are.
                Ok(Reduced::Value(JsonText::parse(reduced)?))
            }
        }
    }
}

/// What became of a group.
enum Reduced {
    Value(JsonText),
    /// The function's reductions grow; why that is an error.
    Overflow(String),
}

/// A group of the keys that a map function emitted.
struct Group {
    /// Its key, as the reader sees it.
    key: JsonText,
    /// Where it lies; `None`: everything.
    range: Option<Range>,
}

impl Group {
    /// The group of a key: all keys; all arrays that agree in this many elements; or those that are the same.
    fn of(key_json: &JsonText, level: usize, columns: &KeyColumns) -> Option<Self> {
        if level == 0 {
            return Some(Self { key: JsonText::default(), range: None });
        }
        let key = stored_value(key_json)?;
        match key {
            Value::Array(mut elements) if elements.len() > level => {
                elements.truncate(level);
                let from = columns.array_prefix(&elements);
                let to = keys::successor(&from);
                Some(Self { key: JsonText::from(&Value::Array(elements)), range: Some((from, to)) })
            }
            key => {
                let from = key_prefix(&key, columns);
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
                Some(Self { key: key_json.clone(), range: Some((from, to)) })
            }
        }
    }
}

/// The key of a category: `null` for all, else the first elements of an entry's key.
pub(super) fn category_key(key_json: &str, level: usize) -> Option<JsonText> {
    if level == 0 {
        return Some(JsonText::default());
    }
    let Some(Value::Array(mut elements)) = stored_value(key_json) else { return None };
    elements.truncate(level);
    Some(JsonText::from(&Value::Array(elements)))
}

impl Totals {
    /// One total of everything, of the columns that have totals.
    pub(super) fn of_columns(definition: &Definition) -> Self {
        let columns = definition.totals();
        let columns = columns.filter_map(|column| Some((column.title.clone(), column.total?))).collect();
        Self { columns, level: 0, reducer: None }
    }

    /// What lies between two keys: the number of entries, and each total in its way. `parent` is the category above,
    /// or the whole view.
    pub(super) fn of(
        &self,
        collection: &Collection,
        (from, to): (&[u8], &[u8]),
        parent: (&[u8], &[u8]),
    ) -> Result<Map<String, Value>> {
        let count = collection.count_range(from, to)?;
        let sums = collection.sums_range(from, to)?;
        let wants = |total: Total| self.columns.iter().any(|(_, wanted)| *wanted == total);
        let of_parent = if wants(Total::PercentOfParent) {
            collection.sums_range(parent.0, parent.1)?
        } else {
            Vec::new()
        };
        let of_all = if wants(Total::PercentOfAll) { collection.sums()? } else { Vec::new() };
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
        let members = [("count".to_owned(), json!(count)), ("totals".to_owned(), Value::Object(totals))];
        Ok(members.into_iter().collect())
    }
}

/// Nothing is no percent of nothing.
fn percent(part: f64, whole: Option<&f64>) -> f64 {
    match whole {
        Some(whole) if *whole != 0.0 => part * 100.0 / whole,
        _ => 0.0,
    }
}
