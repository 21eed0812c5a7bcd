//! The ranges of ids, where all documents are read.

use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::{MAX_RANGES, Narrowed};
use crate::bounds::IdRange;
use crate::selector::{Comparison, Condition, Node, Selector};

/// Design documents are not asked for by `_find`; their ids lie from the first of these to before the second.
const DESIGN_DOCUMENTS: (&str, &str) = ("_design/", "_design0");

/// The ranges of ids, ascending, without those of design documents. They answer for the conditions on `_id`, since
/// ids are texts, which are compared byte by byte.
pub(crate) fn document_ranges(selector: &Selector) -> Narrowed<IdRange> {
    let mut ids = Ids::between(Bound::Unbounded, Bound::Unbounded);
    let mut answered = HashSet::new();
    for field in selector.conditions().filter(|field| field.path.text() == "_id") {
        if ids.narrow(&field.condition) {
            answered.insert(Arc::as_ptr(field));
        }
    }
    let residual = selector.retain(|node| match node {
        Node::Field(field) => !answered.contains(&Arc::as_ptr(field)),
        _ => true,
    });
    Narrowed { ranges: ids.ranges(), residual }
}

/// The ids between two, and perhaps only some.
struct Ids {
    start: Bound<String>,
    end: Bound<String>,
    among: Option<BTreeSet<String>>,
}

impl Ids {
    fn between(start: Bound<String>, end: Bound<String>) -> Self {
        Self { start, end, among: None }
    }

    /// Leaves out what the condition does, and says whether it then holds for all that remain.
    fn narrow(&mut self, condition: &Condition) -> bool {
        match condition {
            Condition::Exists(true) => true,
            Condition::Compare(comparison, operand) => match &operand.value {
                Value::String(id) => self.compare(*comparison, id),
                _ => self.compare_with_no_text(*comparison),
            },
            Condition::BeginsWith(prefix) => {
                self.raise(Bound::Included(prefix.clone()));
                self.lower(behind_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded));
                true
            }
            Condition::In { set, negated: false } => {
                self.keep_in(set.values.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            _ => false,
        }
    }

    fn compare(&mut self, comparison: Comparison, id: &str) -> bool {
        let id = id.to_owned();
        match comparison {
            Comparison::NotEqual => return false,
            Comparison::Less => self.lower(Bound::Excluded(id)),
            Comparison::LessOrEqual => self.lower(Bound::Included(id)),
            Comparison::Greater => self.raise(Bound::Excluded(id)),
            Comparison::GreaterOrEqual => self.raise(Bound::Included(id)),
            Comparison::Equal => {
                self.raise(Bound::Included(id.clone()));
                self.lower(Bound::Included(id));
            }
        }
        true
    }

    /// Every id is above whatever is no text.
    fn compare_with_no_text(&mut self, comparison: Comparison) -> bool {
        if matches!(comparison, Comparison::Less | Comparison::LessOrEqual | Comparison::Equal) {
            self.keep_among(BTreeSet::new());
        }
        true
    }

    /// Of many ids, those from the first to the last are kept.
    fn keep_in(&mut self, ids: BTreeSet<String>) -> bool {
        match (ids.first(), ids.last()) {
            (Some(first), Some(last)) if ids.len() > MAX_RANGES => {
                self.raise(Bound::Included(first.clone()));
                self.lower(Bound::Included(last.clone()));
                false
            }
            _ => {
                self.keep_among(ids);
                true
            }
        }
    }

    fn keep_among(&mut self, ids: BTreeSet<String>) {
        self.among = Some(match self.among.take() {
            Some(among) => among.intersection(&ids).cloned().collect(),
            None => ids,
        });
    }

    fn raise(&mut self, bound: Bound<String>) {
        let is_higher = match (&bound, &self.start) {
            (Bound::Unbounded, _) => false,
            (_, Bound::Unbounded) => true,
            (Bound::Excluded(new), Bound::Included(old) | Bound::Excluded(old)) => new >= old,
            (Bound::Included(new), Bound::Included(old) | Bound::Excluded(old)) => new > old,
        };
        if is_higher {
            self.start = bound;
        }
    }

    fn lower(&mut self, bound: Bound<String>) {
        let is_lower = match (&bound, &self.end) {
            (Bound::Unbounded, _) => false,
            (_, Bound::Unbounded) => true,
            (Bound::Excluded(new), Bound::Included(old) | Bound::Excluded(old)) => new <= old,
            (Bound::Included(new), Bound::Included(old) | Bound::Excluded(old)) => new < old,
        };
        if is_lower {
            self.end = bound;
        }
    }

    fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (
                Bound::Included(start) | Bound::Excluded(start),
                Bound::Included(end) | Bound::Excluded(end),
            ) => start >= end,
        }
    }

    fn ranges(self) -> Vec<IdRange> {
        let (first, behind) = DESIGN_DOCUMENTS;
        let mut parts = [
            Self::between(Bound::Unbounded, Bound::Excluded(first.to_owned())),
            Self::between(Bound::Included(behind.to_owned()), Bound::Unbounded),
        ];
        for part in &mut parts {
            part.raise(self.start.clone());
            part.lower(self.end.clone());
        }
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let parts: Vec<IdRange> = parts.map(|part| IdRange { start: part.start, end: part.end }).collect();
        let Some(among) = self.among else { return parts };
        let among = among.into_iter().filter(|id| parts.iter().any(|part| part.contains(id)));
        among.map(|id| IdRange { start: Bound::Included(id.clone()), end: Bound::Included(id) }).collect()
    }
}

/// The first text above all that begin with the prefix; none if there is no such.
fn behind_prefix(prefix: &str) -> Option<String> {
    let mut characters: Vec<char> = prefix.chars().collect();
    while let Some(last) = characters.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            characters.push(next);
            return Some(characters.into_iter().collect());
        }
    }
    None
}
