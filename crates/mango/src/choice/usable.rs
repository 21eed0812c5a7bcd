//! Whether an index has every document that a query can answer, in the order asked for.

use super::Reason;
use crate::field_range::indexable_fields;
use crate::index::IndexDefinition;
use crate::query::Query;
use crate::selector::{Comparison, Condition, Node, Selector};

/// An index has the documents that have all its fields. So each of them must be asked for by the selector, or be
/// sorted by, since a document without it has no place in that order; `_id` and `_rev` are always there.
pub(super) fn index_usable(index: &IndexDefinition, query: &Query) -> Result<(), Reason> {
    let sorted = query.sort_names();
    let columns: Vec<&str> = index.fields().iter().map(|field| field.path.text()).collect();
    let required = columns
        .iter()
        .copied()
        .filter(|column| !sorted.contains(column) && !matches!(*column, "_id" | "_rev"))
        .collect();
    if !not_required(query.selector.root(), required).is_empty() {
        return Err(Reason::FieldMismatch);
    }
    if !gives_order(&columns, &sorted, &query.selector) {
        return Err(Reason::SortOrderMismatch);
    }
    Ok(())
}

/// All documents come in the order of their ids, which CouchDB takes for sorted only if the selector has a range for
/// them.
pub(super) fn all_documents_usable(query: &Query) -> Result<(), Reason> {
    match query.sort_names().as_slice() {
        [] => Ok(()),
        _ if !indexable_fields(&query.selector).contains(&"_id") => Err(Reason::FieldMismatch),
        ["_id"] => Ok(()),
        _ => Err(Reason::SortOrderMismatch),
    }
}

/// Of these fields those that a document may lack although it matches.
fn not_required<'a>(node: Option<&Node>, fields: Vec<&'a str>) -> Vec<&'a str> {
    match node {
        None | Some(Node::Not(_) | Node::Nor(_)) => fields,
        Some(Node::And(nodes)) => nodes.iter().fold(fields, |fields, node| not_required(Some(node), fields)),
        // An empty `$or` matches, and requires nothing.
        Some(Node::Or(nodes)) if nodes.is_empty() => fields,
        Some(Node::Or(nodes)) => {
            let mut lacking = Vec::new();
            for node in nodes {
                lacking.extend(not_required(Some(node), fields.clone()));
            }
            fields.into_iter().filter(|field| lacking.contains(field)).collect()
        }
        Some(Node::Field(field)) if matches!(field.condition, Condition::Exists(false)) => fields,
        Some(Node::Field(field)) => fields.into_iter().filter(|name| *name != field.path.text()).collect(),
    }
}

/// The columns begin with the sorted fields, after columns that have one value only.
fn gives_order(columns: &[&str], sorted: &[&str], selector: &Selector) -> bool {
    let Some(first) = sorted.first() else { return true };
    let constant = |column: &&str| {
        selector.conditions().any(|field| {
            field.path.text() == *column
                && matches!(field.condition, Condition::Compare(Comparison::Equal, _))
        })
    };
    let skipped = columns.iter().take_while(|column| *column != first && constant(column)).count();
    columns.get(skipped..).is_some_and(|columns| columns.starts_with(sorted))
}
