//! Memos that do not go at once: who sends one says when it goes, and can take it back until then.

use scrinium_database::{Access, DatabaseError, Edit, EditMode, ReadOptions};
use serde_json::{Map, Value, json};

use crate::envelope::EnvelopeItems;
use crate::mailbox::Mailboxes;
use crate::memo::field;

/// Who takes back what somebody has sent.
static KEEPER: Access = Access::of_the_server("taking memos back");

/// A memo waits no longer than this.
pub const POSTPONED_MAX_MS: u64 = 30 * 86_400_000;

/// The router may have taken a memo up whose time comes as soon as this.
const MARGIN_MS: u64 = 500;

/// Takes out of a memo when it is to go ([`field::NOT_BEFORE`]), in milliseconds since 1970. `None`: at once.
///
/// # Errors
/// In words: it is no time, or too far ahead.
pub fn take_not_before(memo: &mut Map<String, Value>, now_ms: u64) -> Result<Option<u64>, String> {
    let Some(value) = memo.shift_remove(field::NOT_BEFORE) else { return Ok(None) };
    if value.is_null() {
        return Ok(None);
    }
    let wrong = || format!("{} must be a whole number: milliseconds since 1970", field::NOT_BEFORE);
    let time_ms = value.as_u64().ok_or_else(wrong)?;
    if time_ms > now_ms.saturating_add(POSTPONED_MAX_MS) {
        return Err(format!("{} is at most 30 days from now", field::NOT_BEFORE));
    }
    Ok(Some(time_ms).filter(|time_ms| *time_ms > now_ms))
}

impl Mailboxes {
    /// Takes a memo back that this person has put into a mail.box, and whose time has not come. False where there is none such: it
    /// is on its way, is somebody else's, or never was. Blocks until that is durable.
    ///
    /// # Errors
    /// What the database reports.
    pub fn take_back(&self, id: &str, submitter: &str) -> Result<bool, DatabaseError> {
        for mailbox in self.all() {
            let document = match mailbox.read(id, &ReadOptions::default(), &KEEPER) {
                Ok(document) => document,
                Err(DatabaseError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            let memo = document.json.to_object().unwrap_or_default();
            let envelope = EnvelopeItems::of_memo(&memo);
            let earliest_ms = self.clock().now_ms().saturating_add(MARGIN_MS);
            let is_theirs = envelope.submitter.as_deref() == Some(submitter);
            let waits =
                envelope.can_be_taken_back && envelope.release_ms.is_some_and(|time| time > earliest_ms);
            if !is_theirs || !waits {
                continue;
            }
            let json = json!({"_id": id, "_rev": document.revision, "_deleted": true}).to_string();
            let edit = Edit { json: json.into(), ..Edit::default() };
            return match mailbox.update_one(edit, EditMode::Interactive, &KEEPER) {
                Ok(_) => Ok(true),
                // It has just left, or was taken back a moment ago.
                Err(DatabaseError::Conflict) => Ok(false),
                Err(error) => Err(error),
            };
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_memo_says_when_it_goes_and_is_not_kept_for_ever() {
        let taken = |value: Value| {
            let mut memo = json!({"Subject": "x"}).as_object().unwrap().clone();
            memo.insert(field::NOT_BEFORE.to_owned(), value);
            let taken = take_not_before(&mut memo, 1_000);
            assert_eq!(memo.len(), 1);
            taken
        };
        assert_eq!(taken(json!(5_000)), Ok(Some(5_000)));
        for at_once in [json!(1_000), json!(0), json!(null)] {
            assert_eq!(taken(at_once), Ok(None));
        }
        for wrong in [json!("2026-11-27"), json!(-5), json!(5.5), json!([]), json!(1_001 + POSTPONED_MAX_MS)]
        {
            assert!(taken(wrong).is_err());
        }
    }
}
