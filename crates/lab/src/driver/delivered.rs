//! Messages that were delivered as documents: what of a mail database is compared with what was sent.

use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::check;
use super::connection::Connection;
use super::documents::message_in;
use super::failure::Failure;
use super::http::part;
use super::ledger::FoundMessage;

/// Changes that are read at once.
const CHANGES: usize = 50;

#[derive(Deserialize)]
struct Database {
    #[serde(default)]
    update_seq: Value,
}

/// Changes of a database, with their documents.
#[derive(Deserialize)]
struct Changes {
    results: Vec<Change>,
    last_seq: Value,
}

#[derive(Deserialize)]
struct Change {
    #[serde(default)]
    doc: Map<String, Value>,
}

/// The last change of a mail database. Its name is encoded already.
pub(super) async fn mark(connection: &mut Connection, database: &str) -> Result<String, Failure> {
    let answer = connection.exchange(Method::GET, &format!("/{database}"), None).await?.expect(&[200])?;
    let database: Database = check::json(&answer)?;
    Ok(sequence(&database.update_seq))
}

/// Reads the laboratory's messages in what has changed since.
pub(super) async fn read(
    connection: &mut Connection,
    database: &str,
    person: &str,
    since: &str,
    visit: &mut (dyn FnMut(FoundMessage) + Send),
) -> Result<(), Failure> {
    let mut since = since.to_owned();
    loop {
        let path = format!("/{database}/_changes?include_docs=true&limit={CHANGES}&since={}", part(&since));
        let answer = connection.exchange(Method::GET, &path, None).await?.expect(&[200])?;
        let changes: Changes = check::json(&answer)?;
        for change in &changes.results {
            if let Some(found) = message_in(&change.doc, person) {
                visit(found);
            }
        }
        let last = sequence(&changes.last_seq);
        if changes.results.len() < CHANGES || last == since {
            return Ok(());
        }
        since = last;
    }
}

/// A change number as it stands in an address: text as it is, without quotation marks.
fn sequence(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
