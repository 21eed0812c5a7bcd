//! What must hold for the documents of the server's own databases, whoever writes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use scrinium_database::{DatabaseError, Guard, is_mailbox};
use scrinium_directory::{DIRECTORY_DATABASE, check_password};
use scrinium_mail::check_mailable;
use serde_json::{Map, Value};

use crate::config::RunningConfiguration;

/// Hashes the passwords of people, and keeps what cannot be delivered out of a mail.box.
pub(crate) struct OwnDatabases {
    /// The least length of a password that is set, in bytes.
    password_bytes: Arc<AtomicUsize>,
}

impl OwnDatabases {
    /// With the least length that is configured, also when it is changed.
    pub(crate) fn new(configuration: &RunningConfiguration) -> Self {
        let password_bytes = Arc::new(AtomicUsize::new(configuration.settings().login.password_bytes));
        let followed = Arc::clone(&password_bytes);
        configuration.on_change("login.password_bytes", move |settings| {
            followed.store(settings.login.password_bytes, Ordering::Relaxed);
            Ok(())
        });
        Self { password_bytes }
    }
}

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
            let password = document.get("password").and_then(Value::as_str);
            if let Some(password) = password {
                check_password(password, self.password_bytes.load(Ordering::Relaxed))
                    .map_err(|error| refused(error.to_string()))?;
            }
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
