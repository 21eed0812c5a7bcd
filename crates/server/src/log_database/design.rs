//! The database itself, and its design document: made and brought to this version at the start.

use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseError, Edit, EditMode, InitialAccess, ReadOptions};
use scrinium_views::OpenDatabase;
use serde_json::Value;

/// Who keeps the log database.
pub(super) static KEEPER: Access = Access::of_the_server("keeping the log database");

/// The design document with the views. `version` goes up with every change of it.
const DESIGN: &str = include_str!("design.json");

pub(super) const DESIGN_ID: &str = "_design/log";

/// Where what became of a message is found by its Message-ID.
pub(crate) const MESSAGES_DESIGN: &str = "log";
pub(crate) const MESSAGES_VIEW: &str = "messages";

/// In the design document: who has made it, so that no other database of this name is taken for the log database.
const MADE_BY: (&str, &str) = ("made_by", "scrinium");

/// Why there is no log database.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    /// Somebody keeps documents under this name.
    #[error(
        "the database {0} holds documents that are no log; set log_database.name to another name, or to nothing"
    )]
    Foreign(String),
    /// It cannot be made or read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl PrepareError {
    /// Whether the same may go well later.
    pub(super) const fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Database(
                DatabaseError::Full { .. }
                    | DatabaseError::Unavailable { .. }
                    | DatabaseError::NotFound { .. }
            )
        )
    }
}

/// Opens the log database as it must be: there, for administrators alone, with the views of this version.
///
/// # Errors
/// [`PrepareError`]; nothing of somebody else's is changed.
pub(super) fn prepare(databases: &Databases, name: &str) -> Result<OpenDatabase, PrepareError> {
    // Who follows all databases would cause its next change by each question.
    databases.events().ignore(name);
    let database = match databases.get(name) {
        Err(DatabaseError::NotFound { .. }) => databases.create(name, &InitialAccess::Closed)?,
        found => found?,
    };
    let design = match database.read(DESIGN_ID, &ReadOptions::default(), &KEEPER) {
        Ok(document) => serde_json::from_str(&document.json).unwrap_or(Value::Null),
        Err(DatabaseError::NotFound { .. }) => Value::Null,
        Err(error) => return Err(error.into()),
    };
    let is_own = design.get(MADE_BY.0).and_then(Value::as_str) == Some(MADE_BY.1);
    if !is_own && database.info()?.document_count > 0 {
        return Err(PrepareError::Foreign(name.to_owned()));
    }
    upgrade(&database, &design)?;
    Ok(database)
}

/// Writes the design document of this version over one of an earlier version. What was added to it by hand goes;
/// other design documents are left alone.
fn upgrade(database: &OpenDatabase, stored: &Value) -> Result<(), DatabaseError> {
    let own: Value = serde_json::from_str(DESIGN).unwrap_or_default();
    let version = |design: &Value| design.get("version").and_then(Value::as_u64).unwrap_or(0);
    if version(stored) >= version(&own) {
        return Ok(());
    }
    let revision = stored.get("_rev").and_then(Value::as_str).map(str::to_owned);
    let edit =
        Edit { id: Some(DESIGN_ID.to_owned()), json: own.to_string().into(), revision, ..Edit::default() };
    let results = database.update(vec![edit], EditMode::Interactive, &KEEPER)?.wait()?;
    results.into_iter().try_for_each(|result| result.map(drop))
}
