//! What is known of deleted messages that can be had back: limits, records, and what is shown of them; see [`crate::undelete`].

use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_document::Fields;
use scrinium_document::json::stored_value;
use serde_json::Value;

use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::leaf::Leaf;
use crate::source_facts::SOURCE_ATTACHMENT;

/// The longest time, ten years.
const DAYS_MAX: u32 = 3_650;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A document keeps the bodies of this many of its deletions at most.
pub(crate) const KEPT_OF_DOCUMENT: usize = 10;

/// A deleted message that was in more folders is restored into the first of them.
pub(crate) const PLACES_MAX: usize = 100;

/// Of how many people is known that they had read it.
pub(crate) const READERS_MAX: usize = 1_000;

/// What stands in the field `Form` of messages that have no source.
const FORMS: [&str; 2] = ["Memo", "NonDelivery Report"];

const VERSION: u8 = 1;

/// How long deleted messages can be had back, and how many bytes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndeleteLimits {
    /// 0: they are gone at once.
    pub days: u32,
    /// Bytes of all fields and attachments, before compression and sharing; the oldest go first. 0: they are gone at once.
    pub bytes: u64,
}

impl UndeleteLimits {
    /// What is deleted is gone.
    pub const NONE: Self = Self { days: 0, bytes: 0 };

    /// Whether anything is kept.
    #[must_use]
    pub const fn is_on(self) -> bool {
        self.days > 0 && self.bytes > 0
    }

    /// What was deleted before this is too old.
    #[must_use]
    pub fn oldest_ms(self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(u64::from(self.days) * DAY_MS)
    }
}

/// What is said of a database; where nothing is, the server's limits hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UndeleteChoice {
    /// Days, as in [`UndeleteLimits`].
    pub days: Option<u32>,
    /// Bytes, as there.
    pub bytes: Option<u64>,
}

impl UndeleteChoice {
    /// Nothing is said.
    pub const NONE: Self = Self { days: None, bytes: None };

    /// Takes over a property of this name; whether it is one of these.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for a value that it cannot have.
    pub(crate) fn set(&mut self, name: &str, value: &Value) -> Result<bool> {
        let most = match name {
            "undelete_days" => u64::from(DAYS_MAX),
            "undelete_bytes" => u64::MAX,
            _ => return Ok(false),
        };
        let number = match value {
            Value::Null => None,
            value => Some(value.as_u64().filter(|number| *number <= most).ok_or_else(|| {
                DatabaseError::bad_request(format!(
                    "`{name}` is a number from 0, which keeps nothing, to {most}, or null for what the server says"
                ))
            })?),
        };
        if name == "undelete_days" {
            self.days = number.and_then(|number| u32::try_from(number).ok());
        } else {
            self.bytes = number;
        }
        Ok(true)
    }

    /// As clients see it.
    pub(crate) fn to_members(self) -> impl Iterator<Item = (String, Value)> {
        let days = self.days.map(|days| ("undelete_days".to_owned(), days.into()));
        days.into_iter().chain(self.bytes.map(|bytes| ("undelete_bytes".to_owned(), bytes.into())))
    }
}

/// Where a deleted message lay, and who had read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// Bytes of its fields and attachments.
    pub(crate) bytes: u64,
    /// Folders by name, and when it came there, in milliseconds since 1970.
    pub(crate) places: Vec<(String, u64)>,
    pub(crate) readers: Vec<String>,
}

impl Deletion {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_number(&mut out, self.bytes);
        put_number(&mut out, self.places.len() as u64);
        for (folder, added_ms) in &self.places {
            put_bytes(&mut out, folder.as_bytes());
            put_number(&mut out, *added_ms);
        }
        put_number(&mut out, self.readers.len() as u64);
        self.readers.iter().for_each(|reader| put_bytes(&mut out, reader.as_bytes()));
        out
    }

    /// `None`: damaged, or of a version that is not known.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        if input.byte()? != VERSION {
            return None;
        }
        let mut deletion = Self { bytes: input.number()?, ..Self::default() };
        for _ in 0..input.number()? {
            deletion.places.push((input.text()?.to_owned(), input.number()?));
        }
        for _ in 0..input.number()? {
            deletion.readers.push(input.text()?.to_owned());
        }
        Some(deletion)
    }
}

/// How many deleted messages a database keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletedSums {
    /// Messages.
    pub count: u64,
    /// Their bytes, as [`UndeleteLimits`] counts them.
    pub bytes: u64,
}

impl DeletedSums {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_number(&mut out, self.count);
        put_number(&mut out, self.bytes);
        out
    }

    /// `None`: damaged, or of a version that is not known.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        if input.byte()? != VERSION {
            return None;
        }
        Some(Self { count: input.number()?, bytes: input.number()? })
    }
}

/// Which deleted message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeletedKey {
    /// When it was deleted, in milliseconds since 1970.
    pub deleted_ms: u64,
    /// The document.
    pub id: String,
    /// Its last revision.
    pub revision: String,
}

impl DeletedKey {
    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        let (deleted_ms, id, revision) = keys::deleted_of(key)?;
        Some(Self { deleted_ms, id: id.to_owned(), revision: revision.to_owned() })
    }

    pub(crate) fn key(&self, number: u32) -> Vec<u8> {
        keys::deleted(number, self.deleted_ms, &self.id, &self.revision)
    }
}

/// A deleted message that can be had back.
#[derive(Clone, Debug)]
pub struct DeletedMessage {
    /// Which it is.
    pub key: DeletedKey,
    /// Bytes of its fields and attachments.
    pub bytes: u64,
    /// The folders that it was in, by name.
    pub folders: Vec<String>,
    /// Short fields that were asked for, in that order; null for one that it does not have.
    pub fields: Vec<Value>,
}

/// Some deleted messages.
#[derive(Clone, Debug, Default)]
pub struct DeletedPage {
    /// Those that were found, the oldest first.
    pub messages: Vec<DeletedMessage>,
    /// Where the next page begins; `None` behind the last.
    pub next: Option<DeletedKey>,
}

/// A message that was had back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeleted {
    /// Its document, as before.
    pub id: String,
    /// Its revision now.
    pub revision: String,
    /// The folders that it is in.
    pub folders: Vec<String>,
}

/// Whether a document stands for a message: it has a source, or is a memo.
pub(crate) fn is_message(leaf: &Leaf<'_>, id: &str) -> Result<bool> {
    if leaf.has_attachments()
        && leaf.attachments(id)?.iter().any(|attachment| attachment.name == SOURCE_ATTACHMENT)
    {
        return Ok(true);
    }
    let form = text_of(&leaf.fields(id)?, "Form");
    Ok(form.as_ref().and_then(Value::as_str).is_some_and(|form| FORMS.contains(&form)))
}

pub(crate) fn text_of(fields: &Fields<'_>, name: &str) -> Option<Value> {
    fields.get(name).and_then(stored_value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_of_a_deletion_is_read_back(
            bytes in any::<u64>(),
            places in prop::collection::vec((".{0,8}", any::<u64>()), 0..4),
            readers in prop::collection::vec(".{0,8}", 0..4),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let deletion = Deletion { bytes, places, readers };
            let stored = deletion.encode();
            prop_assert_eq!(Deletion::decode(&stored), Some(deletion));
            for length in 0..stored.len() {
                prop_assert_eq!(Deletion::decode(&stored[..length]), None);
            }
            let _ = Deletion::decode(&noise);
        }
    }

    #[test]
    fn a_key_names_one_deletion() {
        let which = DeletedKey { deleted_ms: 7, id: "a/b".to_owned(), revision: "3-ab".to_owned() };
        assert_eq!(DeletedKey::of(&which.key(9)), Some(which.clone()));
        let later = DeletedKey { deleted_ms: 256, id: String::new(), ..which.clone() };
        assert!(which.key(9) < later.key(9));
    }
}
