//! Requests that wait for a view to be brought up to date: without a thread of the pool, and without a place among the
//! transactions that are admitted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_database::Reading;

use crate::access::Opened;
use crate::context::Context;
use crate::error::{HttpError, Result};

/// Requests of one person that wait for views.
const OF_PERSON_MAX: usize = 500;

/// A holder of too many may come back after this time.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// So often a request waits, where views are rebuilt or discarded meanwhile.
const WAITS_MAX: usize = 5;

/// How many requests of each person wait. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ViewWaits(Arc<Mutex<HashMap<String, usize>>>);

/// A request that waits.
struct ViewWait {
    waits: ViewWaits,
    person: String,
}

impl ViewWaits {
    fn enter(&self, person: &str) -> Result<ViewWait> {
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

impl Context {
    /// As [`with_database`](Self::with_database) for what reads views. `work` begins again when the views that it needs
    /// have been brought up to date, with the change that they have reached.
    pub(crate) async fn with_views<T: Send + 'static>(
        &self,
        work: impl Fn(Opened, Option<u64>) -> Result<Reading<T>> + Clone + Send + 'static,
    ) -> Result<T> {
        let mut reached = None;
        for _ in 0..WAITS_MAX {
            let again = work.clone();
            let update = match self.with_database(move |opened| again(opened, reached)).await? {
                Reading::Ready(ready) => return Ok(ready),
                Reading::Behind(update) => update,
            };
            let _waits = self.state.view_waits.enter(self.identity.name().unwrap_or_default())?;
            reached = Some(update.done().await?);
        }
        Err(HttpError::unavailable("The view keeps being rebuilt; try again later."))
    }
}
