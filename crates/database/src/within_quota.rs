//! Databases and their quotas.

use std::sync::atomic::Ordering;

use crate::database::{Database, read_header};
use crate::error::{DatabaseError, Oversized, Result};
use crate::quota::{Quota, QuotaState};

impl Database {
    /// How full it is, by its quota.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn quota_state(&self) -> Result<QuotaState> {
        let quota = *self.quota.read();
        if quota.is_none() {
            return Ok(QuotaState::Room);
        }
        self.check_there()?;
        let header = read_header(self.store(), self.number())?;
        Ok(quota.state(header.external_bytes, header.document_count))
    }

    /// Whether it may come to hold so much; `grows` says whether that is more than it holds.
    pub(crate) fn check_quota(&self, bytes: u64, documents: u64, grows: bool) -> Result<()> {
        let quota = *self.quota.read();
        if quota.is_none() {
            return Ok(());
        }
        if grows && quota.is_passed(bytes, documents) {
            let Quota { bytes, documents, .. } = quota;
            let allowed = match (bytes, documents) {
                (bytes, 0) => format!("{bytes} bytes"),
                (0, documents) => format!("{documents} documents"),
                (bytes, documents) => format!("{bytes} bytes and {documents} documents"),
            };
            let reason = format!(
                "The database {} is full: its quota is {allowed}. Delete what is not needed any more, or ask an administrator of \
                 the server for more.",
                self.name()
            );
            return Err(DatabaseError::TooLarge { what: Oversized::Database, reason });
        }
        let is_nearly_full = quota.state(bytes, documents) != QuotaState::Room;
        if self.told_of_quota.swap(is_nearly_full, Ordering::AcqRel) != is_nearly_full && is_nearly_full {
            tracing::warn!(
                database = self.name(),
                bytes,
                documents,
                quota_bytes = quota.bytes,
                quota_documents = quota.documents,
                "a database is nearly full: its quota is set by: set database NAME quota_bytes=NUMBER"
            );
        }
        Ok(())
    }
}
