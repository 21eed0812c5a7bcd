//! Messages that scripts remember (RFC 7352): in `_local` documents of the mail file, each for a share of them, so that remembering one
//! costs the same however many there are.
//!
//! It is remembered by which message a mark was made, so that one which is looked at again after a crash is no duplicate of itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use scrinium_database::{Access, Database, DatabaseError};
use scrinium_sieve::SeenMark;
use serde::{Deserialize, Serialize};

/// Who remembers.
static KEEPER: Access = Access::of_the_server("remembering messages of scripts");

/// Marks of one document. Where there are more, those go whose time is over first.
const MARKS_MAX: usize = 200;

#[derive(Default, Serialize, Deserialize)]
struct Marks {
    #[serde(default)]
    seen: BTreeMap<String, Mark>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Mark {
    /// Seconds since 1970.
    until_s: u64,
    /// The message that made it.
    message: String,
    /// That message was a duplicate itself (`:last`).
    again: bool,
}

fn share(key: &str) -> String {
    let digest = blake3::hash(key.as_bytes()).to_hex();
    format!("_local/sieve-seen-{}", digest.chars().take(2).collect::<String>())
}

fn read(database: &Database, id: &str) -> Result<Marks, DatabaseError> {
    match database.read_local(id, &KEEPER) {
        Ok(document) => {
            let value = document.json.to_value().unwrap_or_default();
            Ok(serde_json::from_value(value).unwrap_or_default())
        }
        Err(DatabaseError::NotFound { .. }) => Ok(Marks::default()),
        Err(error) => Err(error),
    }
}

/// Whether a message is a duplicate of another one that left this mark.
///
/// # Errors
/// What the database reports.
pub(super) fn was_seen(
    database: &Database,
    key: &str,
    (message, now_s): (Option<&str>, u64),
) -> Result<bool, DatabaseError> {
    let marks = read(database, &share(key))?;
    let mark = marks.seen.get(key).filter(|mark| mark.until_s > now_s);
    Ok(mark.is_some_and(|mark| message != Some(mark.message.as_str()) || mark.again))
}

/// Leaves marks of a message, durably. Blocks.
///
/// # Errors
/// What the database reports.
pub(super) fn note_seen(
    database: &Arc<Database>,
    marks: &[SeenMark],
    (message, now_s): (&str, u64),
) -> Result<(), DatabaseError> {
    for SeenMark { key, period_seconds } in marks {
        let id = share(key);
        let mut kept = read(database, &id)?;
        kept.seen.retain(|_, mark| mark.until_s > now_s);
        let before = kept.seen.get(key);
        if before.is_some_and(|before| before.message == message) {
            continue;
        }
        let again = before.is_some();
        while kept.seen.len() >= MARKS_MAX {
            let first = kept.seen.iter().min_by_key(|(_, mark)| mark.until_s).map(|(key, _)| key.clone());
            let Some(first) = first else { break };
            kept.seen.remove(&first);
        }
        let until_s = now_s.saturating_add(*period_seconds);
        kept.seen.insert(key.clone(), Mark { until_s, message: message.to_owned(), again });
        let json = serde_json::to_vec(&kept)
            .map_err(|error| DatabaseError::Internal { reason: error.to_string() })?;
        database.write_local(&id, &json, false, None, &KEEPER)?.wait()?;
    }
    Ok(())
}
