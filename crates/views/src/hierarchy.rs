//! Response hierarchies: a response, whose field `$REF` names another document, comes beneath that document's entries.
//!
//! The key of an entry in such a view, so that responses sort behind their parent and before the next main document:
//!
//! ```text
//! main document   sort keys of the sorted columns, 00, id, two bytes that tell apart its entries under one key
//! response        key of the entry that it is beneath, sort key of the order, id
//! id              its first 100 bytes, a zero followed by FF; then 00 01, or 00 02 and a digest where it is longer
//! ```
//!
//! Sort keys and ids end themselves, so no key but a response's begins with another, and a walk through the keys is
//! one through the tree, each document before its responses.
//!
//! The value: the level; where in the key the id begins, or 0 and the id; the *head*, which an entry has in context
//! with all beneath it: for each sorted column where in the key its sort key ends, and its JSON; then the JSON of
//! each column, but a main document's sorted ones. What a sort key or a total tells is stored as nothing.

pub(crate) mod record;

use std::borrow::Cow;

use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_database::Result;
use scrinium_document::collation;
use scrinium_document::json::JsonText;
use scrinium_formula::{Formula, Responses};
use serde_json::Value;

use crate::compile::{compile, wrong};
use crate::definition::{Definition, list_of_entry};
use crate::entries::{END_OF_KEY, StoredEntry, value_of_component, write_component};
use record::Placed;

/// The responses of a main document are of level 1; those further down than this are not shown.
pub(crate) const LEVEL_MAX: u32 = 31;

/// Sorted columns of such a view, each of which takes up to a kilobyte of a key, so that there is room for 31 levels.
const SORTED_MAX: usize = 40;

/// What sorts responses is cut here; those that agree so far count as equal.
const ORDER_BYTES_MAX: usize = 256;

/// So much of an id is in a key.
const ID_BYTES_MAX: usize = 100;

/// How a view shows responses.
#[derive(Clone)]
pub(crate) struct Hierarchy {
    /// Sorts the responses to one document, ascending; without it they come as they were created. Those that are equal
    /// are in the order of their ids.
    pub(crate) order: Option<Formula>,
    /// Which responses the selection adds.
    pub(crate) adds: Responses,
}

impl Hierarchy {
    /// `responses` of a view: `true`, or an object that may say how they are sorted.
    ///
    /// # Errors
    /// `compilation_error`: it is not one of these, or the formula does not compile.
    pub(super) fn parse(name: &str, view: &Value, selection: &Formula) -> Result<Option<Self>> {
        let wrong_shape = || {
            wrong(format!(
                "view `{name}`: `responses` must be true, false or an object like {{\"order\": \"Date\"}}"
            ))
        };
        let order = match view.get("responses") {
            None | Some(Value::Null | Value::Bool(false)) => return Ok(None),
            Some(Value::Bool(true)) => None,
            Some(Value::Object(members)) if members.keys().all(|member| member == "order") => {
                members.get("order")
            }
            Some(_) => return Err(wrong_shape()),
        };
        let order = order.map(|order| order.as_str().ok_or_else(wrong_shape)).transpose()?;
        let order = order.map(|order| compile(order, &format!("view `{name}`, order of responses")));
        Ok(Some(Self { order: order.transpose()?, adds: selection.responses() }))
    }
}

/// Refuses what a view with responses cannot be.
///
/// # Errors
/// `compilation_error`.
pub(super) fn check(definition: &Definition) -> Result<()> {
    let name = &definition.name;
    if definition.sorted().count() > SORTED_MAX {
        return Err(wrong(format!(
            "view `{name}`: a view with responses has at most {SORTED_MAX} sorted columns"
        )));
    }
    if definition.keys.is_unique {
        return Err(wrong(format!("view `{name}`: a view shows either responses or unique keys, not both")));
    }
    Ok(())
}

/// Where an entry is in the tree.
pub(crate) struct Node<'a> {
    id: &'a str,
    level: u32,
    /// The sorted columns of the main document, as JSON.
    key: Vec<Cow<'a, str>>,
}

impl Node<'_> {
    pub(crate) const fn level(&self) -> u32 {
        self.level
    }

    /// The key of the main document that it is beneath, or its own.
    pub(crate) fn key_json(&self) -> JsonText {
        list_of_entry(self.key.iter().map(AsRef::as_ref))
    }
}

impl<'a> Node<'a> {
    pub(crate) const fn id(&self) -> &'a str {
        self.id
    }
}

/// Appends an id as it is in keys.
pub(crate) fn write_id(key: &mut Vec<u8>, id: &str) {
    for byte in id.bytes().take(ID_BYTES_MAX) {
        key.push(byte);
        if byte == 0 {
            key.push(u8::MAX);
        }
    }
    if id.len() <= ID_BYTES_MAX {
        key.extend_from_slice(&[0, 1]);
    } else {
        key.extend_from_slice(&[0, 2]);
        key.extend(blake3::hash(id.as_bytes()).as_bytes().iter().take(16));
    }
}

/// Whether an id is whole in a key.
fn is_plain(id: &str) -> bool {
    id.len() <= ID_BYTES_MAX && !id.contains('\0')
}

/// What sorts a response among those to the same document, and tells it from them.
pub(crate) fn tail_of(order: &Value, id: &str) -> Vec<u8> {
    let mut tail = Vec::with_capacity(id.len() + 32);
    collation::write_sort_key(&mut tail, order);
    if tail.len() > ORDER_BYTES_MAX {
        tail.truncate(ORDER_BYTES_MAX - 1);
        tail.push(0);
    }
    write_id(&mut tail, id);
    tail
}

/// An entry of a main document, and its value.
pub(crate) fn main_entry(
    definition: &Definition,
    id: &str,
    ordinal: usize,
    row: &[Value],
) -> (Placed, Vec<u8>) {
    let (mut key, mut head) = (Vec::with_capacity(id.len() + 64), Vec::new());
    for (column, element) in definition.columns.iter().zip(row) {
        let Some(order) = column.order() else { continue };
        let start = key.len();
        write_component(&mut key, element, order);
        put_number(&mut head, key.len() as u64);
        match value_of_component(key.get(start..).unwrap_or_default(), order.sort) {
            Some(told) if told == *element => head.push(0),
            _ => put_bytes(&mut head, element.to_string().as_bytes()),
        }
    }
    key.push(END_OF_KEY);
    let id_start = key.len();
    write_id(&mut key, id);
    key.extend_from_slice(&u16::try_from(ordinal).unwrap_or(u16::MAX).to_be_bytes());
    let (columns, totals) = columns_of(definition, row, true);
    let value = value_of(0, id, id_start, &head, &columns);
    (Placed { key, head, totals }, value)
}

/// The value of a response's entry beneath one of its parent's.
pub(crate) fn response_value(level: u32, id: &str, tail: &[u8], parent: &Placed, columns: &[u8]) -> Vec<u8> {
    let mut own = Vec::new();
    write_id(&mut own, id);
    value_of(level, id, (parent.key.len() + tail.len()).saturating_sub(own.len()), &parent.head, columns)
}

fn value_of(level: u32, id: &str, id_start: usize, head: &[u8], columns: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(head.len() + columns.len() + 8);
    put_number(&mut value, level.into());
    if is_plain(id) {
        put_number(&mut value, id_start as u64);
    } else {
        put_number(&mut value, 0);
        put_bytes(&mut value, id.as_bytes());
    }
    value.extend_from_slice(head);
    value.extend_from_slice(columns);
    value
}

/// What is stored of a document's columns besides the head, and its totals.
pub(crate) fn columns_of(definition: &Definition, row: &[Value], is_main: bool) -> (Vec<u8>, Vec<f64>) {
    let (mut columns, mut totals) = (Vec::with_capacity(96), Vec::new());
    for (column, element) in definition.columns.iter().zip(row) {
        let mut told = None;
        if column.total.is_some() {
            let total = element.as_f64().unwrap_or(0.0);
            totals.push(total);
            told = collation::number(total);
        }
        match told {
            _ if is_main && column.sort.is_some() => {}
            Some(told) if told == *element => columns.push(0),
            _ => put_bytes(&mut columns, element.to_string().as_bytes()),
        }
    }
    (columns, totals)
}

/// A stored entry, taken apart. `None`: damaged.
pub(crate) fn decode<'a>(
    definition: &Definition,
    key: &'a [u8],
    value: &'a [u8],
    mut totals: impl Iterator<Item = f64>,
) -> Option<StoredEntry<'a>> {
    let mut input = Input::new(value);
    let level = u32::try_from(input.number()?).ok()?;
    let id = match usize::try_from(input.number()?).ok()? {
        0 => input.text()?,
        start => {
            let behind = if level == 0 { 4 } else { 2 };
            std::str::from_utf8(key.get(start..key.len().checked_sub(behind)?)?).ok()?
        }
    };
    let (mut ends, mut sorted, mut start) = (Vec::new(), Vec::new(), 0);
    for (_, sort) in definition.sorted() {
        let end = usize::try_from(input.number()?).ok()?;
        let component = key.get(start..end)?;
        sorted.push(match input.text()? {
            "" => Cow::Owned(value_of_component(component, sort)?.to_string()),
            json => Cow::Borrowed(json),
        });
        ends.push(end);
        start = end;
    }
    let mut columns = Vec::with_capacity(definition.columns.len());
    let mut main = sorted.iter();
    for column in &definition.columns {
        let total = if column.total.is_some() { totals.next() } else { None };
        let key = if column.sort.is_some() { main.next() } else { None };
        columns.push(match key {
            Some(json) if level == 0 => json.clone(),
            _ => match input.text()? {
                "" => Cow::Owned(collation::number(total?)?.to_string()),
                json => Cow::Borrowed(json),
            },
        });
    }
    Some(StoredEntry { key, ends, columns, node: Some(Node { id, level, key: sorted }) })
}
