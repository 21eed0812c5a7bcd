//! Checks of what is written into certain databases, and secrets that are kept apart from documents.
//!
//! A secret belongs to a document and is in none of its answers: no view, feed, query, replica or export has it. It is
//! written in the batch of the edit that brings it, and goes when the document does.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use scrinium_store::Family;
use serde_json::{Map, Value};

use crate::access::Access;
use crate::database::Database;
use crate::edit::access_for_guards;
use crate::edit_mode::EditMode;
use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::read::ReadOptions;

/// Checks, and may complete, the documents that are written into certain databases, no matter who writes them:
/// no password is stored in clear, no memo without a recipient enters a mail.box.
pub trait Guard: Send + Sync + 'static {
    /// Whether the database's documents are checked.
    fn guards(&self, database: &str) -> bool;

    /// The document as it may be stored.
    ///
    /// # Errors
    /// Why it may not be.
    fn check(&self, submission: Submission<'_>) -> Result<Guarded>;

    /// A text in the document that [`check`](Self::check) would hash, which takes long, if the one who writes may set it.
    /// A caller without a thread for that has it hashed elsewhere and gives the hash as [`Edit::secret`](crate::Edit::secret).
    ///
    /// # Errors
    /// Why the document may not be stored, where that is known without the hash.
    fn clear_secret(&self, _submission: &Submission<'_>) -> Result<Option<String>> {
        Ok(None)
    }
}

/// A document on its way into a guarded database, and who writes it.
pub struct Submission<'a> {
    /// The database.
    pub database: &'a Database,
    /// Who writes ([`Access::identity`]), and what they may do there.
    pub access: &'a Access,
    /// Whether the edit brings its own revision and history.
    pub mode: EditMode,
    /// The revision that the edit names apart from the document.
    pub revision: Option<String>,
    /// The document with its `_id`; where only attachments change, as it stands.
    pub document: Map<String, Value>,
    /// The hash of its [`Guard::clear_secret`], where that was made already.
    pub hash: Option<Bytes>,
}

/// A document as a guard lets it through.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    /// The document.
    pub document: Map<String, Value>,
    /// What becomes of its secret.
    pub secret: Secret,
}

/// A text that [`Guard::check`] would hash.
#[derive(Clone, PartialEq, Eq)]
pub struct ClearSecret {
    /// The document's id; empty where it will get one.
    pub id: String,
    /// The text.
    pub text: String,
}

impl fmt::Debug for ClearSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClearSecret({:?}, …)", self.id)
    }
}

/// What becomes of what only the server may see of a document.
#[derive(Clone, Debug, Default)]
pub enum Secret {
    /// It stays as it is.
    #[default]
    Keep,
    /// It is this from now on.
    Set(Bytes),
    /// There is none any more; it goes with a document that is deleted, too.
    Remove,
    /// It becomes what this makes of it.
    Change(SecretChange),
}

/// What a secret becomes, given the present one.
type NextSecret = dyn Fn(Option<&[u8]>) -> Result<Option<Bytes>> + Send + Sync;

/// Makes of a secret what it becomes, while nobody else can write: of the present one, `None` where there is none. It must not
/// wait.
#[derive(Clone)]
pub struct SecretChange(Arc<NextSecret>);

impl SecretChange {
    /// A change.
    pub fn new(change: impl Fn(Option<&[u8]>) -> Result<Option<Bytes>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(change))
    }

    /// What the secret becomes.
    ///
    /// # Errors
    /// Why it cannot; then the document is not written either.
    pub fn make(&self, present: Option<&[u8]>) -> Result<Option<Bytes>> {
        (self.0)(present)
    }
}

impl fmt::Debug for SecretChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretChange(…)")
    }
}

impl Submission<'_> {
    /// The document as everybody finds it before the edit; `None` if there is none, or a tombstone.
    ///
    /// # Errors
    /// What the store reports.
    pub fn present(&self) -> Result<Option<Map<String, Value>>> {
        let id = self.document.get("_id").and_then(Value::as_str).unwrap_or_default();
        match self.database.read(id, &ReadOptions::default(), &access_for_guards()) {
            Ok(document) => {
                document.json.to_object().map(Some).ok_or_else(|| DatabaseError::damaged("document", id))
            }
            Err(DatabaseError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Database {
    /// What only the server may see of a document.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn secret(&self, id: &str) -> Result<Option<Bytes>> {
        self.check_there()?;
        let stored = self.store().get(Family::Point, &keys::secret(self.number(), id))?;
        Ok(stored.map(|stored| Bytes::copy_from_slice(&stored)))
    }
}
