//! `replicate` and `show replication`.

use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseError, RowQuery};
use serde_json::{Value, json};

use super::databases::not_open;
use super::table::{Align, grouped, table};
use super::{Command, ConsoleError, Reply, ServerParts};

/// Checkpoints that are looked at, at once and in all, and sessions of each that are shown.
const ROWS_AT_ONCE: usize = 100;
const PAIRS_MAX: u64 = 1000;
const SESSIONS_SHOWN: usize = 10;

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

/// Nobody is there who could carry a replication out.
pub(super) fn not_running() -> ConsoleError {
    ConsoleError::NotFound("replications are ordered on a server that runs".to_owned())
}

/// Replications that run, or the history of a database.
pub(super) fn reply(parts: &dyn ServerParts, database: Option<&str>) -> Result<Reply, ConsoleError> {
    match database {
        None => Ok(show(parts.replications())),
        Some(database) => history(&parts.databases().ok_or_else(not_open)?, database),
    }
}

/// Replications that run, those that fail first.
fn show(mut jobs: Vec<Value>) -> Reply {
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

/// What checkpoints in a database tell of earlier replications, pair by pair.
fn history(databases: &Databases, name: &str) -> Result<Reply, ConsoleError> {
    let failed = |error: DatabaseError| ConsoleError::NotFound(error.to_string());
    let database = databases.get(name).map_err(failed)?;
    let query = RowQuery { include_documents: true, limit: Some(PAIRS_MAX), ..RowQuery::default() };
    let access = Access::of_the_server("showing the history of replications");
    let mut rows = database.local_documents(query, &access).map_err(failed)?;
    let mut pairs = Vec::new();
    loop {
        let some = rows.next_rows(ROWS_AT_ONCE).map_err(failed)?;
        if some.is_empty() {
            break;
        }
        let documents =
            some.into_iter().filter_map(|row| serde_json::from_str::<Value>(row.document?.as_str()).ok());
        pairs.extend(documents.filter(|document| document.get("history").is_some_and(Value::is_array)));
    }
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("-").to_owned();
    let mut lines = Vec::new();
    for pair in &pairs {
        let sessions = pair.get("history").and_then(Value::as_array).into_iter().flatten();
        for session in sessions.take(SESSIONS_SHOWN) {
            let count = |name: &str| grouped(session.get(name).and_then(Value::as_u64).unwrap_or_default());
            lines.push(vec![
                text(pair.get("source")),
                text(pair.get("target")),
                text(session.get("start_time")),
                text(session.get("end_time")),
                count("docs_written"),
                count("doc_write_failures"),
            ]);
        }
    }
    let columns = [
        ("Source", Align::Left),
        ("Target", Align::Left),
        ("From", Align::Left),
        ("To", Align::Left),
        ("Written", Align::Right),
        ("Refused", Align::Right),
    ];
    let shown =
        if lines.is_empty() { format!("{name} has not been replicated.\n") } else { table(&columns, &lines) };
    Ok(Reply { text: shown, data: json!({"database": name, "pairs": pairs}) })
}
