//! Evaluating documents for views: which rows each has, and with them its entries.

use scrinium_formula::{Environment, Formula};
use serde_json::Value;

use super::View;
use super::definition::{Definition, Source};
use super::document::Document;
use super::entries::{Entry, entries_of};
use crate::database::Database;
use crate::error::Result;
use crate::leaf::Leaf;

/// A document is under at most so many combinations of categories.
const MAX_ENTRIES: usize = 1000;

/// Evaluates documents for some views, on one thread.
pub(super) struct Evaluator<'a> {
    database: &'a Database,
    views: Vec<&'a View>,
    environment: &'a Environment,
}

impl<'a> Evaluator<'a> {
    pub(super) const fn new(
        database: &'a Database,
        views: Vec<&'a View>,
        environment: &'a Environment,
    ) -> Self {
        Self { database, views, environment }
    }

    /// The entries of a document in each of the views.
    pub(super) fn entries(&mut self, id: &str, leaf: &Leaf<'_>) -> Result<Vec<Vec<Entry>>> {
        let document = Document::new(self.database, id, leaf)?;
        let of_view = |view: &&View| {
            let rows = rows(&view.definition, &document, self.environment);
            entries_of(&view.definition, id, &rows)
        };
        Ok(self.views.iter().map(of_view).collect())
    }
}

/// The rows of a document in a view, each a value for every column; none if the view does not have it.
fn rows(definition: &Definition, document: &Document<'_>, environment: &Environment) -> Vec<Vec<Value>> {
    match &definition.source {
        Source::Mango(index) => index.keys(document).into_iter().collect(),
        Source::Formulas { selection, columns } => {
            // A formula that fails on a document does not select it: one odd document must not stop a view.
            if !selection.selects(document, environment).unwrap_or(false) {
                return Vec::new();
            }
            let value = |formula: &Formula| {
                let value = formula.evaluate(document, environment);
                value.map_or(Value::Null, |value| value.to_json())
            };
            exploded(definition, columns.iter().map(value).collect())
        }
    }
}

/// A row for each combination of elements of lists in category columns.
fn exploded(definition: &Definition, row: Vec<Value>) -> Vec<Vec<Value>> {
    let mut rows = vec![row];
    for (column, definition) in definition.columns.iter().enumerate() {
        let is_list = |row: &Vec<Value>| matches!(row.get(column), Some(Value::Array(_)));
        if definition.category && rows.iter().any(is_list) {
            rows = rows.into_iter().flat_map(|row| explode(row, column)).take(MAX_ENTRIES).collect();
        }
    }
    rows
}

/// A row for each element of a list in a category column.
fn explode(mut row: Vec<Value>, column: usize) -> Vec<Vec<Value>> {
    let elements = match row.get_mut(column).map(Value::take) {
        Some(Value::Array(elements)) if !elements.is_empty() => elements,
        Some(other) => vec![other],
        None => return vec![row],
    };
    elements
        .into_iter()
        .map(|element| {
            let mut row = row.clone();
            if let Some(place) = row.get_mut(column) {
                *place = element;
            }
            row
        })
        .collect()
}
