//! How many requests of each person wait for views to be brought up to date.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::{HttpError, Result};

/// Requests of one person that wait for views.
const OF_PERSON_MAX: usize = 500;

/// A holder of too many may come back after this time.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How many requests of each person wait. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ViewWaits(Arc<Mutex<HashMap<String, usize>>>);

/// A request that waits.
pub(crate) struct ViewWait {
    waits: ViewWaits,
    person: String,
}

impl ViewWaits {
    /// Counts one more, until what it gives is dropped.
    ///
    /// # Errors
    /// 429 where there are too many.
    pub(crate) fn enter(&self, person: &str) -> Result<ViewWait> {
        let mut waiting = self.0.lock();
        let count = waiting.entry(person.to_owned()).or_default();
        if *count >= OF_PERSON_MAX {
            let reason = format!("{OF_PERSON_MAX} of your requests are already waiting for views.");
            return Err(HttpError::too_many(reason, RETRY_AFTER));
        }
        *count += 1;
        Ok(ViewWait { waits: self.clone(), person: person.to_owned() })
    }
}

impl Drop for ViewWait {
    fn drop(&mut self) {
        let mut waiting = self.waits.0.lock();
        if let Some(count) = waiting.get_mut(&self.person) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.person);
            }
        }
    }
}
