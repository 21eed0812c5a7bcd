//! A [`Snapshot`] as CouchDB's `GET /_node/_local/_stats` shapes it.

use serde_json::{Map, Value, json};

use crate::{OperationSummary, Snapshot};

/// Nested objects, a level for each word of a name, and at the end of each
/// `{"value", "type", "desc"}`, where `type` is `counter`, `gauge` or `histogram`. Operations stand
/// under `Operations`; their values are milliseconds, as CouchDB's `request_time` is.
#[must_use]
pub fn couchdb_stats(snapshot: &Snapshot) -> Value {
    let mut root = Map::new();
    for (name, value) in &snapshot.counters {
        insert(&mut root, name, leaf(json!(value), "counter", name));
    }
    for (name, value) in &snapshot.gauges {
        insert(&mut root, name, leaf(json!(value), "gauge", name));
    }
    for (name, summary) in snapshot.operations.iter().filter(|(_, summary)| summary.count > 0) {
        let value = leaf(histogram(summary), "histogram", &format!("milliseconds of {name}"));
        insert(&mut root, &format!("Operations.{name}"), value);
    }
    Value::Object(root)
}

fn leaf(value: Value, kind: &str, description: &str) -> Map<String, Value> {
    let mut leaf = Map::new();
    leaf.insert("value".to_owned(), value);
    leaf.insert("type".to_owned(), json!(kind));
    leaf.insert("desc".to_owned(), json!(description));
    leaf
}

/// A name may be the beginning of another (`Server.Trans.PerMinute` and `.PerMinute.Peak`), so a leaf is
/// merged into what is there. Names begin their words with capitals and cannot meet a leaf's fields.
fn insert(root: &mut Map<String, Value>, name: &str, leaf: Map<String, Value>) {
    let mut object = root;
    for word in name.split('.') {
        let inner = object.entry(word).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(inner) = inner else { return };
        object = inner;
    }
    object.extend(leaf);
}

fn histogram(summary: &OperationSummary) -> Value {
    json!({
        "n": summary.count,
        "min": milliseconds(summary.min_us),
        "max": milliseconds(summary.max_us),
        "arithmetic_mean": summary.average_us / 1000.0,
        "median": milliseconds(summary.p50_us),
        "percentile": [
            [50, milliseconds(summary.p50_us)],
            [95, milliseconds(summary.p95_us)],
            [99, milliseconds(summary.p99_us)],
        ],
    })
}

#[allow(clippy::cast_precision_loss, reason = "a time needs no more than 53 bits")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}
