//! What becomes of a memo that does not reach everybody: its sender is notified, or it stays as a dead letter.

use scrinium_clock::Clock;
use serde_json::{Map, Value, json};

use crate::memo::{FAILURE_FORM, field};
use crate::time::now_text;

/// The value of `$State` of a dead letter.
pub(super) const DEAD: &str = "Dead";

/// The value of `$State` of a memo that an administrator keeps back.
pub(crate) const HELD: &str = "Held";

/// Who sends delivery failures.
const ROUTER_NAME: &str = "Mail Router";

/// So much of the memo's text is sent back.
const QUOTED_CHARACTERS: usize = 2_000;

/// More reasons than these nobody reads.
const MOST_REASONS: usize = 100;

/// A recipient whom a memo did not reach, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// As the memo or a group names the recipient.
    pub(crate) recipient: String,
    /// A sentence.
    pub(crate) reason: String,
}

/// Whether a memo is itself a delivery failure: about those nobody is notified.
pub(crate) fn is_failure_memo(memo: &Map<String, Value>) -> bool {
    memo.get(field::FORM).and_then(Value::as_str) == Some(FAILURE_FORM)
}

/// The sender of a memo, as written; `None` where there is none.
pub(super) fn sender_of(memo: &Map<String, Value>) -> Option<&str> {
    let name = |field: &str| memo.get(field).and_then(Value::as_str).map(str::trim);
    name(field::FROM).filter(|name| !name.is_empty())
}

/// Who is notified of failures, as written: the return path of what came by SMTP, where it has one, or else the sender.
/// Nobody for a delivery failure, and for a message whose return path is empty.
pub(super) fn notified_of(memo: &Map<String, Value>) -> Option<&str> {
    if is_failure_memo(memo) {
        return None;
    }
    // RFC 5321 §4.5.5: what comes with an empty one is never answered.
    match memo.get(field::RETURN_PATH).and_then(Value::as_str) {
        Some(path) => Some(path.trim()).filter(|path| !path.is_empty()),
        None => sender_of(memo),
    }
}

/// The memo that tells `sender` whom `memo` did not reach.
pub(super) fn failure_memo(
    id: &str,
    memo: &Map<String, Value>,
    sender: &str,
    failures: &[Failure],
    clock: &Clock,
) -> Value {
    // A memo need not have a subject, a text or a date.
    let subject = memo.get(field::SUBJECT).and_then(Value::as_str).unwrap_or_default();
    let first = failures.first().map_or("", |failure| &failure.reason);
    let listed = || failures.iter().take(MOST_REASONS);
    let mut body = String::from("Your memo was not delivered to:\n\n");
    for failure in listed() {
        body.push_str(&format!("  {}\n", failure.reason));
    }
    if failures.len() > MOST_REASONS {
        body.push_str(&format!("  and {} more\n", failures.len() - MOST_REASONS));
    }
    let text = |name: &str| memo.get(name).and_then(Value::as_str).unwrap_or_default();
    let quoted: String = text(field::BODY).chars().take(QUOTED_CHARACTERS).collect();
    body.push_str(&format!("\nIts subject: {subject}\nPosted: {}\n\n{quoted}\n", text(field::POSTED_DATE)));
    let mut failure = json!({
        "_id": id,
        "Form": FAILURE_FORM,
        "From": ROUTER_NAME,
        "SendTo": [sender],
        "Subject": format!("DELIVERY FAILURE: {first}"),
        "PostedDate": now_text(clock),
        "Body": body,
        (field::RULES_DONE): true,
        "FailureReason": listed().map(|failure| failure.reason.as_str()).collect::<Vec<_>>(),
        (field::INTENDED_RECIPIENT): listed().map(|failure| failure.recipient.as_str()).collect::<Vec<_>>(),
    });
    if let (Some(message_id), Some(fields)) = (memo.get(field::MESSAGE_ID), failure.as_object_mut()) {
        fields.insert(field::IN_REPLY_TO.to_owned(), message_id.clone());
    }
    failure
}

/// The memo as it is kept back, and why. Taking its `$State` out lets it go, and rules are not asked again.
pub(super) fn held_memo(memo: &Map<String, Value>, reason: &str) -> Value {
    let mut held = memo.clone();
    held.insert(field::STATE.to_owned(), Value::from(HELD));
    held.insert(field::HOLD_REASON.to_owned(), Value::from(reason));
    held.insert(field::RULES_DONE.to_owned(), Value::Bool(true));
    Value::Object(held)
}

/// The memo as a dead letter: it says why, and goes only to those whom it has not reached, should somebody
/// clear its `$State`.
pub(super) fn dead_letter(memo: &Map<String, Value>, failures: &[Failure]) -> Value {
    let mut dead = memo.clone();
    dead.insert(field::STATE.to_owned(), Value::from(DEAD));
    let list = |of: fn(&Failure) -> &String| {
        Value::Array(failures.iter().map(|f| Value::from(of(f).as_str())).collect())
    };
    dead.insert(field::FAILURE_REASON.to_owned(), list(|failure| &failure.reason));
    let recipients = list(|failure| &failure.recipient);
    if recipients.as_array().is_some_and(|recipients| !recipients.is_empty()) {
        dead.insert(field::RECIPIENTS.to_owned(), recipients);
    }
    Value::Object(dead)
}
