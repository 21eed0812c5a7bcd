//! The entries that a document has in a view.
//!
//! An entry's key is the sort keys of the sorted columns, one after the other (those of descending
//! columns inverted), a zero, the document's id, and two bytes that tell apart the entries of one
//! document under one key. Every sort key ends itself and begins with another byte than zero, so that a
//! shorter key sorts before all that it begins.
//!
//! An entry's value: the number of sorted columns, where in the key the sort key of each ends (so that
//! a category is a prefix that need not be parsed), and each column as JSON. Titles are the view's, and the
//! key as JSON is that of the sorted columns, so neither is stored. A column that its sort key or its total tells
//! is stored as nothing; that saves about a third. (A sort key in which case or accents do not count tells no text.)
//!
//! A document's *list* says which entries it has in an index, so that they can be taken out again: for each its
//! sort keys, in their [short form](crate::short), and its totals. The rest of the key is the document's id and the
//! place in the list.

use std::borrow::Cow;

use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_document::collation::{self, Sensitivity};
use scrinium_document::json::JsonText;
use scrinium_document::raw_order::write_raw_key;
use serde_json::Value;

use crate::definition::{ColumnOrder, Definition, Sort};
use crate::hierarchy::{self, Node};
use crate::short::{lengthen, shorten};
use crate::streams::{plain, stream_of};

/// The sort key of an entry, the place of which is `ordinal` among those of its document.
fn complete_key(key: &mut Vec<u8>, id: &str, ordinal: u16) {
    key.push(END_OF_KEY);
    key.extend_from_slice(id.as_bytes());
    key.extend_from_slice(&ordinal.to_be_bytes());
}

/// The sort key of one element; longer ones are cut, so that texts that agree so far count as equal.
const MAX_COMPONENT_BYTES: usize = 1024;

/// The key of the only entry that a document has in an index of ascending columns, of which these are the values.
pub(crate) fn entry_key(values: &[Value], id: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(id.len() + 64);
    values.iter().for_each(|value| write_component(&mut key, value, ColumnOrder::ASCENDING));
    complete_key(&mut key, id, 0);
    key
}

/// Stands where the length of the first sort keys does in a list of entries that are in streams.
const IN_STREAMS: u64 = u64::MAX;

/// What separates the sort keys from the id; no sort key begins with it.
pub(crate) const END_OF_KEY: u8 = 0;

/// An entry before it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) totals: Vec<f64>,
}

/// The entries of a document's rows, each a value for every column.
pub(crate) fn entries_of(definition: &Definition, id: &str, rows: &[Vec<Value>]) -> Vec<Entry> {
    let number = |ordinal: usize| u16::try_from(ordinal).unwrap_or(u16::MAX);
    rows.iter().enumerate().map(|(ordinal, row)| entry(definition, id, number(ordinal), row)).collect()
}

fn entry(definition: &Definition, id: &str, ordinal: u16, row: &[Value]) -> Entry {
    let mut key = Vec::with_capacity(id.len() + 64);
    let mut value = Vec::with_capacity(128);
    let mut columns = Vec::with_capacity(96);
    let mut totals = Vec::new();
    put_number(&mut value, definition.sorted().count() as u64);
    for (column, element) in definition.columns.iter().zip(row) {
        let start = key.len();
        if let Some(order) = column.order() {
            write_component(&mut key, element, order);
            put_number(&mut value, key.len() as u64);
        }
        if column.total.is_some() {
            totals.push(element.as_f64().unwrap_or(0.0));
        }
        let is_told = match column.order() {
            Some(order) => tells(key.get(start..).unwrap_or_default(), element, order),
            None => {
                let total = totals.last().filter(|_| column.total.is_some());
                total.and_then(|total| collation::number(*total)).as_ref() == Some(element)
            }
        };
        if is_told {
            columns.push(0);
        } else {
            put_bytes(&mut columns, element.to_string().as_bytes());
        }
    }
    complete_key(&mut key, id, ordinal);
    value.extend_from_slice(&columns);
    Entry { key, value, totals }
}

/// Whether the sort key of an element tells it.
fn tells(component: &[u8], element: &Value, order: ColumnOrder) -> bool {
    match element {
        _ if order.is_raw => false,
        // As reading it back and comparing, which costs more than all else that is done for an entry.
        Value::String(text) => {
            order.sensitivity == Sensitivity::FULL
                && component.len() < MAX_COMPONENT_BYTES
                && collation::tells_text(text)
        }
        _ => value_of_component(component, order.sort).as_ref() == Some(element),
    }
}

/// The value that has this sort key, if it tells.
pub(super) fn value_of_component(component: &[u8], sort: Sort) -> Option<Value> {
    match sort {
        Sort::Ascending => collation::value_of_key(component),
        Sort::Descending => {
            let mut component = component.to_vec();
            collation::descending(&mut component);
            collation::value_of_key(&component)
        }
    }
}

/// Appends the sort key of one element of a key.
pub(crate) fn write_component(key: &mut Vec<u8>, value: &Value, order: ColumnOrder) {
    let start = key.len();
    if order.is_raw {
        write_raw_key(key, value);
    } else {
        collation::write_sort_key_with(key, value, order.sensitivity);
    }
    if key.len() - start > MAX_COMPONENT_BYTES {
        key.truncate(start + MAX_COMPONENT_BYTES - 1);
        key.push(0);
    }
    if order.sort == Sort::Descending
        && let Some(component) = key.get_mut(start..)
    {
        collation::descending(component);
    }
}

/// A stored entry, taken apart.
pub(crate) struct StoredEntry<'a> {
    pub(super) key: &'a [u8],
    pub(super) ends: Vec<usize>,
    /// The JSON of each column.
    pub(crate) columns: Vec<Cow<'a, str>>,
    /// In a view with responses.
    pub(super) node: Option<Node<'a>>,
}

impl<'a> StoredEntry<'a> {
    /// `None`: damaged.
    pub(crate) fn of(definition: &Definition, entry: &scrinium_index::Entry<'a>) -> Option<Self> {
        Self::decode(definition, entry.key, entry.value, entry.sums())
    }

    /// `None`: damaged.
    pub(crate) fn decode(
        definition: &Definition,
        key: &'a [u8],
        value: &'a [u8],
        mut totals: impl Iterator<Item = f64>,
    ) -> Option<Self> {
        let key = plain(key);
        if definition.responses.is_some() {
            return hierarchy::decode(definition, key, value, totals);
        }
        let mut input = Input::new(value);
        let count = input.number()?;
        let mut ends = Vec::new();
        for _ in 0..count {
            ends.push(usize::try_from(input.number()?).ok()?);
        }
        let mut columns = Vec::with_capacity(definition.columns.len());
        let (mut sorted, mut start) = (ends.iter(), 0);
        for column in &definition.columns {
            let component = match column.sort {
                None => None,
                Some(sort) => {
                    let end = *sorted.next()?;
                    let component = key.get(start..end)?;
                    start = end;
                    Some((component, sort))
                }
            };
            let total = if column.total.is_some() { totals.next() } else { None };
            columns.push(match (input.text()?, component) {
                ("", Some((component, sort))) => Cow::Owned(value_of_component(component, sort)?.to_string()),
                ("", None) => Cow::Owned(collation::number(total?)?.to_string()),
                (json, _) => Cow::Borrowed(json),
            });
        }
        Some(Self { key, ends, columns, node: None })
    }

    /// How deep it is among the responses, in a view with these.
    pub(crate) fn level(&self) -> Option<u32> {
        self.node.as_ref().map(Node::level)
    }

    /// Its key as the reader sees it.
    pub(crate) fn key_json(&self, definition: &Definition) -> JsonText {
        self.node.as_ref().map_or_else(|| definition.key_json(&self.columns), Node::key_json)
    }

    pub(crate) fn id(&self) -> Option<&'a str> {
        if let Some(node) = &self.node {
            return Some(node.id());
        }
        let start = self.ends.last().copied().unwrap_or(0) + 1;
        let end = self.key.len().checked_sub(2)?;
        std::str::from_utf8(self.key.get(start..end)?).ok()
    }

    /// What all entries begin with that agree in the first `level` elements of the key.
    pub(crate) fn category(&self, level: usize) -> Option<&'a [u8]> {
        match level.min(self.ends.len()).checked_sub(1) {
            None => Some(&[]),
            Some(last) => self.key.get(..*self.ends.get(last)?),
        }
    }
}

/// The end of the sort keys in an entry's plain key, which its value tells. `None`: damaged.
pub(crate) fn sort_keys_end(value: &[u8]) -> Option<usize> {
    let mut input = Input::new(value);
    let count = input.number()?;
    let mut end = 0;
    for _ in 0..count {
        end = input.number()?;
    }
    usize::try_from(end).ok()
}

/// The list of a document's entries in an index. Those in streams are said once, behind the streams' names.
pub(crate) fn encode_list(id: &str, entries: &[Entry]) -> Vec<u8> {
    let behind = id.len() + 3;
    let (mut out, mut short) = (Vec::with_capacity(entries.len() * 64), Vec::new());
    let first = entries.first().map(|entry| stream_of(&entry.key)).unwrap_or_default();
    if !first.is_empty() {
        let mut streams: Vec<&[u8]> = entries.iter().map(|entry| stream_of(&entry.key)).collect();
        streams.dedup();
        put_number(&mut out, IN_STREAMS);
        put_number(&mut out, streams.len() as u64);
        streams.iter().for_each(|stream| put_bytes(&mut out, stream));
    }
    for entry in entries.iter().filter(|entry| stream_of(&entry.key) == first) {
        let key = plain(&entry.key);
        let sort_keys = key.len().checked_sub(behind).and_then(|length| key.get(..length));
        short.clear();
        shorten(&mut short, sort_keys.unwrap_or_default());
        put_bytes(&mut out, &short);
        entry.totals.iter().for_each(|total| put_total(&mut out, *total));
    }
    out
}

/// Keys and totals of a document's entries in an index with this many totals. `None`: damaged.
pub(crate) fn decode_list(id: &str, totals: usize, bytes: &[u8]) -> Option<Vec<(Vec<u8>, Vec<f64>)>> {
    let mut input = Input::new(bytes);
    let mut streams: Vec<Vec<u8>> = Vec::new();
    if Input::new(bytes).number() == Some(IN_STREAMS) {
        input.number()?;
        for _ in 0..input.number()? {
            streams.push(input.bytes()?.to_vec());
        }
    }
    let mut entries = Vec::new();
    while !input.rest().is_empty() {
        let mut key = lengthen(input.bytes()?)?;
        complete_key(&mut key, id, u16::try_from(entries.len()).unwrap_or(u16::MAX));
        let totals: Option<Vec<f64>> = (0..totals).map(|_| take_total(&mut input)).collect();
        entries.push((key, totals?));
    }
    if streams.is_empty() {
        return Some(entries);
    }
    let in_stream = |stream: &Vec<u8>| {
        let entry = |(key, totals): &(Vec<u8>, Vec<f64>)| ([&stream[..], key].concat(), totals.clone());
        entries.iter().map(entry).collect::<Vec<_>>()
    };
    Some(streams.iter().flat_map(in_stream).collect())
}

/// Whole numbers from 0 up take few bytes: twice the number, and an odd number stands before eight bytes.
pub(super) fn put_total(out: &mut Vec<u8>, total: f64) {
    const EXACT: f64 = 4_503_599_627_370_496.0;
    let is_short = total.fract() == 0.0 && (0.0..EXACT).contains(&total) && total.is_sign_positive();
    if is_short {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and in range")]
        put_number(out, total as u64 * 2);
    } else {
        put_number(out, 1);
        out.extend_from_slice(&total.to_be_bytes());
    }
}

#[allow(clippy::cast_precision_loss, reason = "it was a double before")]
pub(super) fn take_total(input: &mut Input<'_>) -> Option<f64> {
    match input.number()? {
        number if number % 2 == 0 => Some((number / 2) as f64),
        _ => Some(f64::from_be_bytes(input.array()?)),
    }
}
