//! What rspamd answers over HTTP to a message (`/checkv2`): what is to be done with it, and which fields it gets and loses.
//!
//! An answer that cannot be read is an error; what stands in it about other things is passed over.

use serde_json::{Map, Value};

use crate::milter::{Change, is_field_name, line, one_field};

/// An answer has no more bytes: rspamd lists symbols, addresses and links, of which none counts here.
pub const RSPAMD_ANSWER_BYTES_MAX: usize = 1 << 20;

/// Fields that an answer adds and takes away; further ones are left.
const FIELDS_MAX: usize = 100;

/// Fields of one name that are taken away.
const REMOVED_OF_NAME_MAX: u32 = 20;

/// What is to be done with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RspamdAction {
    /// It goes on. Also where rspamd says `greylist`: its own module for that says `soft reject` when it is to wait, and without that
    /// module it would be told to wait for ever.
    Accept,
    /// It is put aside, for this reason.
    PutAside(String),
    /// It is not taken now (451), with these words.
    Postpone(String),
    /// It is refused (550), with these words.
    Reject(String),
    /// It is taken and thrown away.
    Discard,
}

/// What rspamd says of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RspamdAnswer {
    /// What is to be done.
    pub action: RspamdAction,
    /// Changes of its fields, in their order.
    pub changes: Vec<Change>,
}

/// Why an answer says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RspamdError {
    /// It is no JSON, or no object with an action.
    #[error("its answer cannot be read")]
    Form,
    /// It wants what nobody here knows how to do.
    #[error("it wants an action that is unknown: {0:?}")]
    Action(String),
}

impl RspamdAnswer {
    /// Reads an answer.
    ///
    /// # Errors
    /// [`RspamdError`]
    pub fn parse(bytes: &[u8]) -> Result<Self, RspamdError> {
        if bytes.len() > RSPAMD_ANSWER_BYTES_MAX {
            return Err(RspamdError::Form);
        }
        let answer: Map<String, Value> = serde_json::from_slice(bytes).map_err(|_| RspamdError::Form)?;
        let action = answer.get("action").and_then(Value::as_str).ok_or(RspamdError::Form)?;
        let words = |otherwise: &str| {
            let said = answer.get("messages").and_then(|messages| messages.get("smtp_message"));
            let said = said.and_then(Value::as_str).map(|said| line(said.as_bytes()));
            said.filter(|said| !said.trim().is_empty()).unwrap_or_else(|| otherwise.to_owned())
        };
        let action = match action {
            "no action" | "greylist" => RspamdAction::Accept,
            "add header" | "rewrite subject" | "quarantine" => RspamdAction::PutAside(score(&answer)),
            "soft reject" => {
                RspamdAction::Postpone(words("This server does not take the message now. Try again later"))
            }
            "reject" => RspamdAction::Reject(words("This server takes the message for spam")),
            "discard" => RspamdAction::Discard,
            other => return Err(RspamdError::Action(line(other.as_bytes()))),
        };
        Ok(Self { action, changes: answer.get("milter").map(changes).unwrap_or_default() })
    }
}

/// Why rspamd takes a message for spam.
fn score(answer: &Map<String, Value>) -> String {
    let number = |name: &str| answer.get(name).and_then(Value::as_f64).unwrap_or_default();
    format!("rspamd gives it {:.1} of {:.1}", number("score"), number("required_score"))
}

/// What the module `milter_headers` wants: fields go before others come, as they often have the same name.
fn changes(milter: &Value) -> Vec<Change> {
    let members = |name: &str| milter.get(name).and_then(Value::as_object).into_iter().flatten();
    let mut changes = Vec::new();
    for (name, place) in members("remove_headers").filter(|(name, _)| is_field_name(name)).take(FIELDS_MAX) {
        let remove = |index| Change::ChangeField { index, name: name.clone(), value: None };
        match place.as_i64() {
            // All of them: each time the first one that is left.
            Some(0) => changes.extend((0..REMOVED_OF_NAME_MAX).map(|_| remove(1))),
            Some(place) => changes.extend(u32::try_from(place).ok().map(remove)),
            None => {}
        }
    }
    let added = members("add_headers").flat_map(|(name, values)| {
        let values = values.as_array().map_or_else(|| std::slice::from_ref(values), Vec::as_slice);
        values.iter().filter_map(|value| added(name, value))
    });
    changes.extend(added.take(FIELDS_MAX));
    changes
}

/// A text, or an object with a text and the place from the top where it is to stand.
fn added(name: &str, written: &Value) -> Option<Change> {
    let text = written.as_str().or_else(|| written.get("value").and_then(Value::as_str))?;
    let (name, value) = one_field(name, text.as_bytes())?;
    let place = written.get("order").and_then(Value::as_u64).and_then(|place| u32::try_from(place).ok());
    Some(match place {
        Some(index) => Change::InsertField { index, name, value },
        None => Change::AddField { name, value },
    })
}
