//! What is derived in all databases: who has something to bring up to date, and what nobody reads any more.

use std::time::Duration;

use scrinium_database::Result;
use scrinium_views::OpenDatabase;

use crate::databases::Databases;

impl Databases {
    /// Whether [`take_announced`](Self::take_announced) gives any.
    #[must_use]
    pub fn has_announced(&self) -> bool {
        !self.views().announced.is_empty()
    }

    /// The databases in which views or folders are to be brought up to date in the background
    /// ([`OpenDatabase::take_wanted_views`], [`OpenDatabase::take_wanted_folders`], [`OpenDatabase::update_followed_views`]), each once
    /// however often something changed in it; at most `max`, which are forgotten with this call.
    #[must_use]
    pub fn take_announced(&self, max: usize) -> Vec<OpenDatabase> {
        let names = self.views().announced.take(max);
        // A database that is gone needs nothing more.
        let databases = names.into_iter().filter_map(|name| self.get(&name).ok());
        databases.inspect(|database| database.forget_announcement()).collect()
    }

    /// Discards the indexes of all views and folders that nobody has read for so long; they are built again when they
    /// are read. Reads one range of about 50 bytes for each index of the server. Returns how many there were.
    ///
    /// # Errors
    /// What the store reports; the rest is done by the next call.
    pub fn discard_unused_views(&self, unused_for: Duration) -> Result<usize> {
        let unused_s = i64::try_from(unused_for.as_secs()).unwrap_or(i64::MAX);
        let until_s = self.clock().timestamp().as_second().saturating_sub(unused_s);
        let open = |name: &str| self.get(name);
        self.contexts()
            .iter()
            .map(|context| scrinium_views::discard_unused(&context.store, until_s, &open))
            .sum()
    }

    /// Removes from the folder of builds what a killed server has left of builds that will not be gone on with. Whatever
    /// another server works on stays, as does what is not this store's. Looks at each folder there.
    pub fn remove_left_builds(&self) {
        scrinium_views::remove_left_builds(self.views(), &self.contexts(), &|name| self.get(name).ok());
    }
}
