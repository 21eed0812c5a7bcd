//! Which documents are replicated.

use serde_json::{Map, Value};

/// Which documents are replicated.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Filter {
    /// All.
    #[default]
    All,
    /// These.
    Ids(Vec<String>),
    /// Those that a Mango selector matches.
    Selector(Value),
    /// Those that a filter function of a design document lets through: `design/filter`, and what is given to it.
    Function {
        /// `design/filter`, or `_design`, or `_view`.
        name: String,
        /// Parameters of the request that the function sees.
        parameters: Map<String, Value>,
    },
}

impl Filter {
    /// What belongs into the name of the checkpoints; `code` is the filter function's text.
    #[must_use]
    pub fn identity(&self, code: Option<&str>) -> Value {
        match self {
            Self::All => Value::Null,
            Self::Ids(ids) => {
                let mut ids = ids.clone();
                ids.sort_unstable();
                ids.dedup();
                serde_json::json!({"doc_ids": ids})
            }
            Self::Selector(selector) => serde_json::json!({"selector": selector}),
            Self::Function { name, parameters } => {
                // Their order in the order says nothing.
                let mut sorted: Vec<_> = parameters.iter().collect();
                sorted.sort_unstable_by_key(|(name, _)| name.as_str());
                serde_json::json!({"filter": name, "query_params": sorted, "code": code})
            }
        }
    }
}
