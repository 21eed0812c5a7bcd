//! `show conflicts` and `settle conflicts`.

use scrinium_catalog::Databases;
use scrinium_database::DatabaseError;
use serde_json::{Value, json};

use super::table::{Align, table};
use super::{Command, ConsoleError, Reply, ServerParts, begun};

/// What follows `settle conflicts`.
pub(super) const ARGUMENTS: &str = "DATABASE RULE";

/// What it does.
pub(super) const HELP: &str =
    "Settles conflicts by a rule: {\"newest\": FIELD} or {\"formula\": FORMULA}, and {\"union\": [FIELDS]}";

/// Documents that are shown.
const SHOWN: usize = 50;

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
    let (found, has_more) = database.conflicted_documents(None, SHOWN).map_err(failed)?;
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

/// Begins to settle the conflicts of a database.
pub(super) fn begin(parts: &dyn ServerParts, order: &SettleOrder) -> Result<Reply, ConsoleError> {
    begun("Settling conflicts", parts.settle_conflicts(order))
}
