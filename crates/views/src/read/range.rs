//! The ranges of an index that a query asks for, and where in them a page begins.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scrinium_database::keys::{self, next};
use scrinium_database::{DatabaseError, InvalidInput, Result, RowQuery};
use scrinium_document::{collation, raw_order};
use serde_json::Value;

use crate::collection::Collection;
use crate::definition::{ColumnOrder, Definition, Sort};
use crate::entries::{END_OF_KEY, write_component};
use crate::group::View;
use crate::hierarchy::write_id;
use crate::open::OpenDatabase;

/// A range of an index: from the first key up to, not including, the second.
pub(super) type Range = (Vec<u8>, Vec<u8>);

/// How the key that a query names becomes what keys of entries begin with.
pub(super) struct KeyColumns {
    orders: Vec<ColumnOrder>,
    /// What a map function emits is one key, also if it is an array.
    is_one: bool,
}

impl KeyColumns {
    pub(super) fn of(definition: &Definition) -> Self {
        Self { orders: definition.orders().collect(), is_one: definition.script().is_some() }
    }

    /// How many columns make a key; none where a key is whole.
    pub(super) fn categories(&self) -> usize {
        if self.is_one { 0 } else { self.orders.len() }
    }

    /// What arrays begin with that begin with these elements, in a key that is whole.
    pub(super) fn array_prefix(&self, elements: &[Value]) -> Vec<u8> {
        let mut prefix = Vec::new();
        if self.first().is_raw {
            raw_order::write_raw_array_start(&mut prefix);
            elements.iter().for_each(|element| raw_order::write_raw_key(&mut prefix, element));
        } else {
            collation::write_array_start(&mut prefix);
            elements.iter().for_each(|element| collation::write_sort_key(&mut prefix, element));
        }
        prefix
    }

    /// How the first of them orders.
    pub(super) fn first(&self) -> ColumnOrder {
        self.orders.first().copied().unwrap_or(ColumnOrder::ASCENDING)
    }
}

/// The ranges that a query asks for, in the order in which they are read.
///
/// # Errors
/// `query_parse_error` if the first key lies behind the last one.
pub(super) fn ranges(query: &RowQuery, columns: &KeyColumns, has_responses: bool) -> Result<Vec<Range>> {
    // With categories, a key stands for all that begins with it, as the key of a category does.
    let behind = if query.categories.is_some() { behind_all } else { behind_key };
    let edge = |prefix: Vec<u8>, id: Option<&str>, is_behind: bool| match (id, is_behind) {
        (None, false) => prefix,
        (None, true) => behind(&prefix),
        (Some(id), is_behind) => edge_of_id(prefix, id, is_behind, has_responses),
    };
    let (low, low_id, high, high_id) = if query.descending {
        (&query.end_key, &query.end_id, &query.start_key, &query.start_id)
    } else {
        (&query.start_key, &query.start_id, &query.end_key, &query.end_id)
    };
    let low_inclusive = !query.descending || query.inclusive_end;
    let high_inclusive = query.descending || query.inclusive_end;
    let lowest = |key: &Value| edge(key_prefix(key, columns), low_id.as_deref(), !low_inclusive);
    let highest = |key: &Value| edge(key_prefix(key, columns), high_id.as_deref(), high_inclusive);
    if let Some(keys) = &query.keys {
        let keys = keys.iter().map(|key| (lowest(key), highest(key)));
        return Ok(if query.descending { keys.rev().collect() } else { keys.collect() });
    }
    let from = low.as_ref().map_or_else(Vec::new, lowest);
    // All entries are below this: no sort key, inverted or not, begins with it.
    let to = high.as_ref().map_or_else(|| vec![u8::MAX], highest);
    if low.is_some() && high.is_some() && low != high && from > to {
        let way = if query.descending { "false" } else { "true" };
        return Err(wrong(&format!(
            "No rows can match your key range, reverse your start_key and end_key or set descending={way}"
        )));
    }
    Ok(vec![(from, to)])
}

/// What the entries of a key begin with. An array is a key of several columns; anything else is the
/// first column's. Without columns that sort, the key is one, whatever it is.
pub(super) fn key_prefix(key: &Value, columns: &KeyColumns) -> Vec<u8> {
    let elements = match key {
        Value::Array(elements) if columns.categories() > 0 => elements.as_slice(),
        single => std::slice::from_ref(single),
    };
    let mut prefix = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        let order = columns.orders.get(index).copied().unwrap_or(ColumnOrder::ASCENDING);
        write_component(&mut prefix, element, order);
    }
    prefix
}

fn wrong(reason: &str) -> DatabaseError {
    DatabaseError::Invalid { input: InvalidInput::Query, reason: reason.to_owned() }
}

/// The place behind the entries of a key.
fn behind_key(prefix: &[u8]) -> Vec<u8> {
    [prefix, &[END_OF_KEY + 1]].concat()
}

/// The place behind all entries that begin so; of nothing, the end.
fn behind_all(prefix: &[u8]) -> Vec<u8> {
    if prefix.is_empty() { vec![u8::MAX] } else { keys::successor(prefix) }
}

/// The place before a document's entries under a key, or behind them and the responses beneath them.
fn edge_of_id(mut prefix: Vec<u8>, id: &str, is_behind: bool, has_responses: bool) -> Vec<u8> {
    prefix.push(END_OF_KEY);
    if has_responses {
        write_id(&mut prefix, id);
    } else {
        prefix.extend_from_slice(id.as_bytes());
    }
    if is_behind && has_responses {
        // The number behind the id is at most this.
        prefix.extend_from_slice(&[u8::MAX; 2]);
        prefix.push(0);
    } else if is_behind {
        // The number behind the id is below this, unless a document has 8,192 entries of one key; a longer id that
        // begins so continues this or more, unless it has control characters.
        prefix.push(b' ');
    }
    prefix
}

/// Where a page begins within the ranges asked for.
pub(super) enum Begin {
    /// Here or above, read forward.
    From(Vec<u8>),
    /// Below, read backward.
    Below(Vec<u8>),
}

impl Begin {
    /// Leaves of a range what lies behind.
    pub(super) fn cut(&self, (from, to): &mut Range) {
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

/// Those of a document's keys at which the view shows an entry.
fn shown(collection: &Collection, keys: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let mut shown = Vec::new();
    for key in keys {
        if collection.count_range(&key, &next(&key))? > 0 {
            shown.push(key);
        }
    }
    Ok(shown)
}

/// Where `find`, `at` and `from` have a page begin.
pub(super) fn begin(
    database: &OpenDatabase,
    view: &View,
    collection: &Collection,
    query: &RowQuery,
    columns: &KeyColumns,
) -> Result<Option<Begin>> {
    match (&query.from, &query.at, &query.find) {
        (None, None, None) => Ok(None),
        (Some(token), None, None) => {
            let key =
                URL_SAFE_NO_PAD.decode(token).map_err(|_| wrong("`from` is not where a page ended."))?;
            Ok(Some(Begin::of_entry(key, query, true)))
        }
        (None, Some(id), None) => {
            let keys = view.index.entry_keys(database, &view.definition, id)?;
            let mut keys: Vec<Vec<u8>> = collection.seen(&keys).map(<[u8]>::to_vec).collect();
            if view.definition.keys.is_unique {
                keys = shown(collection, keys)?;
            }
            let first = if query.descending { keys.into_iter().max() } else { keys.into_iter().min() };
            let missing =
                || DatabaseError::NotFound { reason: "The document is not in the view.".to_owned() };
            Ok(Some(Begin::of_entry(first.ok_or_else(missing)?, query, false)))
        }
        (None, None, Some(text)) => {
            let is_falling = columns.first().sort == Sort::Descending;
            let falls = is_falling != query.descending;
            // Where values fall, what begins with the text lies before the text itself: from the highest such on.
            let highest = if falls { "\u{ffff}" } else { "" };
            let mut key = key_prefix(&Value::from(format!("{text}{highest}")), columns);
            if query.descending {
                key.push(u8::MAX);
            }
            Ok(Some(if query.descending { Begin::Below(key) } else { Begin::From(key) }))
        }
        _ => Err(wrong("Only one of `find`, `at` and `from` can say where a page begins.")),
    }
}
