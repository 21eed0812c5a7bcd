//! All statistics as the fields of a document.

use scrinium_statistics::Snapshot;
use serde_json::{Map, Number, Value};

/// Counters and gauges under their own names; of each operation that ran `NAME.Count`, and `NAME.TotalMilliseconds`,
/// `NAME.P95Milliseconds` and `NAME.MaxMilliseconds`, all since the start.
pub(super) fn fields(snapshot: &Snapshot) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in &snapshot.counters {
        fields.insert(name.clone(), Value::from(*value));
    }
    for (name, value) in &snapshot.gauges {
        fields.insert(name.clone(), number(*value));
    }
    for (name, summary) in snapshot.operations.iter().filter(|(_, summary)| summary.count > 0) {
        fields.insert(format!("{name}.Count"), Value::from(summary.count));
        let times = [("Total", summary.total_us), ("P95", summary.p95_us), ("Max", summary.max_us)];
        for (which, microseconds) in times {
            fields.insert(format!("{name}.{which}Milliseconds"), number(milliseconds(microseconds)));
        }
    }
    fields
}

#[allow(clippy::cast_precision_loss, reason = "a time needs no more than 53 bits")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

/// Whole numbers without a point, others to a thousandth; what is no number is null.
#[allow(clippy::cast_possible_truncation, reason = "it is within what is exact")]
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let rounded = (value * 1000.0).round() / 1000.0;
    if rounded.fract() == 0.0 && rounded.abs() < EXACT {
        return Value::from(rounded as i64);
    }
    Number::from_f64(rounded).map_or(Value::Null, Value::Number)
}
