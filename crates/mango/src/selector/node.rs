//! The tree of a selector.

use std::sync::Arc;

use serde_json::{Value, json};

use super::condition::Condition;
use crate::path::FieldPath;

/// A selector, or a part of one.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    /// In the normal form only within `$elemMatch`, `$allMatch` and `$keyMapMatch`.
    Not(Box<Node>),
    /// As [`Node::Not`].
    Nor(Vec<Node>),
    Field(Arc<FieldCondition>),
}

/// A condition and the field whose value it is about.
#[derive(Clone, Debug)]
pub(crate) struct FieldCondition {
    pub(crate) path: FieldPath,
    /// Which of the selector's outermost fields the path begins with.
    pub(crate) place: usize,
    pub(crate) condition: Condition,
}

impl Node {
    pub(crate) fn to_json(&self) -> Value {
        let all = |nodes: &[Self]| nodes.iter().map(Self::to_json).collect::<Vec<_>>();
        match self {
            Self::And(nodes) => json!({ "$and": all(nodes) }),
            Self::Or(nodes) => json!({ "$or": all(nodes) }),
            Self::Nor(nodes) => json!({ "$nor": all(nodes) }),
            Self::Not(node) => json!({ "$not": node.to_json() }),
            Self::Field(field) => json!({ field.path.text(): field.condition.to_json() }),
        }
    }

    /// `$and`s within `$and`s are one.
    pub(crate) fn collect_conjuncts<'a>(&'a self, conjuncts: &mut Vec<&'a Self>) {
        match self {
            Self::And(nodes) => nodes.iter().for_each(|node| node.collect_conjuncts(conjuncts)),
            other => conjuncts.push(other),
        }
    }

    pub(crate) fn collect_field_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::And(nodes) | Self::Or(nodes) | Self::Nor(nodes) => {
                nodes.iter().for_each(|node| node.collect_field_names(names));
            }
            Self::Not(node) => node.collect_field_names(names),
            Self::Field(field) => names.push(field.path.text()),
        }
    }
}
