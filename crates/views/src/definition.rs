//! What a view is: which documents it has, its columns, and how its entries are shown.

use std::borrow::Cow;
use std::sync::Arc;

use scrinium_document::collation::Sensitivity;
use scrinium_document::json::{JsonText, JsonWriter};
use scrinium_formula::Formula;
use scrinium_javascript::Reducer;
use scrinium_mango::IndexDefinition;
use serde_json::Value;

use crate::hierarchy::Hierarchy;
use crate::resort::Resort;
use crate::scripts::Functions;

/// In which direction a column sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Ascending,
    Descending,
}

/// How a column that sorts puts its values in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnOrder {
    pub(crate) sort: Sort,
    /// Which differences of texts count.
    pub(crate) sensitivity: Sensitivity,
    /// In the order of Erlang's terms instead.
    pub(crate) is_raw: bool,
}

impl ColumnOrder {
    /// As CouchDB orders keys.
    pub(crate) const ASCENDING: Self =
        Self { sort: Sort::Ascending, sensitivity: Sensitivity::FULL, is_raw: false };
}

/// A column of a view.
#[derive(Clone)]
pub(crate) struct Column {
    pub(crate) title: String,
    /// The title as a JSON string.
    title_json: JsonText,
    pub(crate) sort: Option<Sort>,
    /// Which differences of its texts count where it sorts.
    pub(crate) sensitivity: Sensitivity,
    /// It sorts in CouchDB's raw order.
    pub(crate) is_raw: bool,
    /// Each element of a list is an entry of its own.
    pub(crate) category: bool,
    /// Its numbers are added up, and shown so.
    pub(crate) total: Option<Total>,
}

/// What a row of totals shows of a column's sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Total {
    Sum,
    /// Divided by the number of entries.
    Average,
    /// In percent of the sum of the category above.
    PercentOfParent,
    /// In percent of the sum of the whole view.
    PercentOfAll,
}

impl Column {
    pub(crate) fn new(title: String, sort: Option<Sort>) -> Self {
        Self {
            title_json: JsonText::of_string(&title),
            title,
            sort,
            sensitivity: Sensitivity::FULL,
            is_raw: false,
            category: false,
            total: None,
        }
    }

    /// How it orders, if it sorts.
    pub(crate) fn order(&self) -> Option<ColumnOrder> {
        let (sensitivity, is_raw) = (self.sensitivity, self.is_raw);
        self.sort.map(|sort| ColumnOrder { sort, sensitivity, is_raw })
    }
}

/// What a formula view says of its keys beyond its columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyOptions {
    /// Of the entries of a key the first is shown and no other.
    pub(crate) is_unique: bool,
    /// The orders that the view can be read in on request.
    pub(crate) resorts: Vec<Resort>,
    /// Where the columns lie, in the order in which they are shown, if that is another than theirs.
    pub(crate) shown: Option<Vec<usize>>,
}

/// Where the entries of a document come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// Formulas: which documents, and the value of each column.
    Formulas { selection: Formula, columns: Vec<Formula> },
    /// The fields of a Mango index, each a column.
    Mango(Arc<IndexDefinition>),
    /// CouchDB's map function; the columns are key and value.
    Script(Arc<Script>),
}

/// A view of a JavaScript design document.
pub(crate) struct Script {
    pub(crate) map: String,
    /// `views.lib`, whose modules the function may require.
    pub(crate) library: Option<Arc<Library>>,
    pub(crate) reducer: Option<Arc<Reducer>>,
    /// What the design document's `options` say.
    pub(crate) options: ScriptOptions,
}

/// Which documents map functions are given, and what is in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScriptOptions {
    /// Design documents too (`include_design`).
    pub(crate) includes_designs: bool,
    /// The number of the document's last change, as `_local_seq` (`local_seq`).
    pub(crate) tells_sequence: bool,
}

/// Modules that the map functions of a design document share.
pub(crate) struct Library {
    pub(crate) modules: Value,
    /// What tells it from others.
    pub(crate) functions: Functions,
}

/// A view as its design document describes it.
#[derive(Clone)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) columns: Vec<Column>,
    /// Responses are shown beneath the documents that they respond to.
    pub(crate) responses: Option<Hierarchy>,
    pub(crate) keys: KeyOptions,
    /// What the view holds depends on the time of day (`@Now`, `@Today`), not on documents alone.
    pub(crate) is_time_variant: bool,
    /// The same for the same view in any design document; an index belongs to it.
    pub(crate) identity: [u8; 16],
}

impl Definition {
    /// The columns that sort, in the order of the view's columns.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = (&Column, Sort)> {
        self.columns.iter().filter_map(|column| column.sort.map(|sort| (column, sort)))
    }

    /// How those columns order, which is the order of the entries.
    pub(crate) fn orders(&self) -> impl Iterator<Item = ColumnOrder> {
        self.columns.iter().filter_map(Column::order)
    }

    /// Where the columns lie, in the order in which they are shown.
    pub(crate) fn shown(&self) -> impl Iterator<Item = usize> {
        let as_they_are = if self.keys.shown.is_none() { 0..self.columns.len() } else { 0..0 };
        as_they_are.chain(self.keys.shown.iter().flatten().copied())
    }

    /// The key of an entry, from the JSON of its columns: a list of the sorted ones, or what a map function
    /// emitted.
    pub(crate) fn key_json(&self, columns: &[Cow<'_, str>]) -> JsonText {
        if let (Some(_), [key, _]) = (self.script(), columns) {
            return JsonText::of_entry(key);
        }
        let sorted = self.columns.iter().zip(columns).filter(|(column, _)| column.sort.is_some());
        list_of_entry(sorted.map(|(_, json)| json.as_ref()))
    }

    /// The value of an entry, from the JSON of its columns: an object of all of them; `null` in a Mango index.
    pub(crate) fn value_json(&self, columns: &[Cow<'_, str>]) -> JsonText {
        if let (Some(_), [_, value]) = (self.script(), columns) {
            return JsonText::of_entry(value);
        }
        if matches!(self.source, Source::Mango(_)) {
            return JsonText::default();
        }
        let bytes = 64 + columns.iter().map(|json| json.len() + 16).sum::<usize>();
        let mut out = JsonWriter::with_capacity(bytes);
        for (column, json) in self.shown().filter_map(|place| self.columns.get(place).zip(columns.get(place)))
        {
            out.literal(if out.is_empty() { "{" } else { "," });
            out.json(&column.title_json).literal(":").entry_value(json);
        }
        out.literal(if out.is_empty() { "{}" } else { "}" });
        out.into_text()
    }

    /// The functions of a JavaScript view.
    pub(crate) const fn script(&self) -> Option<&Arc<Script>> {
        match &self.source {
            Source::Script(script) => Some(script),
            Source::Formulas { .. } | Source::Mango(_) => None,
        }
    }

    /// Whether design documents can have entries.
    pub(crate) fn includes_designs(&self) -> bool {
        self.script().is_some_and(|script| script.options.includes_designs)
    }

    /// The columns with totals.
    pub(crate) fn totals(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.total.is_some())
    }
}

/// An array of values of an entry.
pub(super) fn list_of_entry<'a>(values: impl Iterator<Item = &'a str>) -> JsonText {
    let mut out = JsonWriter::with_capacity(64);
    for json in values {
        out.literal(if out.is_empty() { "[" } else { "," }).entry_value(json);
    }
    out.literal(if out.is_empty() { "[]" } else { "]" });
    out.into_text()
}
