//! What becomes of databases, written down as CouchDB does: one document for each kind of event and database.

use scrinium_database::{
    Access, Database, DatabaseError, DatabaseEvent, Edit, EditMode, ReadOptions, Result,
};
use serde_json::json;

use crate::databases::Databases;
use crate::names::EVENTS_DATABASE;

/// Events written at once.
const EVENTS_AT_ONCE: usize = 500;

/// Revisions that a document of an event keeps: nobody asks for them.
const REVISIONS: u64 = 5;

const WRITER: Access = Access::of_the_server("noting what becomes of databases");

impl Databases {
    /// Notes what becomes of databases from now on: always, or only if that was done before, so that the database of
    /// events is there.
    ///
    /// # Errors
    /// What the store reports.
    pub fn follow_events(&self, always: bool) -> Result<()> {
        let events = self.events();
        events.ignore(EVENTS_DATABASE);
        let is_there = match self.get(EVENTS_DATABASE) {
            Err(DatabaseError::NotFound { .. }) => false,
            found => found.map(|_| true)?,
        };
        events.set_followed(always || is_there);
        Ok(())
    }

    /// Writes all events that wait into the database of events. Where it was dropped, nobody wants to know any more.
    ///
    /// # Errors
    /// What the store reports.
    pub fn write_events(&self) -> Result<()> {
        let database = match self.get(EVENTS_DATABASE) {
            Err(DatabaseError::NotFound { .. }) => {
                self.events().set_followed(false);
                return Ok(());
            }
            database => database?,
        };
        if database.revision_limit() != REVISIONS {
            database.set_revision_limit(REVISIONS)?;
        }
        loop {
            let events = self.events().take(EVENTS_AT_ONCE);
            if events.is_empty() {
                return Ok(());
            }
            let edits = events.iter().map(|event| edit(&database, event));
            let edits = edits.collect::<Result<Vec<Edit>>>()?;
            for written in database.update_in_parts(edits, EditMode::Interactive, &WRITER)?.wait()? {
                written?;
            }
        }
    }
}

/// The next revision of an event's document.
fn edit(database: &Database, event: &DatabaseEvent) -> Result<Edit> {
    let id = format!("{}:{}", event.kind.word(), event.name);
    let revision = match database.read(&id, &ReadOptions::default(), &WRITER) {
        Ok(document) => Some(document.revision),
        Err(DatabaseError::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(Edit { id: Some(id), json: json!({}).to_string().into(), revision, ..Edit::default() })
}
