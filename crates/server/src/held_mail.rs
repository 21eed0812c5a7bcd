//! Memos that wait for their time, as their senders take them back by HTTP.

use scrinium_database::DatabaseError;
use scrinium_http::{HeldMail, Identity};
use scrinium_mail::Mailboxes;

/// Keeps them in the mail.boxes.
pub(crate) struct PostponedMail(pub(crate) Mailboxes);

impl HeldMail for PostponedMail {
    fn take_back(&self, by: &Identity, id: &str) -> Result<bool, DatabaseError> {
        by.name().map_or(Ok(false), |name| self.0.take_back(id, name))
    }
}
