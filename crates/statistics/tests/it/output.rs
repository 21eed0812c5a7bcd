//! What Prometheus and CouchDB's clients read is exactly what their formats say.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use scrinium_statistics::{Registry, Snapshot, breaks_line, couchdb_stats, one_line, prometheus_text};
use serde_json::json;

fn example() -> Snapshot {
    let registry = Registry::new();
    registry.counter("Log.Bytes").add(123_456);
    registry.counter("Server.Trans.Total").add(7);
    registry.gauge("Database.NIFPool.Used", || 1.5);
    registry.gauge("Server.Trans.PerMinute", || 60.0);
    registry.gauge("Server.Trans.PerMinute.Peak", || 90.0);
    registry.gauge("Server.Users.5MinPeak", || f64::INFINITY);
    let operation = registry.operation("OPEN_NOTE");
    for _ in 0..4 {
        operation.record(Duration::from_micros(100));
    }
    let _never_ran = registry.operation("DELETE_NOTE");
    registry.snapshot()
}

#[test]
fn prometheus() {
    let expected = r#"# HELP scrinium_log_bytes_total Statistic Log.Bytes.
# TYPE scrinium_log_bytes_total counter
scrinium_log_bytes_total 123456
# HELP scrinium_server_trans_total Statistic Server.Trans.Total.
# TYPE scrinium_server_trans_total counter
scrinium_server_trans_total 7
# HELP scrinium_database_nif_pool_used Statistic Database.NIFPool.Used.
# TYPE scrinium_database_nif_pool_used gauge
scrinium_database_nif_pool_used 1.5
# HELP scrinium_server_trans_per_minute Statistic Server.Trans.PerMinute.
# TYPE scrinium_server_trans_per_minute gauge
scrinium_server_trans_per_minute 60
# HELP scrinium_server_trans_per_minute_peak Statistic Server.Trans.PerMinute.Peak.
# TYPE scrinium_server_trans_per_minute_peak gauge
scrinium_server_trans_per_minute_peak 90
# HELP scrinium_server_users_5_min_peak Statistic Server.Users.5MinPeak.
# TYPE scrinium_server_users_5_min_peak gauge
scrinium_server_users_5_min_peak +Inf
# HELP scrinium_operation_seconds Time taken by each operation since the server started.
# TYPE scrinium_operation_seconds summary
scrinium_operation_seconds{operation="OPEN_NOTE",quantile="0.5"} 0.0001
scrinium_operation_seconds{operation="OPEN_NOTE",quantile="0.95"} 0.0001
scrinium_operation_seconds{operation="OPEN_NOTE",quantile="0.99"} 0.0001
scrinium_operation_seconds_sum{operation="OPEN_NOTE"} 0.0004
scrinium_operation_seconds_count{operation="OPEN_NOTE"} 4
# HELP scrinium_operation_max_seconds Longest time taken by each operation since the server started.
# TYPE scrinium_operation_max_seconds gauge
scrinium_operation_max_seconds{operation="OPEN_NOTE"} 0.0001
"#;
    assert_eq!(prometheus_text(&example()), expected);
}

#[test]
fn couchdb() {
    let gauge = |value, name: &str| json!({"value": value, "type": "gauge", "desc": name});
    let mut per_minute = gauge(json!(60.0), "Server.Trans.PerMinute");
    per_minute["Peak"] = gauge(json!(90.0), "Server.Trans.PerMinute.Peak");
    assert_eq!(
        couchdb_stats(&example()),
        json!({
            "Log": {"Bytes": {"value": 123_456, "type": "counter", "desc": "Log.Bytes"}},
            "Server": {
                "Trans": {
                    "Total": {"value": 7, "type": "counter", "desc": "Server.Trans.Total"},
                    "PerMinute": per_minute,
                },
                "Users": {"5MinPeak": gauge(json!(null), "Server.Users.5MinPeak")},
            },
            "Database": {"NIFPool": {"Used": gauge(json!(1.5), "Database.NIFPool.Used")}},
            "Operations": {"OPEN_NOTE": {
                "value": {
                    "n": 4, "min": 0.1, "max": 0.1, "arithmetic_mean": 0.1, "median": 0.1,
                    "percentile": [[50, 0.1], [95, 0.1], [99, 0.1]],
                },
                "type": "histogram", "desc": "milliseconds of OPEN_NOTE",
            }},
        })
    );
}

/// The rules of the format: a metric is described once, before its samples, under a legal name.
fn check_page(page: &str) -> Result<usize, TestCaseError> {
    let mut described = BTreeSet::new();
    let mut samples = 0;
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, _) = rest.split_once(' ').unwrap_or_default();
            prop_assert!(described.insert(name.to_owned()), "described twice: {name}");
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').unwrap_or_default();
            let name = sample.split('{').next().unwrap_or(sample);
            let legal = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            prop_assert!(name.starts_with("scrinium") && name.chars().all(legal), "{line}");
            let family = name.strip_suffix("_sum").or_else(|| name.strip_suffix("_count")).unwrap_or(name);
            prop_assert!(described.contains(family) || described.contains(name), "{line}");
            prop_assert!(value == "+Inf" || value.parse::<f64>().is_ok(), "{line}");
            samples += 1;
        }
    }
    Ok(samples)
}

proptest! {
    #[test]
    fn any_names_and_values_make_a_page_that_can_be_read(
        counters in prop::collection::btree_map("(?s).{0,12}|[A-Za-z.]{1,6}", any::<u64>(), 0..20),
        gauges in prop::collection::btree_map("(?s).{0,12}|[A-Za-z.]{1,6}", any::<f64>(), 0..20),
        operations in prop::collection::btree_set("(?s).{0,12}", 0..5),
    ) {
        let registry = Registry::new();
        for name in &operations {
            registry.operation(name).record(Duration::from_millis(1));
        }
        let mut snapshot = registry.snapshot();
        let count = counters.len() + gauges.len() + 6 * operations.len();
        (snapshot.counters, snapshot.gauges) = (counters, gauges);
        prop_assert_eq!(check_page(&prometheus_text(&snapshot))?, count);
        prop_assert!(couchdb_stats(&snapshot).is_object());
    }
}

#[test]
fn a_name_of_others_is_part_of_its_line() {
    for name in ["a\r\nscrinium_forged 1", "\u{1b}[31m\"}", "\u{2028}\u{202e}\u{85}", &"y".repeat(1 << 20)] {
        let registry = Registry::new();
        registry.operation(name).record(Duration::from_micros(100));
        registry.counter(name).add(1);
        let text = prometheus_text(&registry.snapshot());
        assert!(
            text.lines().all(|line| line.starts_with("# ") || line.starts_with("scrinium_")),
            "{text:.500}"
        );
        assert!(!text.lines().any(|line| line.starts_with("scrinium_forged 1")), "{text:.500}");
        assert!(!text.chars().any(|character| character != '\n' && breaks_line(character)), "{text:.500}");
    }
}

proptest! {
    #[test]
    fn a_line_is_one_line_and_bounded(text: String, bytes_max in 0..100_usize) {
        let line = one_line(&text, bytes_max);
        prop_assert!(!line.chars().any(breaks_line));
        // Each character takes at most ten as an escape, and an ellipsis tells that something is left out.
        prop_assert!(line.len() <= bytes_max * 10 + 3);
        if text.len() <= bytes_max && !text.contains('\\') && !text.chars().any(breaks_line) {
            prop_assert_eq!(&*line, text.as_str());
        }
    }
}
