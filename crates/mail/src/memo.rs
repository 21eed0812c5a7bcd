//! What a memo is: a document with these fields.

use serde_json::{Map, Value};
use thiserror::Error;

/// The field `Form` of a memo.
pub const MEMO_FORM: &str = "Memo";

/// The field `Form` of what a sender gets for a memo that could not be delivered.
pub const FAILURE_FORM: &str = "NonDelivery Report";

/// Names of a memo's fields.
pub mod field {
    /// `Memo`, `Appointment`, `NonDelivery Report`, …
    pub const FORM: &str = "Form";
    /// Who wrote it: a text.
    pub const FROM: &str = "From";
    /// Who sent it for the one in `From`: a text, only where it differs.
    pub const SENDER: &str = "Sender";
    /// To whom it is written: a list of texts.
    pub const SEND_TO: &str = "SendTo";
    /// Who gets a copy: a list of texts.
    pub const COPY_TO: &str = "CopyTo";
    /// Who gets a copy without the others knowing: a list of texts. Not in a delivered memo.
    pub const BLIND_COPY_TO: &str = "BlindCopyTo";
    /// To whom it goes, whatever the three lists say: a list of texts. Not in a delivered memo.
    pub const RECIPIENTS: &str = "Recipients";
    /// To whom an answer goes: a text.
    pub const REPLY_TO: &str = "ReplyTo";
    /// A text of one line.
    pub const SUBJECT: &str = "Subject";
    /// When it was sent, RFC 3339 in UTC.
    pub const POSTED_DATE: &str = "PostedDate";
    /// When it came into this mail database, RFC 3339 in UTC.
    pub const DELIVERED_DATE: &str = "DeliveredDate";
    /// The message id in angle brackets (RFC 5322 §3.6.4).
    pub const MESSAGE_ID: &str = "$MessageID";
    /// The message id of what it answers.
    pub const IN_REPLY_TO: &str = "InReplyTo";
    /// The message ids of the thread, the oldest first.
    pub const REFERENCES: &str = "References";
    /// `1` high, `2` normal, `3` low.
    pub const IMPORTANCE: &str = "Importance";
    /// The text. Of a long one, the beginning.
    pub const BODY: &str = "Body";
    /// `true` where `Body` is only the beginning.
    pub const BODY_TRUNCATED: &str = "$BodyTruncated";
    /// Bytes of the source.
    pub const SIZE: &str = "$Size";
    /// Where in the source the message begins, if not at its first byte (an mbox line stands before it).
    pub const SOURCE_START: &str = scrinium_database::SOURCE_START;
    /// What was damaged or missing in the source: a list of texts.
    pub const PARSE_NOTES: &str = "$ParseNotes";
    /// Names of the files in the source: a list of texts, in the order of `$FileTypes` and `$FileSizes`.
    pub const FILE_NAMES: &str = "$FileNames";
    /// Their content types: a list of texts.
    pub const FILE_TYPES: &str = "$FileTypes";
    /// Their sizes in bytes, decoded: a list of numbers.
    pub const FILE_SIZES: &str = "$FileSizes";
    /// Its flags, as mail programs know them: a list of `\Answered`, `\Flagged`, `\Draft`, `$Forwarded` and keywords.
    pub const FLAGS: &str = scrinium_database::FLAGS;
    /// Under which headings it is shown: a list of texts.
    pub const CATEGORIES: &str = "Categories";
    /// Who hears of failures of a message that came by SMTP: an address, or an empty text for a message about which nobody is
    /// to be notified (RFC 5321 §4.5.5).
    pub const RETURN_PATH: &str = "$ReturnPath";
    /// What else the envelope of a message that came by SMTP said, [`EnvelopeItems`](crate::EnvelopeItems). Not in a delivered
    /// memo.
    pub const ENVELOPE: &str = "$Envelope";
    /// When somebody wants a memo to go that they put into a mail.box, in milliseconds since 1970. It is taken out there.
    pub const NOT_BEFORE: &str = "NotBefore";
    /// `true` in a mail.box: the rules of the server were applied to it. Only the server writes it.
    pub const RULES_DONE: &str = "$RulesDone";
    /// Why a rule of the server keeps it back in its mail.box.
    pub const HOLD_REASON: &str = "HoldReason";
    /// `Held` in a mail.box: a rule or an administrator keeps it back until somebody takes this field out. `Dead` in a mail.box: nobody could be told that it cannot be delivered.
    pub const STATE: &str = "$State";
    /// Of a delivery failure: why, one text a recipient.
    pub const FAILURE_REASON: &str = "FailureReason";
    /// Of a delivery failure: for whom the memo was.
    pub const INTENDED_RECIPIENT: &str = "IntendedRecipient";
}

/// At most this many recipients in one field.
pub const MOST_RECIPIENTS: usize = 10_000;

/// At most this many bytes of a message's text are kept in `Body`; the source has the rest.
pub const LONGEST_BODY: usize = 256 * 1024;

const LONGEST_RECIPIENT: usize = 2_000;

/// Why a document cannot be mailed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum MemoError {
    /// Nobody is named.
    #[error("a memo needs a recipient: fill SendTo, CopyTo, BlindCopyTo or Recipients")]
    NoRecipients,
    /// A field that names people is neither a text nor a list of texts.
    #[error("the field {field} must be a text or a list of texts")]
    Type {
        /// Its name.
        field: &'static str,
    },
    /// Too many people in one field.
    #[error(
        "the field {field} names {count} recipients; at most {limit} are allowed (a group counts as one)"
    )]
    TooManyRecipients {
        /// Its name.
        field: &'static str,
        /// How many are named.
        count: usize,
        /// How many may be.
        limit: usize,
    },
    /// A recipient of endless length.
    #[error("the field {field} names a recipient of more than 2,000 bytes")]
    LongRecipient {
        /// Its name.
        field: &'static str,
    },
}

/// To whom a memo goes: `Recipients` where it is there, else everybody in `SendTo`, `CopyTo` and
/// `BlindCopyTo`. As written, in order, each text once.
///
/// # Errors
/// [`MemoError`] for a memo that goes to nobody or whose lists are none.
pub fn recipients_of(memo: &Map<String, Value>) -> Result<Vec<String>, MemoError> {
    let mut recipients = texts(memo, field::RECIPIENTS)?;
    if recipients.is_empty() {
        for name in [field::SEND_TO, field::COPY_TO, field::BLIND_COPY_TO] {
            recipients.extend(texts(memo, name)?);
        }
    }
    let mut seen = std::collections::HashSet::new();
    recipients.retain(|recipient| seen.insert(recipient.clone()));
    if recipients.is_empty() { Err(MemoError::NoRecipients) } else { Ok(recipients) }
}

/// Checks a document that is put into a mail.box. Anything may be mailed, whatever its form, if it says to
/// whom.
///
/// # Errors
/// [`MemoError`], in words for the sender.
pub fn check_mailable(memo: &Map<String, Value>) -> Result<(), MemoError> {
    for name in [field::SEND_TO, field::COPY_TO, field::BLIND_COPY_TO] {
        texts(memo, name)?;
    }
    recipients_of(memo).map(drop)
}

/// The texts of a field that is a text or a list of texts, without blank ones. A single text may name several,
/// separated by commas outside of quotes.
fn texts(memo: &Map<String, Value>, field: &'static str) -> Result<Vec<String>, MemoError> {
    let mut list = Vec::new();
    match memo.get(field) {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => list.extend(split_list(text)),
        Some(Value::Array(values)) => {
            for value in values {
                list.push(value.as_str().ok_or(MemoError::Type { field })?.trim().to_owned());
            }
        }
        Some(_) => return Err(MemoError::Type { field }),
    }
    list.retain(|text| !text.is_empty());
    if list.len() > MOST_RECIPIENTS {
        return Err(MemoError::TooManyRecipients { field, count: list.len(), limit: MOST_RECIPIENTS });
    }
    if list.iter().any(|text| text.len() > LONGEST_RECIPIENT) {
        return Err(MemoError::LongRecipient { field });
    }
    Ok(list)
}

/// The recipients that one text names.
pub(crate) fn split_list(text: &str) -> Vec<String> {
    let mut quoted = false;
    text.split(|character| {
        quoted ^= character == '"';
        (character == ',' || character == ';') && !quoted
    })
    .map(|part| part.trim().to_owned())
    .collect()
}
