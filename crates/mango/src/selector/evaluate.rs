//! Whether a document matches.
//!
//! An empty `$and` or `$or` holds, as in CouchDB. The recursion is as deep as the selector, which is bounded.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::Value;

use super::condition::Condition;
use super::node::{FieldCondition, Node};
use crate::document::Document;
use crate::path::{PathFinding, walk};

/// A document's fields, each read once however many conditions look at it.
struct Reader<'a> {
    document: &'a dyn Document,
    names: &'a [String],
    fields: Vec<OnceCell<Option<Cow<'a, Value>>>>,
    whole: OnceCell<Cow<'a, Value>>,
}

impl Reader<'_> {
    fn find(&self, field: &FieldCondition) -> PathFinding<&Value> {
        let Some((_, inner)) = field.path.names().split_first() else {
            return PathFinding::Value(self.whole.get_or_init(|| self.document.whole()));
        };
        let (Some(cell), Some(name)) = (self.fields.get(field.place), self.names.get(field.place)) else {
            return PathFinding::Missing;
        };
        match cell.get_or_init(|| self.document.field(name)) {
            Some(value) => walk(value, inner),
            None => PathFinding::Missing,
        }
    }
}

pub(crate) fn matches(root: &Node, names: &[String], document: &dyn Document) -> bool {
    let fields = names.iter().map(|_| OnceCell::new()).collect();
    let reader = Reader { document, names, fields, whole: OnceCell::new() };
    holds(root, &|field| condition_holds(&field.condition, &reader.find(field)))
}

/// Whether a value within a document matches: an element of an array, the name of a member.
pub(crate) fn matches_value(node: &Node, value: &Value) -> bool {
    holds(node, &|field| condition_holds(&field.condition, &walk(value, field.path.names())))
}

fn holds(node: &Node, field_holds: &dyn Fn(&FieldCondition) -> bool) -> bool {
    match node {
        Node::And(nodes) => nodes.iter().all(|node| holds(node, field_holds)),
        Node::Or(nodes) => nodes.is_empty() || nodes.iter().any(|node| holds(node, field_holds)),
        Node::Not(node) => !holds(node, field_holds),
        Node::Nor(nodes) => !nodes.iter().any(|node| holds(node, field_holds)),
        Node::Field(field) => field_holds(field),
    }
}

fn condition_holds(condition: &Condition, found: &PathFinding<&Value>) -> bool {
    match found {
        PathFinding::Value(value) => condition.holds(value),
        PathFinding::Missing => matches!(condition, Condition::Exists(false)),
        PathFinding::Unreachable => false,
    }
}
