//! Which messages a search for words may find, as the full-text index of their database says.
//!
//! The index answers with more than is right, never with less of what it knows: each of its messages is read and looked at once more. It
//! knows the fields and the text that documents keep, so small folders, for which it is not needed, are read whole.

use std::sync::Arc;
use std::time::Duration;

use roaring::RoaringBitmap;
use scrinium_database::{Database, DatabaseError, Result};
use scrinium_fulltext::Query;
use scrinium_imap_wire::SearchKey;
use scrinium_mail::field;
use scrinium_views::Reading;

use crate::desk::FolderHandle;
use crate::mail_file::MailFile;
use crate::tracker::number_of;
use crate::visitor::Visitor;

/// A folder of no more messages is read.
pub(crate) const READ_WHOLE: u32 = 1_000;

/// More documents than these are not looked up one by one.
const FOUND_MAX: usize = 50_000;

/// How long an index may take that must be brought up to date first, and how often.
const UPDATE_PATIENCE: Duration = Duration::from_secs(20);
const UPDATES: usize = 2;

/// A run of fewer letters is in too many words.
const LETTERS_MIN: usize = 3;

/// Where words are that are under no name, of documents and of what is attached to them.
const ALL_FIELDS: [&str; 3] = ["$text", "Body", "$attachments"];

/// How a run of letters is looked for among words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Anywhere in a word.
    Within,
    /// At the beginning of a word: for an index with too many words to look at them all.
    Beginning,
}

/// The messages that can match keys, as far as words say it; `None` where they do not.
pub(crate) fn query_of(keys: &[SearchKey], finding: Finding) -> Option<Query> {
    let all: Vec<Query> = keys.iter().filter_map(|key| query_of_key(key, finding)).collect();
    (!all.is_empty()).then_some(Query::And(all))
}

fn query_of_key(key: &SearchKey, finding: Finding) -> Option<Query> {
    let header = |name: &str, wanted: &str| {
        // What a memo without a source becomes has other names of people.
        let composed = Query::And(vec![Query::All, Query::Not(Box::new(exists(field::SIZE)))]);
        Some(Query::Or(vec![in_fields(&[name], wanted, finding)?, composed, exists(field::PARSE_NOTES)]))
    };
    match key {
        SearchKey::And(keys) => query_of(keys, finding),
        SearchKey::Or(one, other) => {
            Some(Query::Or(vec![query_of_key(one, finding)?, query_of_key(other, finding)?]))
        }
        SearchKey::Fuzzy(key) => query_of_key(key, finding),
        SearchKey::Subject(wanted) => header(field::SUBJECT, wanted),
        SearchKey::From(wanted) => header(field::FROM, wanted),
        SearchKey::To(wanted) => header(field::SEND_TO, wanted),
        SearchKey::Cc(wanted) => header(field::COPY_TO, wanted),
        SearchKey::Header(name, wanted) => header(field_of(name)?, wanted),
        SearchKey::Body(wanted) | SearchKey::Text(wanted) => Some(Query::Or(vec![
            in_fields(&ALL_FIELDS, wanted, finding)?,
            // Those of whose text the document does not keep all.
            exists(field::BODY_TRUNCATED),
            exists(field::PARSE_NOTES),
        ])),
        _ => None,
    }
}

/// The field of a document that keeps a field of a header.
fn field_of(name: &str) -> Option<&'static str> {
    let known = [
        ("Subject", field::SUBJECT),
        ("From", field::FROM),
        ("To", field::SEND_TO),
        ("Cc", field::COPY_TO),
        ("Message-ID", field::MESSAGE_ID),
        ("In-Reply-To", field::IN_REPLY_TO),
        ("References", field::REFERENCES),
    ];
    known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, field)| field)
}

fn exists(field: &str) -> Query {
    Query::Exists { field: field.to_owned() }
}

/// The longest run of letters of a text, in any of these fields. A text that holds the whole one holds the run within one word.
fn in_fields(fields: &[&str], wanted: &str, finding: Finding) -> Option<Query> {
    // Scripts without blanks have other words.
    let is_letter = |letter: char| letter.is_alphanumeric() && (letter as u32) < 0x0E00;
    if wanted.chars().any(|letter| letter.is_alphanumeric() && !is_letter(letter)) {
        return None;
    }
    let runs = wanted.split(|letter| !is_letter(letter));
    let run = runs.max_by_key(|run| run.chars().count())?;
    if run.chars().count() < LETTERS_MIN {
        return None;
    }
    Some(Query::in_any(fields, |field| match finding {
        Finding::Within => Query::Pattern { field: field.to_owned(), pattern: format!("*{run}*") },
        Finding::Beginning => Query::prefix(field, run),
    }))
}

/// The UIDs of the messages of a folder that can match; `None` where the index cannot say, and messages are read.
pub(crate) async fn candidates(
    visitor: &Visitor,
    open: &Arc<FolderHandle>,
    keys: &[SearchKey],
) -> Option<RoaringBitmap> {
    for finding in [Finding::Within, Finding::Beginning] {
        let query = Arc::new(query_of(keys, finding)?);
        match look(visitor, open, &query).await {
            Ok(Some(found)) => return Some(found),
            Ok(None) => return None,
            // There may be too many words of this kind.
            Err(Unanswered) => {}
        }
    }
    None
}

/// The index did not answer.
struct Unanswered;

async fn look(
    visitor: &Visitor,
    open: &Arc<FolderHandle>,
    query: &Arc<Query>,
) -> std::result::Result<Option<RoaringBitmap>, Unanswered> {
    let mut reached = None;
    for _ in 0..=UPDATES {
        let (query, handle) = (Arc::clone(query), Arc::clone(open));
        let asked = visitor.work_in(open.place.clone(), move |file, _| {
            let ids = match file.opened.begin_text_ids(&query, FOUND_MAX, &file.access, reached)? {
                Reading::Ready(ids) => ids,
                Reading::Behind(update) => return Ok(Reading::Behind(update)),
            };
            Ok(Reading::Ready(uids_of(file, handle.tracker.folder(), &ids)?))
        });
        match asked.await.map_err(|_| Unanswered)? {
            Reading::Ready(found) => return Ok(found),
            Reading::Behind(update) => match tokio::time::timeout(UPDATE_PATIENCE, update.done()).await {
                Ok(Ok(change)) => reached = Some(change),
                Ok(Err(_)) | Err(_) => return Ok(None),
            },
        }
    }
    Ok(None)
}

/// Where documents are in a folder; `None` for too many.
fn uids_of(file: &MailFile, folder: u32, ids: &[String]) -> Result<Option<RoaringBitmap>> {
    if ids.len() >= FOUND_MAX {
        return Ok(None);
    }
    let database: &Database = &file.database;
    let snapshot = database.store().snapshot();
    let mut uids = RoaringBitmap::new();
    for id in ids {
        match database.uid_at(&snapshot, folder, id) {
            Ok(Some(uid)) => {
                uids.insert(number_of(uid, database)?);
            }
            Ok(None) | Err(DatabaseError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(uids))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_something_of_keys_that_must_hold_and_nothing_of_others() {
        let subject = |text: &str| SearchKey::Subject(text.to_owned());
        let has = |keys: &[SearchKey]| query_of(keys, Finding::Within).is_some();
        assert!(has(&[SearchKey::All, subject("a word")]));
        assert!(has(&[SearchKey::Or(Box::new(subject("one")), Box::new(subject("two-three")))]));
        for without in [
            SearchKey::All,
            SearchKey::Not(Box::new(subject("word"))),
            SearchKey::Or(Box::new(subject("word")), Box::new(SearchKey::All)),
            SearchKey::Header("Received".to_owned(), "word".to_owned()),
            subject("a-b c"),
            subject("語学の本"),
            subject(""),
        ] {
            assert!(!has(std::slice::from_ref(&without)), "{without:?}");
        }
        let found = in_fields(&["Subject"], "re: longest-run (x)", Finding::Beginning);
        assert_eq!(found, Some(Query::Or(vec![Query::prefix("Subject", "longest")])));
    }
}
