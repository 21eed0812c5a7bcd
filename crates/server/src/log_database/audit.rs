//! The audit: who changed what may be done here.

use scrinium_http::{Audit, AuditAction, AuditEntry};
use scrinium_imap_server::Opening;
use serde_json::{Value, json};

use super::record::bounded;
use super::{Class, LogDatabase, fields_of};

/// Longer details are left out, so that they stay within the document.
const DETAILS_BYTES_MAX: usize = 1500;

impl LogDatabase {
    /// Records that somebody opens the mail of somebody else in that one's name: each time.
    pub(crate) fn mail_opened(&self, opening: &Opening<'_>) {
        let Opening { by, of, address } = *opening;
        tracing::warn!(by, of, %address, "mail is opened in the name of somebody else");
        self.record_always(Class::Audit, || {
            fields_of(json!({
                "Action": AuditAction::MailFileOpened.word(),
                "Target": bounded(of),
                "Person": bounded(by),
                "Address": address.to_string(),
                "Details": {"by": "IMAP", "as": bounded(of)},
            }))
        });
    }
}

impl Audit for LogDatabase {
    fn record(&self, entry: &AuditEntry<'_>) {
        let AuditEntry { action, target, person, address, details } = entry;
        let details = details.filter(|details| details.to_string().len() <= DETAILS_BYTES_MAX);
        LogDatabase::record(self, Class::Audit, || {
            fields_of(json!({
                "Action": action.word(),
                "Target": bounded(target),
                "Person": bounded(person.unwrap_or_default()),
                "Address": address.map(|address| address.to_string()),
                "Details": details.map_or(&Value::Null, |details| details),
            }))
        });
    }
}
