//! What can be wrong with a request.

use scrinium_database::DatabaseError;
use scrinium_directory::DirectoryError;

/// Why a request is not taken, or not carried out.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Nobody has the name.
    #[error("nobody in the directory is called {0:?}")]
    Nobody(String),
    /// Several have it.
    #[error("several in the directory are called {0:?}; give the short name of one")]
    Several(String),
    /// It is a person, and a group was meant, or the other way round.
    #[error("{name:?} is {found}, not {expected}")]
    OtherKind {
        /// The name.
        name: String,
        /// What has it.
        found: &'static str,
        /// What was meant.
        expected: &'static str,
    },
    /// Somebody else has the new name.
    #[error("the name {0:?} is somebody else's in the directory")]
    Taken(String),
    /// The new name is the present one.
    #[error("{0:?} is the name already")]
    Same(String),
    /// There is no new name.
    #[error("a new name is missing")]
    NoNewName,
    /// A user of CouchDB's form has the name of their document.
    #[error(
        "{0:?} is a user of CouchDB's form, whose name is a part of the document's id; add a person and remove this user"
    )]
    UsersForm(String),
    /// Who administers the server is not removed.
    #[error("{0:?} administers the server; take away the role _admin first")]
    Administrator(String),
    /// The directory would not take the entry with its new names.
    #[error(transparent)]
    Entry(#[from] DirectoryError),
    /// A legal hold keeps the mail.
    #[error("{name:?} cannot be erased: {hold}")]
    Held {
        /// The person.
        name: String,
        /// The hold, in words.
        hold: String,
    },
    /// The mail database is somebody else's, too.
    #[error("{0} is the mail database of several, and is not deleted; remove the person instead")]
    SharedMailFile(String),
    /// A request for the same person or group is not done.
    #[error("request {0} for the same one is not done yet; show requests lists it")]
    UnderWay(String),
    /// As many requests as may wait.
    #[error("{0} requests wait already")]
    TooMany(usize),
    /// A field that no document has.
    #[error("{0:?} cannot be a field of names")]
    Field(String),
    /// What the database says.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A request's document is not as the server wrote it.
    #[error("the document of request {0} cannot be read")]
    Unreadable(String),
}

impl RequestError {
    /// Whether it may succeed later as it is: the disk is full, or the server is about to stop.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_of_the_server() || matches!(error, DatabaseError::Conflict))
    }
}
