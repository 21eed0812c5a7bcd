//! The database of requests.

use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseError, Edit, EditMode, InitialAccess, Result, RowQuery};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::request::Request;

/// The database whose documents are requests. Administrators of the server read it, and nobody else.
pub const ADMINISTRATION_DATABASE: &str = "administration";

/// What ids of requests begin with.
const PREFIX: &str = "request:";

/// Requests that are kept once they are over.
const KEPT_MAX: usize = 1000;

/// Documents read at a time.
const AT_ONCE: usize = 200;

static RECORDS: Access = Access::of_the_server("keeping requests");

/// Whether a document of the database is a request, which the server alone writes.
#[must_use]
pub fn is_request(id: &str) -> bool {
    id.starts_with(PREFIX)
}

/// The requests of a server.
pub(crate) struct Records {
    databases: Databases,
}

impl Records {
    pub(crate) fn new(databases: &Databases) -> Self {
        Self { databases: databases.clone() }
    }

    fn database(&self) -> Result<OpenDatabase> {
        match self.databases.get(ADMINISTRATION_DATABASE) {
            Err(DatabaseError::NotFound { .. }) => {
                let made = self.databases.create(ADMINISTRATION_DATABASE, &InitialAccess::Closed)?;
                // Nobody goes back to how far a request once was.
                made.set_revision_limit(3)?;
                Ok(made)
            }
            found => found,
        }
    }

    /// An id behind all earlier ones.
    pub(crate) fn new_id(&self) -> String {
        format!("{PREFIX}{:013}-{:04x}", self.databases.clock().now_ms(), rand::random::<u16>())
    }

    /// All requests, the oldest first.
    pub(crate) fn all(&self) -> Result<Vec<Request>> {
        let database = match self.databases.get(ADMINISTRATION_DATABASE) {
            Err(DatabaseError::NotFound { .. }) => return Ok(Vec::new()),
            found => found?,
        };
        let query = RowQuery {
            start_key: Some(Value::from(PREFIX)),
            end_key: Some(Value::from(format!("{PREFIX}\u{fff0}"))),
            include_documents: true,
            ..RowQuery::default()
        };
        let mut rows = database.all_documents(query, &RECORDS)?;
        let mut all = Vec::new();
        loop {
            let some = rows.next_rows(AT_ONCE)?;
            if some.is_empty() {
                return Ok(all);
            }
            for row in some {
                match row.document.as_deref().map(serde_json::from_str::<Request>) {
                    Some(Ok(request)) => all.push(request),
                    _ => tracing::error!(id = row.id, "a request cannot be read, and is not carried out"),
                }
            }
        }
    }

    /// Stores a request as it is now; durable when this returns.
    pub(crate) fn put(&self, request: &mut Request) -> Result<()> {
        let json = serde_json::to_string(request).map_err(|error| internal(&error))?;
        let edit = Edit { json: json.into(), ..Edit::default() };
        let updated = self.database()?.update_one(edit, EditMode::Interactive, &RECORDS)?;
        request.revision = Some(updated.revision);
        Ok(())
    }

    /// Removes the oldest of those that are over, if there are too many.
    pub(crate) fn prune(&self) -> Result<()> {
        let over: Vec<Request> = self.all()?.into_iter().filter(Request::is_over).collect();
        let too_many = over.len().saturating_sub(KEPT_MAX);
        for request in over.into_iter().take(too_many) {
            let json = json!({"_id": request.id, "_rev": request.revision, "_deleted": true});
            let edit = Edit { json: json.to_string().into(), ..Edit::default() };
            self.database()?.update_one(edit, EditMode::Interactive, &RECORDS)?;
        }
        Ok(())
    }
}

fn internal(error: &serde_json::Error) -> DatabaseError {
    DatabaseError::Internal { reason: error.to_string() }
}
