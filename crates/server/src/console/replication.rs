//! `replicate` and `show replication`.

use serde_json::{Value, json};

use super::table::{Align, grouped, table};
use super::{Command, Reply};

/// What follows `replicate`.
pub(super) const ARGUMENTS: &str = "SOURCE TARGET [-C] [-Q]";

/// What it does.
pub(super) const HELP: &str =
    "Replicates a database into another one, by names or URLs; -C goes on as it changes, -Q ends that";

/// `replicate`: what, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicateOrder {
    /// Where documents come from.
    pub source: String,
    /// Where they go to.
    pub target: String,
    /// Goes on as the source changes (`-C`).
    pub continuous: bool,
    /// Ends what goes on (`-Q`).
    pub cancel: bool,
}

impl ReplicateOrder {
    /// The same as `_replicate` takes it.
    #[must_use]
    pub fn members(&self) -> serde_json::Map<String, Value> {
        let order = json!({"source": self.source, "target": self.target,
            "continuous": self.continuous || self.cancel, "cancel": self.cancel});
        order.as_object().cloned().unwrap_or_default()
    }
}

pub(super) fn parse(rest: &str) -> Option<Command> {
    let (options, names): (Vec<&str>, Vec<&str>) =
        rest.split_whitespace().partition(|word| word.starts_with('-'));
    let has = |wanted: &str| options.iter().any(|option| option.eq_ignore_ascii_case(wanted));
    let known = options.iter().all(|option| ["-c", "-q"].contains(&&*option.to_ascii_lowercase()));
    match names.as_slice() {
        [source, target] if known => Some(Command::Replicate(ReplicateOrder {
            source: (*source).to_owned(),
            target: (*target).to_owned(),
            continuous: has("-C"),
            cancel: has("-Q"),
        })),
        _ => None,
    }
}

/// Replications that run, those that fail first.
pub(super) fn show(mut jobs: Vec<Value>) -> Reply {
    if jobs.is_empty() {
        return Reply { text: "No replication is running.\n".to_owned(), data: json!({"jobs": []}) };
    }
    jobs.sort_by_key(|job| job.get("state").and_then(Value::as_str) == Some("running"));
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let rows: Vec<Vec<String>> = jobs
        .iter()
        .map(|job| {
            let info = job.get("info");
            let count = |name: &str| {
                grouped(info.and_then(|info| info.get(name)).and_then(Value::as_u64).unwrap_or_default())
            };
            vec![
                text(job.get("source")),
                text(job.get("target")),
                text(job.get("state")),
                count("docs_written"),
                count("doc_write_failures"),
                count("conflicts_seen"),
                text(info.and_then(|info| info.get("error"))),
            ]
        })
        .collect();
    let columns = [
        ("Source", Align::Left),
        ("Target", Align::Left),
        ("State", Align::Left),
        ("Written", Align::Right),
        ("Refused", Align::Right),
        ("Conflicts", Align::Right),
        ("Last failure", Align::Left),
    ];
    Reply { text: table(&columns, &rows), data: json!({"jobs": jobs}) }
}
