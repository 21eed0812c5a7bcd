//! What must hold for the documents of the server's own databases, whoever writes them.

use scrinium_database::{DatabaseError, Guard, is_mailbox};
use scrinium_directory::DIRECTORY_DATABASE;
use scrinium_mail::check_mailable;
use serde_json::{Map, Value};

/// Hashes the passwords of people, and keeps what cannot be delivered out of a mail.box.
pub(crate) struct OwnDatabases;

impl Guard for OwnDatabases {
    fn guards(&self, database: &str) -> bool {
        database == DIRECTORY_DATABASE || is_mailbox(database)
    }

    fn check(
        &self,
        database: &str,
        document: Map<String, Value>,
    ) -> Result<Map<String, Value>, DatabaseError> {
        let refused = |reason: String| DatabaseError::Forbidden { reason };
        if database == DIRECTORY_DATABASE {
            return scrinium_directory::prepare(document).map_err(|error| refused(error.to_string()));
        }
        let text = |member: &str| document.get(member).and_then(Value::as_str).unwrap_or_default();
        let is_design = text("_id").starts_with(['_']);
        let is_deleted = document.get("_deleted").and_then(Value::as_bool) == Some(true);
        if !is_design && !is_deleted {
            check_mailable(&document).map_err(|error| refused(error.to_string()))?;
        }
        Ok(document)
    }
}
