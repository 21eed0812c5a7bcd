//! `show conflicts` and `settle conflicts`.

use scrinium_catalog::Databases;
use scrinium_database::{DatabaseError, Identity};
use scrinium_replication::{SettleRule, settle};
use scrinium_views::DatabaseSession;
use serde_json::{Value, json};

use super::table::{Align, table};
use super::{Command, ConsoleError, Reply};

/// What follows `settle conflicts`.
pub(super) const ARGUMENTS: &str = "DATABASE RULE";

/// What it does.
pub(super) const HELP: &str =
    "Settles conflicts by a rule: {\"newest\": FIELD} or {\"formula\": FORMULA}, and {\"union\": [FIELDS]}";

/// Documents that are shown.
const SHOWN: usize = 50;
/// Documents that one command settles; the next one goes on.
const SETTLED: usize = 10_000;
/// As whom conflicts are settled.
const CONSOLE: &str = "console";

/// `settle conflicts`: where, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleOrder {
    /// The database.
    pub database: String,
    /// The rule, as JSON.
    pub rule: String,
}

pub(super) fn parse(rest: &str) -> Option<Command> {
    let (database, rule) = rest.trim().split_once(char::is_whitespace)?;
    Some(Command::SettleConflicts(SettleOrder {
        database: database.to_owned(),
        rule: rule.trim().to_owned(),
    }))
}

#[allow(clippy::needless_pass_by_value, reason = "as a failure comes")]
fn failed(error: DatabaseError) -> ConsoleError {
    ConsoleError::NotFound(error.to_string())
}

/// Documents of a database with conflicts.
pub(super) fn show(databases: &Databases, name: &str) -> Result<Reply, ConsoleError> {
    let database = databases.get(name).map_err(failed)?;
    let (found, has_more) = database.conflicted_documents(SHOWN).map_err(failed)?;
    if found.is_empty() {
        return Ok(Reply {
            text: format!("{name} has no conflicts.\n"),
            data: json!({"database": name, "documents": []}),
        });
    }
    let rows: Vec<Vec<String>> =
        found.iter().map(|document| vec![document.id.clone(), document.conflicts.join(" ")]).collect();
    let mut text = table(&[("Document", Align::Left), ("Revisions next to the winner", Align::Left)], &rows);
    if has_more {
        text.push_str("There are more.\n");
    }
    let documents: Vec<Value> =
        found.iter().map(|document| json!({"id": document.id, "conflicts": document.conflicts})).collect();
    Ok(Reply { text, data: json!({"database": name, "documents": documents, "more": has_more}) })
}

/// Settles the conflicts of a database.
pub(super) fn begin(databases: &Databases, order: &SettleOrder) -> Result<Reply, ConsoleError> {
    let wrong = |reason: String| ConsoleError::NotFound(reason);
    let rule: Value =
        serde_json::from_str(&order.rule).map_err(|error| wrong(format!("the rule is no JSON: {error}")))?;
    let rule = SettleRule::parse(&rule).map_err(|error| wrong(error.reason))?;
    let database = databases.get(&order.database).map_err(failed)?;
    let identity = Identity::new(CONSOLE, vec!["_admin".to_owned()]);
    let session = DatabaseSession::open(database.clone(), &identity).map_err(failed)?;
    let (found, has_more) = database.conflicted_documents(SETTLED).map_err(failed)?;
    let mut settled = 0;
    for document in &found {
        settled += usize::from(settle(&session, &document.id, &rule).map_err(failed)?);
    }
    let more = if has_more { "; there are more, the same command goes on" } else { "" };
    let text =
        format!("{settled} documents of {} were in conflict, and were settled{more}.\n", order.database);
    Ok(Reply { text, data: json!({"database": order.database, "settled": settled, "more": has_more}) })
}
