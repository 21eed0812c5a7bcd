//! What `_explain` answers.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::choice::{Candidate, Choice, Judgement, choose, prefix};
use crate::error::MangoError;
use crate::field_range::{all_documents_keys, index_keys, indexable_fields};
use crate::index::{IndexDefinition, all_documents_to_json};
use crate::plan::{covers_projection, covers_query};
use crate::query::Query;
use crate::ranges::asks_for_nothing;
use crate::sort::Direction;

/// How a query would be answered, and why not otherwise, as CouchDB 3.4 tells it.
///
/// `mrargs` are the arguments that CouchDB would read a view with; what [`plan`](crate::plan()) reads lies within.
///
/// # Errors
/// As [`plan`](crate::plan()), but for [`MangoError::NoSortIndex`]: then `index` is `null`.
pub fn explain(database: &str, query: &Query, indexes: &[Arc<IndexDefinition>]) -> Result<Value, MangoError> {
    if let Some(text) = &query.text {
        return Ok(explain_text(database, query, text));
    }
    let choice = choose(query, indexes)?;
    let mut answer = Map::new();
    let mut tell = |name: &str, value: Value| answer.insert(name.to_owned(), value);
    tell("dbname", json!(database));
    tell("index", choice.chosen.as_ref().map_or(Value::Null, candidate_to_json));
    tell("partitioned", json!(false));
    tell("selector", query.selector.to_json());
    tell("opts", query.options_to_json());
    tell("limit", json!(query.limit));
    tell("skip", json!(query.skip));
    tell("fields", query.fields.to_json());
    let candidates = choice.others.iter().map(|judgement| judgement_to_json(judgement, query));
    tell("index_candidates", candidates.collect());
    tell("selector_hints", json!([selector_hints(query)]));
    if let Some(chosen) = &choice.chosen {
        let covering = match chosen {
            Candidate::Index(index) => covers_query(index, query),
            Candidate::AllDocuments => false,
        };
        tell("mrargs", view_arguments(query, &choice, chosen, covering));
        tell("covering", json!(covering));
    }
    Ok(Value::Object(answer))
}

/// Words are looked for in the text index of the database, whatever else there is.
fn explain_text(database: &str, query: &Query, text: &str) -> Value {
    json!({
        "dbname": database,
        "index": {
            "ddoc": null, "name": "_fulltext", "type": "text", "partitioned": false, "def": { "fields": "all_fields" },
        },
        "partitioned": false,
        "selector": query.selector.to_json(),
        "opts": query.options_to_json(),
        "limit": query.limit,
        "skip": query.skip,
        "fields": query.fields.to_json(),
        "query": text,
        "covering": false,
    })
}

fn candidate_to_json(candidate: &Candidate) -> Value {
    match candidate {
        Candidate::Index(index) => index.to_json(),
        Candidate::AllDocuments => all_documents_to_json(),
    }
}

fn judgement_to_json(judgement: &Judgement, query: &Query) -> Value {
    let covering = match &judgement.candidate {
        Candidate::Index(index) => json!(covers_projection(index, query)),
        Candidate::AllDocuments => Value::Null,
    };
    json!({
        "index": candidate_to_json(&judgement.candidate),
        "analysis": {
            "usable": judgement.usable,
            "reasons": [{ "name": judgement.reason.name() }],
            "ranking": judgement.ranking,
            "covering": covering,
        },
    })
}

fn selector_hints(query: &Query) -> Value {
    let indexable = indexable_fields(&query.selector);
    let mut others = query.selector.field_names();
    others.retain(|name| indexable.binary_search(name).is_err());
    others.sort_unstable();
    others.dedup();
    json!({ "type": "json", "indexable_fields": indexable, "unindexable_fields": others })
}

fn view_arguments(query: &Query, choice: &Choice, chosen: &Candidate, covering: bool) -> Value {
    let (lowest, highest) = match chosen {
        _ if asks_for_nothing(&query.selector) => (Value::Null, Value::Null),
        Candidate::Index(index) => index_keys(&prefix(index, &choice.field_ranges)),
        Candidate::AllDocuments => {
            let range = choice.field_ranges.iter().find(|(name, _)| name == "_id");
            all_documents_keys(range.map(|(_, range)| range))
        }
    };
    let (start_key, end_key, direction) = match query.direction() {
        Direction::Ascending => (lowest, highest, "fwd"),
        Direction::Descending => (highest, lowest, "rev"),
    };
    json!({
        "include_docs": query.read_quorum == 1 && !covering,
        "view_type": "map",
        "reduce": false,
        "partition": null,
        "start_key": start_key,
        "end_key": end_key,
        "direction": direction,
        "stable": query.stable,
        "update": query.update,
        "conflicts": if query.conflicts { json!(true) } else { json!("undefined") },
    })
}
