//! What cannot be read among many that are read together is passed over, counted, and named once in the log, so that
//! one bad document does not keep all others from being listed, found, counted or put into views.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::database::Database;
use crate::error::{DatabaseError, Result};

/// Documents are named once; of further ones there is only the count.
const NAMED_MAX: usize = 1000;

/// What was passed over since the start.
#[derive(Default)]
pub struct PassedOver {
    count: AtomicU64,
    /// Databases and ids.
    named: Mutex<HashSet<(u32, String)>>,
}

impl Database {
    /// What was read of one document among many; `None` if it is this document that cannot be read. Whatever keeps
    /// others from being read as well stays an error.
    ///
    /// # Errors
    /// What does not concern this document alone.
    pub fn pass_over<T>(&self, id: &str, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if concerns_one(&error) => {
                self.note_passed_over(id, &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn note_passed_over(&self, id: &str, error: &DatabaseError) {
        let passed_over = &self.context.server.passed_over;
        passed_over.count.fetch_add(1, Ordering::Relaxed);
        let mut named = passed_over.named.lock();
        if named.len() < NAMED_MAX && named.insert((self.number(), id.to_owned())) {
            tracing::warn!(database = self.name(), document = id, %error, "skipped what cannot be read");
        }
    }
}

/// Whether the error is one of the document that was read, and says nothing of others.
const fn concerns_one(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Damaged { .. } | DatabaseError::Invalid { .. })
}

impl PassedOver {
    /// How often something was passed over.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}
