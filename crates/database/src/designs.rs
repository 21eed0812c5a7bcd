//! What a database does not know itself: what design documents and columns of folders mean. Who makes views of them says
//! whether they may be stored, and runs the functions that edits have to pass.

use serde_json::Value;

use crate::database::Database;
use crate::edit_mode::EditMode;
use crate::error::Result;

/// Understands design documents, and the columns of folders.
pub trait DesignInterpreter: Send + Sync + 'static {
    /// Whether a design document may be stored in the database with this uuid.
    ///
    /// # Errors
    /// Why not.
    fn check_design(&self, owner: [u8; 16], design: &Value, mode: EditMode) -> Result<()>;

    /// Whether a folder may have these columns.
    ///
    /// # Errors
    /// Why not: `compilation_error`, with the formula's line and column.
    fn check_columns(&self, folder: &str, columns: &Value) -> Result<()>;

    /// A `validate_doc_update`, by its source and its design document's JSON, of the database with this uuid. `None`: the
    /// source is no function, which stops nobody.
    fn edit_function(
        &self,
        owner: [u8; 16],
        language: FunctionLanguage,
        source: &str,
        design: &str,
    ) -> Option<Box<dyn EditFunction>>;
}

/// The language of a `validate_doc_update`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionLanguage {
    /// A function as in CouchDB.
    JavaScript,
    /// A formula.
    Formula,
}

/// A function that edits have to pass.
pub trait EditFunction: Send + Sync {
    /// What it says of some edits of a database, in their order.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`](crate::DatabaseError::Unavailable) if it cannot be asked now.
    fn validate(&self, database: &Database, edits: &[EditToValidate<'_>]) -> Result<Vec<Verdict>>;
}

/// An edit as functions get it, all of it JSON.
#[derive(Clone, Copy, Debug)]
pub struct EditToValidate<'a> {
    /// The document as it is to be stored.
    pub new_json: &'a str,
    /// The one that it replaces, or `null`.
    pub old_json: &'a str,
    /// Who edits.
    pub user_json: &'a str,
    /// The database's `_security`.
    pub security_json: &'a str,
}

/// What a function says of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be stored.
    Allowed,
    /// It may not.
    Forbidden {
        /// Why not.
        reason: String,
    },
    /// Who edits has not shown that they may.
    Unauthorized {
        /// Why not.
        reason: String,
    },
    /// The function threw something else, or did not end.
    Failed {
        /// What happened.
        reason: String,
    },
}

/// Learns what becomes of a database, as it becomes visible. Called by the thread that commits, which everybody waits for.
pub trait DatabaseObserver: Send + Sync + 'static {
    /// Documents have changed in a database that has design documents, of this generation
    /// ([`Database::design_generation`](crate::Database::design_generation)).
    fn committed(&self, designs: u64);
}
