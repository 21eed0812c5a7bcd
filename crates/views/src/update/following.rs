//! Following many changes, shown as a task.

use std::time::{Duration, Instant};

use scrinium_database::{DatabaseError, Result};
use scrinium_statistics::Task;

use crate::group::View;
use crate::info::Known;
use crate::open::OpenDatabase;

/// What is done sooner is not worth a line in the table of tasks.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// An update of indexes that follows the changes up to `last`; a task once it takes long.
pub(super) struct Following<'a> {
    database: &'a OpenDatabase,
    views: Vec<&'a View>,
    last: u64,
    shown_at: Instant,
    task: Option<Work<'a>>,
}

struct Work<'a> {
    task: Task,
    /// The change from which on its work is counted, so that its rate is one of work that it has seen.
    since: u64,
    _known: Known<'a>,
}

impl<'a> Following<'a> {
    /// Follows the changes by `work`, which says how far it is.
    ///
    /// # Errors
    /// What `work` says.
    pub(super) fn run(
        database: &'a OpenDatabase,
        views: Vec<&'a View>,
        last: u64,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let shown_at = Instant::now() + SHOWN_AFTER;
        let mut following = Self { database, views, last, shown_at, task: None };
        let result = work(&mut following);
        following.end(&result);
        result
    }

    /// The indexes hold all changes up to this one.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] if the task was told to stop.
    pub(super) fn reached(&mut self, reached: u64) -> Result<()> {
        if self.task.is_none() && Instant::now() >= self.shown_at {
            self.task = self.start(reached);
        }
        let Some(work) = &self.task else { return Ok(()) };
        work.task.progress(reached.saturating_sub(work.since));
        if work.task.is_cancelled() {
            let reason = "The update of the views was cancelled; the next reader continues it.".to_owned();
            return Err(DatabaseError::Unavailable { reason });
        }
        Ok(())
    }

    fn start(&self, since: u64) -> Option<Work<'a>> {
        let left = self.last.saturating_sub(since);
        let task = super::builder::task(self.database, &self.views, Some(left))?;
        Some(Work { since, _known: Known::new(&self.views, &task), task })
    }

    fn end(self, result: &Result<()>) {
        let Some(Work { task, .. }) = self.task else { return };
        match result {
            Ok(()) => task.finish(),
            Err(_) if task.is_cancelled() => drop(task),
            Err(error) => task.fail(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

    use scrinium_statistics::{Registry, TaskState, Tasks};
    use scrinium_store::{Store, StoreOptions};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::SERVER;
    use crate::testing::TestServer;
    use scrinium_database::{Edit, EditMode};

    fn put(database: &OpenDatabase, json: &Value) {
        let edit = Edit { json: json.to_string().into(), ..Edit::default() };
        database
            .update(vec![edit], EditMode::Interactive, &SERVER)
            .unwrap()
            .wait()
            .unwrap()
            .remove(0)
            .unwrap();
    }

    #[test]
    fn info_tells_how_far_an_update_is() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions::new(dir.path()), &Registry::new()).unwrap();
        let server = TestServer::new(&store);
        let tasks = Tasks::new();
        server.context.server.set_tasks(&tasks);
        let database = server.create("db");
        put(
            &database,
            &json!({"_id": "_design/d", "language": "formula", "views": {"v": {"columns": [{"formula": "A", "sort": "asc"}]}}}),
        );
        (0..19).for_each(|number| put(&database, &json!({"_id": format!("{number}"), "A": number})));
        let info = || database.view_info("d", &SERVER).unwrap()["view_index"].clone();
        let told = |info: &Value| json!([info["pending_changes"], info["progress"], info["eta_seconds"]]);
        assert_eq!(told(&info()), json!([20, null, null]), "nobody works on it");
        let group = database.view_group("d").unwrap();
        let views: Vec<&View> = group.views.iter().collect();
        let mut following =
            Following { database: &database, views, last: 20, shown_at: Instant::now(), task: None };
        following.reached(10).unwrap();
        assert_eq!(tasks.running()[0].total, Some(10), "what was done before it was shown is not its work");
        following.reached(15).unwrap();
        assert_eq!(info()["progress"], 50);
        following.reached(20).unwrap();
        assert_eq!(told(&info()), json!([20, 99, null]), "it has not said that it is ready");
        assert!(tasks.cancel(tasks.running()[0].id));
        let cancelled = following.reached(20);
        assert!(cancelled.is_err());
        following.end(&cancelled);
        assert_eq!(tasks.ended()[0].state, TaskState::Cancelled);
        assert_eq!(told(&info()), json!([20, null, null]));
        database.update_view_group("d").unwrap();
        assert_eq!(told(&info()), json!([0, 100, 0]));
        // What is not yet in files is not on disk.
        let bytes = |name: &str| info()["sizes"][name].as_u64().unwrap();
        assert!(bytes("external") > 19 * 10 && bytes("active") <= bytes("file"), "{}", info());
    }
}
