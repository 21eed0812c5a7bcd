//! Negations, pushed down to the conditions, where an index may serve them.
//!
//! This is more than another way to write the same: `{"$not": {"a": 1}}` becomes `{"a": {"$ne": 1}}`, which asks for
//! the field to be there. CouchDB does it outside `$elemMatch`, `$allMatch` and `$keyMapMatch`, and not within them.

use std::sync::Arc;

use super::condition::Condition;
use super::node::{FieldCondition, Node};

/// The same without `$not` and `$nor`, but for what they leave at a condition.
pub(crate) fn push_down(node: Node) -> Node {
    match node {
        Node::Not(inner) => negate(*inner),
        Node::Nor(nodes) => Node::And(nodes.into_iter().map(negate).collect()),
        Node::And(nodes) => Node::And(nodes.into_iter().map(push_down).collect()),
        Node::Or(nodes) => Node::Or(nodes.into_iter().map(push_down).collect()),
        Node::Field(field) => Node::Field(field),
    }
}

fn negate(node: Node) -> Node {
    match node {
        Node::Not(inner) => push_down(*inner),
        Node::Nor(nodes) => Node::Or(nodes.into_iter().map(push_down).collect()),
        Node::And(nodes) => Node::Or(nodes.into_iter().map(negate).collect()),
        Node::Or(nodes) => Node::And(nodes.into_iter().map(negate).collect()),
        Node::Field(field) => Node::Field(Arc::new(FieldCondition {
            path: field.path.clone(),
            place: field.place,
            condition: negate_condition(field.condition.clone()),
        })),
    }
}

fn negate_condition(condition: Condition) -> Condition {
    match condition {
        Condition::Compare(comparison, operand) => Condition::Compare(comparison.negated(), operand),
        Condition::In { set, negated } => Condition::In { set, negated: !negated },
        Condition::Exists(expected) => Condition::Exists(!expected),
        other => Condition::Not(Box::new(other)),
    }
}
