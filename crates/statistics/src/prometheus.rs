//! A [`Snapshot`] in Prometheus' text format.
//!
//! Written here rather than by crate `prometheus` or `prometheus-client`: both bring registries and
//! metric types of their own, into which every statistic would have to be copied before each scrape,
//! while the format itself is a page of rules.
//!
//! Names become `scrinium_` and words in small letters (`Database.BufferPool.Used` is
//! `scrinium_database_buffer_pool_used`), a counter ends in `_total`, and every operation is one line of
//! labels of `scrinium_operation_seconds`. HELP tells the name that the console knows.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::line::one_line;
use crate::{OperationSummary, Snapshot};

/// Names and labels have about this many bytes.
const TEXT_BYTES_MAX: usize = 1000;

/// The content type of [`prometheus_text`].
pub const PROMETHEUS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The snapshot in Prometheus' text format, version 0.0.4.
///
/// Two statistics whose names differ only in what the format cannot express get a number at the end.
#[must_use]
pub fn prometheus_text(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    for (name, value) in &snapshot.counters {
        page.single(&with_total(&metric_name(name)), name, "counter", &value.to_string());
    }
    for (name, value) in &snapshot.gauges {
        page.single(&metric_name(name), name, "gauge", &number(*value));
    }
    page.operations(snapshot.operations.iter().filter(|(_, summary)| summary.count > 0));
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
    taken: BTreeSet<String>,
}

impl Page {
    fn single(&mut self, metric: &str, statistic: &str, kind: &str, value: &str) {
        let mut unique = metric.to_owned();
        let mut count = 2;
        while !self.taken.insert(unique.clone()) {
            unique = format!("{metric}_{count}");
            count += 1;
        }
        self.head(&unique, &format!("Statistic {statistic}."), kind);
        self.line(&unique, "", value);
    }

    fn operations<'a>(
        &mut self,
        operations: impl Iterator<Item = (&'a String, &'a OperationSummary)> + Clone,
    ) {
        if operations.clone().next().is_none() {
            return;
        }
        let metric = "scrinium_operation_seconds";
        self.head(metric, "Time taken by each operation since the server started.", "summary");
        for (name, summary) in operations.clone() {
            let operation = escaped_label(name);
            let quantiles = [("0.5", summary.p50_us), ("0.95", summary.p95_us), ("0.99", summary.p99_us)];
            for (quantile, microseconds) in quantiles {
                let labels = format!("{{operation=\"{operation}\",quantile=\"{quantile}\"}}");
                self.line(metric, &labels, &seconds(microseconds));
            }
            let labels = format!("{{operation=\"{operation}\"}}");
            self.line(&format!("{metric}_sum"), &labels, &seconds(summary.total_us));
            self.line(&format!("{metric}_count"), &labels, &summary.count.to_string());
        }
        let metric = "scrinium_operation_max_seconds";
        self.head(metric, "Longest time taken by each operation since the server started.", "gauge");
        for (name, summary) in operations {
            let labels = format!("{{operation=\"{}\"}}", escaped_label(name));
            self.line(metric, &labels, &seconds(summary.max_us));
        }
    }

    fn head(&mut self, metric: &str, help: &str, kind: &str) {
        let help = one_line(help, TEXT_BYTES_MAX);
        // Writing to a String cannot fail.
        let _ = write!(self.text, "# HELP {metric} {help}\n# TYPE {metric} {kind}\n");
    }

    fn line(&mut self, metric: &str, labels: &str, value: &str) {
        let _ = writeln!(self.text, "{metric}{labels} {value}");
    }
}

fn with_total(metric: &str) -> String {
    if metric.ends_with("_total") { metric.to_owned() } else { format!("{metric}_total") }
}

/// `scrinium_` and the words of `statistic` in small letters, joined by underscores.
fn metric_name(statistic: &str) -> String {
    let letters: Vec<char> = statistic.chars().collect();
    let mut name = String::from("scrinium");
    let mut inside_word = false;
    for (position, &letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            inside_word = false;
            continue;
        }
        let before = position.checked_sub(1).and_then(|previous| letters.get(previous));
        let after = letters.get(position + 1);
        // A capital starts a word after a small letter or digit, and at the end of an acronym (NIFPool).
        let starts_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase)
            });
        if !inside_word || starts_word {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
        inside_word = true;
    }
    name
}

/// As a label's value: the format escapes a backslash, a line's end and the quotation mark.
fn escaped_label(value: &str) -> String {
    one_line(value, TEXT_BYTES_MAX).replace('"', "\\\"")
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

#[allow(clippy::cast_precision_loss, reason = "a time needs no more than 53 bits")]
fn seconds(microseconds: u64) -> String {
    (microseconds as f64 / 1_000_000.0).to_string()
}
