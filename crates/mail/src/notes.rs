//! What was found damaged or missing while a message was read.

use serde_json::Value;

/// More would only repeat what the first ones say.
const MOST_NOTES: usize = 20;

/// Remarks on a message, each once, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<String>);

impl Notes {
    pub(crate) fn add(&mut self, note: &str) {
        if self.0.len() < MOST_NOTES && !self.0.iter().any(|known| known == note) {
            self.0.push(note.to_owned());
        }
    }

    /// Adds what was found elsewhere behind these.
    pub(crate) fn append(&mut self, others: &Self) {
        others.0.iter().for_each(|note| self.add(note));
    }

    /// The field's value; `None` where there is nothing to say.
    pub(crate) fn into_value(self) -> Option<Value> {
        if self.0.is_empty() { None } else { Some(Value::from(self.0)) }
    }
}

/// How the note on a header field ends that a message should have and does not.
const MISSING: &str = " is missing";

/// Whether the notes say no more than that header fields are missing: nothing is damaged then.
pub(crate) fn only_missing(notes: &Value) -> bool {
    let is_missing = |note: &Value| note.as_str().is_some_and(|note| note.ends_with(MISSING));
    notes.as_array().is_some_and(|notes| notes.iter().all(is_missing))
}
