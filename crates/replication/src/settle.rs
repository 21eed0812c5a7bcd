//! Conflicts that replications bring, settled by a rule.
//!
//! A rule looks at the leaves of a document alone, so that every server that settles the same conflict by the same rule comes to
//! the same revisions, and no new conflict comes of it.

use std::sync::Arc;

use scrinium_assertion::never;
use scrinium_database::{
    DatabaseError, Edit, OpenRevision, OpenRevisions, ReadOptions, Result as DatabaseResult,
    TransactionRefusal, update_together,
};
use scrinium_document::collation::sort_key;
use scrinium_document::json::stored_value;
use scrinium_formula::{Environment, Fields, Formula, Text, Value as FormulaValue};
use scrinium_views::DatabaseSession;
use serde_json::{Map, Value, json};

use crate::error::{ReplicationError, Result};

/// Leaves of a document that are settled; more are left to people.
const LEAVES_MAX: usize = 100;
/// Elements of a union.
const ELEMENTS_MAX: usize = 10_000;

/// What becomes of conflicts: which leaf is kept, and what it takes over from the others.
#[derive(Clone, Debug)]
pub struct SettleRule {
    /// As it was ordered: it stands for the rule where rules are compared.
    source: Value,
    /// The leaf for which this is greatest is kept; the winner where it is the same for several, or there is none.
    keep: Option<Arc<Formula>>,
    /// Fields with lists, of which all elements are kept.
    unions: Vec<String>,
}

impl PartialEq for SettleRule {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl SettleRule {
    /// `{"newest": "Modified"}`, `{"formula": "@If(State = \"done\"; 1; 0)"}`, each perhaps with `"union": ["Tags"]`, or that
    /// alone.
    ///
    /// # Errors
    /// What of it makes no sense.
    pub fn parse(source: &Value) -> Result<Self> {
        let refused = || {
            ReplicationError::order(
                "`settle_conflicts` must be an object with `newest` (a field), `formula`, or `union` (a list of fields)."
                    .to_owned(),
            )
        };
        let members = source.as_object().ok_or_else(refused)?;
        if members.is_empty()
            || members.keys().any(|name| !["newest", "formula", "union"].contains(&name.as_str()))
        {
            return Err(refused());
        }
        let text = |name: &str| match members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.as_str())),
            Some(_) => Err(refused()),
        };
        let formula = match (text("newest")?, text("formula")?) {
            (Some(_), Some(_)) => return Err(refused()),
            (Some(field), None) if field.contains(['"', '\\']) => {
                return Err(ReplicationError::order(format!(
                    "`settle_conflicts`: `newest` takes no quotation mark and no backslash in the name of a field, and {field:?} \
                     has one."
                )));
            }
            (Some(field), None) => Some(format!("@GetField(\"{field}\")")),
            (None, formula) => formula.map(str::to_owned),
        };
        let keep = formula.map(|formula| {
            let compiled = Formula::compile(&formula);
            compiled
                .map(Arc::new)
                .map_err(|error| ReplicationError::order(format!("`settle_conflicts`: {error}")))
        });
        let unions = match members.get("union") {
            None => Vec::new(),
            Some(Value::Array(names)) => {
                let names = names.iter().map(|name| name.as_str().filter(|name| !name.starts_with('_')));
                names
                    .map(|name| name.map(str::to_owned).ok_or_else(refused))
                    .collect::<Result<Vec<String>>>()?
            }
            Some(_) => return Err(refused()),
        };
        Ok(Self { source: source.clone(), keep: keep.transpose()?, unions })
    }

    /// As it was ordered.
    #[must_use]
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// The place of the leaf that is kept.
    fn kept(&self, leaves: &[Map<String, Value>], environment: &Environment) -> usize {
        let Some(formula) = &self.keep else { return 0 };
        let mut best: (usize, Vec<u8>) = (0, Vec::new());
        for (place, leaf) in leaves.iter().enumerate() {
            // A formula that fails on a leaf says nothing for it.
            let value = formula.evaluate(&LeafFields(leaf), environment).ok();
            let key = value.map(|value| sort_key(&value.to_json())).unwrap_or_default();
            if key > best.1 {
                best = (place, key);
            }
        }
        best.0
    }

    /// The leaf that is kept, with what it takes over; whether that changes it.
    fn merged(&self, leaves: &[Map<String, Value>], kept: usize) -> Option<Map<String, Value>> {
        let mut merged = leaves.get(kept)?.clone();
        let before = merged.clone();
        for name in &self.unions {
            let mut elements: Vec<Value> = Vec::new();
            let others = leaves.iter().enumerate().filter(|(place, _)| *place != kept).map(|(_, leaf)| leaf);
            for leaf in leaves.get(kept).into_iter().chain(others) {
                let values = match leaf.get(name) {
                    None | Some(Value::Null) => &[][..],
                    Some(Value::Array(values)) => values.as_slice(),
                    Some(value) => std::slice::from_ref(value),
                };
                for value in values {
                    if !elements.contains(value) && elements.len() < ELEMENTS_MAX {
                        elements.push(value.clone());
                    }
                }
            }
            let is_as_it_was = elements.len() <= 1 && merged.get(name) == elements.first();
            if !is_as_it_was {
                merged.insert(name.clone(), Value::Array(elements));
            }
        }
        (merged != before).then_some(merged)
    }
}

/// A leaf as formulas see it.
struct LeafFields<'a>(&'a Map<String, Value>);

impl Fields for LeafFields<'_> {
    fn field(&self, name: &str) -> Option<FormulaValue> {
        let mut fields = self.0.iter().filter(|(known, _)| !known.starts_with('_'));
        let (_, json) = fields.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        FormulaValue::from_json(json)
    }

    fn id(&self) -> &str {
        self.0.get("_id").and_then(Value::as_str).unwrap_or_default()
    }

    fn field_names(&self) -> Option<Vec<Text>> {
        let names = self.0.keys().filter(|name| !name.starts_with('_'));
        Some(names.map(|name| Text::new(name.as_str())).collect())
    }
}

/// Settles the conflicts of a document, as far as the one who does may; whether there were any.
///
/// # Errors
/// What the store reports. Somebody else who edits the document meanwhile is no error: the conflict stays for the next time.
pub fn settle(session: &DatabaseSession, id: &str, rule: &SettleRule) -> DatabaseResult<bool> {
    let found = match session.open_revisions(id, &OpenRevisions::All, &ReadOptions::default()) {
        Err(DatabaseError::NotFound { .. }) => return Ok(false),
        found => found?,
    };
    let leaves = found.into_iter().filter_map(|leaf| match leaf {
        OpenRevision::Found(leaf) if !leaf.deleted => match stored_value(leaf.json.as_str())? {
            Value::Object(members) => Some(members),
            _ => None,
        },
        _ => None,
    });
    let mut leaves: Vec<Map<String, Value>> = leaves.collect();
    if leaves.len() < 2 || leaves.len() > LEAVES_MAX {
        return Ok(false);
    }
    // The winner first: that of the longest history, and of these the one with the greatest name.
    leaves.sort_by_cached_key(|leaf| std::cmp::Reverse(revision_key(leaf)));
    let environment = Environment::default();
    let kept = rule.kept(&leaves, &environment);
    let mut edits: Vec<Edit> =
        rule.merged(&leaves, kept).into_iter().map(|merged| edit(&Value::Object(merged))).collect();
    for (_, leaf) in leaves.iter().enumerate().filter(|(place, _)| *place != kept) {
        edits.push(edit(&json!({"_id": id, "_rev": leaf.get("_rev"), "_deleted": true})));
    }
    // All or nothing: leaves stay where the one that takes over from them cannot be stored.
    let part = session.clone().transaction_part(Vec::new(), edits);
    match update_together(vec![part]) {
        Ok(update) => update.wait().map(|_| true),
        Err(
            TransactionRefusal::Edit { error: DatabaseError::Conflict, .. }
            | TransactionRefusal::Whole(DatabaseError::Conflict),
        ) => Ok(true),
        Err(TransactionRefusal::Edit { error, .. } | TransactionRefusal::Whole(error)) => Err(error),
        Err(TransactionRefusal::Condition { id, .. }) => {
            Err(never!("a settlement has no conditions", "{id}").into())
        }
    }
}

fn edit(document: &Value) -> Edit {
    Edit { json: document.to_string().into(), ..Edit::default() }
}

fn revision_key(leaf: &Map<String, Value>) -> (u64, String) {
    let revision = leaf.get("_rev").and_then(Value::as_str).unwrap_or_default();
    let (number, name) = revision.split_once('-').unwrap_or_default();
    (number.parse().unwrap_or_default(), name.to_owned())
}
