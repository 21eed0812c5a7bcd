//! Selectors: which documents are asked for.

mod condition;
mod evaluate;
mod negate;
mod node;
mod parse;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::document::Document;
use crate::error::MangoError;

pub(crate) use condition::{Comparison, Condition};
pub(crate) use node::{FieldCondition, Node};
pub(crate) use parse::check_nesting;
pub use parse::{MAX_CONDITIONS, MAX_NESTING, MAX_PATTERNS};

/// Which documents are asked for, in CouchDB's normal form: negations are pushed down to the conditions, and each
/// condition names its field in full.
///
/// Cheap to clone. Evaluating takes time in proportion to the conditions and to the values that they look at.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    /// None selects every document.
    root: Option<Node>,
    /// The outermost fields that conditions look at, each once.
    fields: Arc<[String]>,
}

impl Selector {
    /// Reads a selector as `_find`, `_changes?filter=_selector` and partial indexes take it.
    ///
    /// Patterns of `$regex` are searched in linear time. Those with look-around, back-references or atomic groups,
    /// which CouchDB's PCRE has, are refused; `a++` repeats twice instead of giving nothing back, `(?R)` is a flag, and
    /// `$` is the end of the text alone, not also the place before a line feed that ends it.
    ///
    /// # Errors
    /// What CouchDB refuses: unknown operators, arguments that an operator does not take, conditions without a
    /// field. [`MangoError::TooDeep`] and [`MangoError::TooMany`] beyond [`MAX_NESTING`], [`MAX_CONDITIONS`] and
    /// [`MAX_PATTERNS`]; `$text`, for which there is no service.
    pub fn parse(selector: &Value) -> Result<Self, MangoError> {
        check_nesting(selector)?;
        parse::parse(selector)
    }

    /// Whether the document is asked for. Documents that are deleted or design documents are not told apart.
    #[must_use]
    pub fn matches(&self, document: &dyn Document) -> bool {
        self.root.as_ref().is_none_or(|root| evaluate::matches(root, &self.fields, document))
    }

    /// Whether it is `{}`, which asks for every document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The normal form as JSON, which `_explain` shows. Reading it gives the same selector again.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.root.as_ref().map_or_else(|| json!({}), Node::to_json)
    }

    pub(crate) fn root(&self) -> Option<&Node> {
        self.root.as_ref()
    }

    /// What must hold all together: the selector taken apart at its outer `$and`s.
    pub(crate) fn conjuncts(&self) -> Vec<&Node> {
        let mut conjuncts = Vec::new();
        if let Some(root) = &self.root {
            root.collect_conjuncts(&mut conjuncts);
        }
        conjuncts
    }

    /// The conditions that must hold all together, without `$or` and what lies within it.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Arc<FieldCondition>> {
        self.conjuncts().into_iter().filter_map(|node| match node {
            Node::Field(field) => Some(field),
            _ => None,
        })
    }

    /// The conjuncts that `kept` answers true for.
    pub(crate) fn retain(&self, kept: impl Fn(&Node) -> bool) -> Self {
        let mut nodes: Vec<Node> = self.conjuncts().into_iter().filter(|node| kept(node)).cloned().collect();
        let root = if nodes.len() > 1 { Some(Node::And(nodes)) } else { nodes.pop() };
        Self { root, fields: Arc::clone(&self.fields) }
    }

    /// The names of all fields in conditions, as they were written; again if they occur again.
    pub(crate) fn field_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        if let Some(root) = &self.root {
            root.collect_field_names(&mut names);
        }
        names
    }
}
