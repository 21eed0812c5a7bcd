//! Whether an answer is the right one.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::connection::Answer;
use super::failure::{Failure, FailureKind};
use super::{EntryPlace, Page};
use crate::content::digest;

/// What a write is answered with.
#[derive(Deserialize)]
struct Written {
    ok: Option<bool>,
    id: String,
    rev: String,
}

#[derive(Deserialize)]
struct Entries {
    /// Not told to who may not read everything.
    total_rows: Option<u64>,
    rows: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    #[serde(default)]
    level: u32,
    key: Box<RawValue>,
}

/// The answer's body, as JSON of that form.
pub(super) fn json<T: DeserializeOwned>(answer: &Answer) -> Result<T, Failure> {
    serde_json::from_slice(&answer.body)
        .map_err(|error| answer.failure(FailureKind::WrongAnswer, &format!("{error}; the answer was ")))
}

/// The generation of a revision: 3 of `3-5f3759df`.
pub(super) fn generation(revision: &str) -> Option<u64> {
    let (generation, digest) = revision.split_once('-')?;
    let hexadecimal = !digest.is_empty() && digest.chars().all(|digit| digit.is_ascii_hexdigit());
    generation.parse().ok().filter(|generation| hexadecimal && *generation > 0)
}

/// A document was written: it is the one that was sent, and its revision follows the one before.
pub(super) fn written(answer: &Answer, id: &str, before: Option<&str>) -> Result<String, Failure> {
    let wrong = |why: &str| Err(answer.failure(FailureKind::WrongAnswer, why));
    let written: Written = json(answer)?;
    if written.ok != Some(true) {
        return wrong("not ok: ");
    }
    if written.id != id {
        return wrong("another document: ");
    }
    let Some(generation_now) = generation(&written.rev) else {
        return wrong("no revision: ");
    };
    let wanted = before.and_then(generation).unwrap_or(0) + 1;
    if generation_now < wanted || (before.is_some() && generation_now != wanted) {
        return wrong(&format!("revision {} after {}: ", written.rev, before.unwrap_or("none")));
    }
    Ok(written.rev)
}

/// A document was read: it is the one that was asked for, no older than the `known` revision, and its body
/// is the one that was written.
pub(super) fn document(
    answer: &Answer,
    id: &str,
    known: Option<&str>,
) -> Result<(String, Map<String, Value>), Failure> {
    let wrong = |why: String| Err(answer.failure(FailureKind::WrongAnswer, &why));
    let fields: Map<String, Value> = json(answer)?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    if text("_id") != Some(id) {
        return wrong("another document: ".to_owned());
    }
    let revision = text("_rev").unwrap_or_default().to_owned();
    let Some(read) = generation(&revision) else {
        return wrong("no revision: ".to_owned());
    };
    if let Some(known) = known {
        let older = generation(known).is_some_and(|known| read < known);
        let twin = generation(known) == Some(read) && known != revision;
        if older || twin {
            return wrong(format!("revision {revision} where {known} was known: "));
        }
    }
    if let (Some(body), Some(check)) = (text("Body"), text("LabCheck"))
        && digest(body) != check
    {
        return wrong(format!("the body's digest is {} and was {check}: ", digest(body)));
    }
    Ok((revision, fields))
}

/// Entries of a view were read: no more than were asked for, none without a document, and, where it is
/// known at which entry the page begins, none left out before the view's end.
pub(super) fn page(answer: &Answer, count: u64, position: Option<u64>) -> Result<Page, Failure> {
    let wrong = |why: &str| Err(answer.failure(FailureKind::WrongAnswer, why));
    let entries: Entries = json(answer)?;
    let read = entries.rows.len() as u64;
    let total = entries.total_rows.unwrap_or(0);
    if read > count {
        return wrong("more entries than were asked for: ");
    }
    if entries.rows.iter().any(|entry| entry.id.is_empty()) {
        return wrong("an entry without a document: ");
    }
    if position.is_some_and(|position| read < count && position.saturating_add(read) < total) {
        return wrong("entries are missing: ");
    }
    let last = entries
        .rows
        .last()
        .map(|entry| EntryPlace { key: entry.key.get().to_owned(), document: entry.id.clone() });
    let (documents, levels) = entries.rows.into_iter().map(|entry| (entry.id, entry.level)).unzip();
    Ok(Page { total, documents, levels, last })
}
