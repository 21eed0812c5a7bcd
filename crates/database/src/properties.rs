//! What an administrator sets for a database as a whole, besides who may do what.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use scrinium_store::{Batch, Family, LogStyle, Store};
use serde_json::{Map, Value, json};

use crate::database::Database;
use crate::deletion::UndeleteChoice;
use crate::error::{DatabaseError, Result};
use crate::history::HistoryLimits;
use crate::keys;
use crate::quota::Quota;

/// What an administrator sets for a database as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Whether changes go through the transaction log. Those of a database that is not logged are answered when the
    /// files of all databases hold them, which takes longer and makes others wait.
    pub logged: bool,
    /// Whether the words of all documents and attachments are kept, so that they can be searched for.
    pub full_text: bool,
    /// How much it may hold.
    pub quota: Quota,
    /// How many earlier bodies of documents are kept.
    pub history: HistoryLimits,
    /// What is said here of deleted messages.
    pub undelete: UndeleteChoice,
}

impl Default for Properties {
    fn default() -> Self {
        Self {
            logged: true,
            full_text: false,
            quota: Quota::NONE,
            history: HistoryLimits::NONE,
            undelete: UndeleteChoice::NONE,
        }
    }
}

impl Properties {
    /// As clients see them.
    #[must_use]
    pub fn to_json(self) -> Value {
        let mut json = json!({"logged": self.logged, "full_text": self.full_text});
        if let (Some(members), true) = (json.as_object_mut(), self.quota != Quota::NONE) {
            members.extend(self.quota.to_members());
        }
        if let (Some(members), true) = (json.as_object_mut(), self.history.is_on()) {
            members.extend(self.history.to_members());
        }
        if let Some(members) = json.as_object_mut() {
            members.extend(self.undelete.to_members());
        }
        json
    }

    /// These, changed as a client wishes: an object with the properties that are to be changed.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for a property that is not known or a value that it does not take.
    pub fn changed(mut self, wish: &Map<String, Value>) -> Result<Self> {
        for (name, value) in wish {
            match (name.as_str(), value) {
                ("logged", Value::Bool(logged)) => self.logged = *logged,
                ("full_text", Value::Bool(full_text)) => self.full_text = *full_text,
                (name, value)
                    if self.quota.set(name, value)?
                        || self.history.set(name, value)?
                        || self.undelete.set(name, value)? => {}
                ("logged" | "full_text", _) => {
                    return Err(DatabaseError::bad_request(format!("`{name}` must be true or false")));
                }
                _ => {
                    return Err(DatabaseError::bad_request(format!(
                        "`{name}` is not a property of a database; known are: logged, full_text, quota_bytes, \
                         quota_documents, quota_warn_percent, history_revisions, history_days, undelete_days, undelete_bytes"
                    )));
                }
            }
        }
        Ok(self)
    }

    pub(crate) fn read(store: &Store, number: u32, name: &str) -> Result<Self> {
        let Some(stored) = store.get(Family::Meta, &keys::properties(number))? else {
            return Ok(Self::default());
        };
        let known = serde_json::from_slice::<Map<String, Value>>(&stored).ok();
        let known = known.and_then(|members| Self::default().changed(&members).ok());
        known.ok_or_else(|| DatabaseError::damaged("properties", name))
    }
}

impl Database {
    /// How much of its documents' history the database keeps.
    #[must_use]
    pub fn history(&self) -> HistoryLimits {
        *self.history.read()
    }

    /// What is set for the database as a whole.
    #[must_use]
    pub fn properties(&self) -> Properties {
        Properties {
            logged: self.logged.load(Ordering::Acquire),
            full_text: self.full_text.load(Ordering::Acquire),
            quota: *self.quota.read(),
            history: self.history(),
            undelete: *self.undelete.read(),
        }
    }

    /// Sets it; it is durable and in force when this returns. Updates of the database wait meanwhile: what was begun in
    /// one way is stored before anything is in the other.
    ///
    /// # Errors
    /// What the store reports; nothing was changed then.
    pub fn set_properties(self: &Arc<Self>, properties: Properties) -> Result<()> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.set_properties(properties),
        };
        let writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        if properties == self.properties() {
            return Ok(());
        }
        let mut batch = Batch::new();
        batch.put(
            Family::Meta,
            &keys::properties(self.number()),
            properties.to_json().to_string().as_bytes(),
        );
        // It waits in the line of the updates before it, so that these are stored when it is.
        self.submit(&writer, batch, (), |_| {})?.wait()?;
        self.logged.store(properties.logged, Ordering::Release);
        self.full_text.store(properties.full_text, Ordering::Release);
        *self.quota.write() = properties.quota;
        *self.history.write() = properties.history;
        *self.undelete.write() = properties.undelete;
        drop(writer);
        Ok(())
    }

    /// The last change that may be given out of a snapshot taken after `visible` was the last known to be durable. In a
    /// snapshot of a database that is not logged there may be later ones that are not durable yet: anyone who continues
    /// after one that is then lost would miss the one that gets its number.
    pub fn given_up_to(&self, visible: u64) -> u64 {
        if self.is_logged() { u64::MAX } else { visible }
    }

    /// Whether its changes go through the log: as its properties say, where the server has a log.
    #[must_use]
    pub fn is_logged(&self) -> bool {
        match self.store().log_style() {
            LogStyle::Off => false,
            LogStyle::Circular => self.properties().logged,
            // What is not in the log could not be restored.
            LogStyle::Archive => true,
        }
    }
}
