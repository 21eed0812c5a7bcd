//! What a formula is evaluated with: the document, the time, and who asks.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::datetime::DateTime;
use crate::value::{Text, Value};

/// A document seen through its fields.
pub trait Fields {
    /// The value of a field, whose name is compared without regard to case; none if the document lacks
    /// it. [`Value::from_json`] makes it from JSON.
    fn field(&self, name: &str) -> Option<Value>;

    /// The document's identifier, which `@DocumentUniqueID` answers.
    fn id(&self) -> &str;

    /// The names of all fields, for `@DocFields`; none if the document cannot tell them.
    fn field_names(&self) -> Option<Vec<Text>> {
        None
    }

    /// When the document was made.
    fn created(&self) -> Option<DateTime> {
        None
    }

    /// When the document was changed last.
    fn modified(&self) -> Option<DateTime> {
        None
    }

    /// The files attached to the document.
    fn attachments(&self) -> Vec<AttachmentInfo> {
        Vec::new()
    }

    /// The size of the document with its attachments, in bytes.
    fn size_bytes(&self) -> u64 {
        0
    }

    /// The identifier of the document that this one responds to (its field `$REF`).
    fn parent(&self) -> Option<String> {
        None
    }
}

/// A file attached to a document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AttachmentInfo {
    /// The name of the file.
    pub name: String,
    /// Its length in bytes, as it was attached.
    pub length: u64,
}

/// What does not come from the document: the time, the time zone, and who asks.
///
/// `Environment::default()` is a moment in 1970, in UTC, without a user.
#[derive(Clone, Debug)]
pub struct Environment {
    /// What `@Now` answers. The same for all documents of one run, so that a view is consistent.
    pub now: Timestamp,
    /// The zone in which days begin and clocks are read. The default is UTC.
    pub time_zone: TimeZone,
    /// The canonical name of the user for whom the formula runs: `CN=Ann Smith/O=Acme`.
    pub user_name: Option<String>,
    /// The groups that the user belongs to.
    pub user_groups: Vec<String>,
    /// The roles that the user has in the database, in brackets: `[Editors]`.
    pub user_roles: Vec<String>,
    /// The canonical name of the server.
    pub server_name: Option<String>,
    /// The name of the database.
    pub database_name: Option<String>,
    /// The title of the database.
    pub database_title: Option<String>,
}

impl Environment {
    /// This moment in this zone, without a user.
    #[must_use]
    pub const fn new(now: Timestamp, time_zone: TimeZone) -> Self {
        Self {
            now,
            time_zone,
            user_name: None,
            user_groups: Vec::new(),
            user_roles: Vec::new(),
            server_name: None,
            database_name: None,
            database_title: None,
        }
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::new(Timestamp::UNIX_EPOCH, TimeZone::UTC)
    }
}
