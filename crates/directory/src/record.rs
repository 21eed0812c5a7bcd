//! The credentials of a person as they lie in the directory's secret place: a record of
//! [`StoredCredentials`], or, from an earlier version, the hash of a password alone, which is taken over as it is read.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use scrinium_credentials::{Change, HashedPassword, LONGEST_PASSWORD, PasswordMark, StoredCredentials};
use scrinium_database::{DatabaseError, SecretChange};
use serde_json::{Map, Value};

use crate::{CredentialError, DirectoryError, NameLookup, Person};

/// Whether a password that is to be set is long enough, and not too long.
///
/// # Errors
/// [`DirectoryError::PasswordLength`].
pub fn check_password(password: &str, least: usize) -> Result<(), DirectoryError> {
    if (least.max(1)..=LONGEST_PASSWORD).contains(&password.len()) {
        Ok(())
    } else {
        Err(DirectoryError::PasswordLength { least: least.max(1), limit: LONGEST_PASSWORD })
    }
}

/// What becomes of somebody's credentials.
pub type CredentialChange = Box<dyn Fn(&mut StoredCredentials) -> Result<(), CredentialError> + Send + Sync>;

/// Everybody's credentials, and where changes of them are kept.
pub trait CredentialRecords: NameLookup {
    /// How many people and groups cannot be read, or have credentials that cannot be.
    fn unreadable(&self) -> usize;

    /// The person whose document has this id.
    fn person(&self, id: &str) -> Option<Arc<Person>>;

    /// The person to whom an account at a provider is linked.
    fn linked_person(&self, issuer: &str, subject: &str) -> Option<Arc<Person>>;

    /// Changes the credentials of a person; all of it, or nothing. It waits until that is stored. `change` may be called more
    /// than once.
    ///
    /// # Errors
    /// [`CredentialError`]; then nothing is changed.
    fn change(&self, id: &str, change: CredentialChange) -> Result<(), CredentialError>;

    /// Makes what a log-in changes.
    ///
    /// # Errors
    /// As [`Self::change`]; the log-in has failed then.
    fn apply(&self, id: &str, changes: Vec<Change>) -> Result<(), CredentialError> {
        self.change(
            id,
            Box::new(move |credentials| {
                Ok(changes.iter().try_for_each(|change| credentials.apply(change))?)
            }),
        )
    }

    /// Stores a password as it is stored today, if it still is the one with this mark.
    ///
    /// # Errors
    /// As [`Self::change`].
    fn renew_password(
        &self,
        id: &str,
        mark: PasswordMark,
        hashed: HashedPassword,
        now_ms: u64,
    ) -> Result<(), CredentialError> {
        self.change(
            id,
            Box::new(move |credentials| {
                credentials.renew_password(&mark, hashed.clone(), now_ms);
                Ok(())
            }),
        )
    }
}

/// What a document that is written says of the person's password.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum PasswordEdit {
    /// Nothing: it stays.
    #[default]
    Keep,
    /// It goes.
    Remove,
    /// It is this, in clear, and must be hashed.
    Clear(String),
    /// It is this, hashed.
    Hashed(HashedPassword),
}

/// A password is no log's to show.
impl std::fmt::Debug for PasswordEdit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Keep => "Keep",
            Self::Remove => "Remove",
            Self::Clear(_) => "Clear(…)",
            Self::Hashed(_) => "Hashed(…)",
        })
    }
}

/// The field that holds a hash on its way in.
pub(crate) const PASSWORD_HASH: &str = "PasswordHash";

impl PasswordEdit {
    /// Takes what a document says out of it, before anything can fail, so that no error and no log ever shows it.
    pub(crate) fn take(document: &mut Map<String, Value>) -> Result<Self, DirectoryError> {
        let clear = document.shift_remove("password");
        let hash = document.shift_remove(PASSWORD_HASH);
        match (clear, hash) {
            (Some(Value::String(password)), _) => {
                check_password(&password, 1)?;
                Ok(Self::Clear(password))
            }
            (None | Some(Value::Null), Some(Value::String(hash))) => take_over(&hash).map(Self::Hashed),
            (Some(Value::Null), None | Some(Value::Null)) | (None, Some(Value::Null)) => Ok(Self::Remove),
            (None, None) => Ok(Self::Keep),
            (Some(_), _) => Err(DirectoryError::Type { field: "password", expected: "a text" }),
            (_, Some(_)) => Err(DirectoryError::Type { field: PASSWORD_HASH, expected: "a text" }),
        }
    }
}

/// A hash that an administrator, or an earlier version, has put into a document.
pub(crate) fn take_over(hash: &str) -> Result<HashedPassword, DirectoryError> {
    HashedPassword::take_over(hash).map_err(|_| DirectoryError::Value {
        field: PASSWORD_HASH,
        value: "…".to_owned(),
        rule: "it is not a whole argon2id hash that costs at most m=65536, t=10, p=4",
    })
}

/// Reads what lies in the secret place.
pub(crate) fn read(secret: Option<&[u8]>) -> Result<StoredCredentials, CredentialError> {
    match secret {
        None => Ok(StoredCredentials::default()),
        Some(hash) if hash.starts_with(b"$") => {
            let mut credentials = StoredCredentials::default();
            credentials.take_over_password(&String::from_utf8_lossy(hash))?;
            Ok(credentials)
        }
        Some(record) => Ok(StoredCredentials::from_bytes(record)?),
    }
}

fn write(credentials: &StoredCredentials) -> Result<Option<Bytes>, CredentialError> {
    if *credentials == StoredCredentials::default() {
        return Ok(None);
    }
    Ok(Some(credentials.to_bytes()?.into()))
}

/// What a change of a record has given, once it was made.
pub(crate) type Outcome<T> = Arc<Mutex<Option<Result<T, CredentialError>>>>;

/// A change of a record, as the database makes it under its lock. What the change gives is found in the outcome.
pub(crate) fn change_of<T: Send + 'static>(
    change: impl Fn(&mut StoredCredentials) -> Result<T, CredentialError> + Send + Sync + 'static,
) -> (SecretChange, Outcome<T>) {
    let outcome: Outcome<T> = Arc::default();
    let told = Arc::clone(&outcome);
    let made = SecretChange::new(move |present| {
        let changed = read(present).and_then(|mut credentials| {
            let given = change(&mut credentials)?;
            Ok((given, write(&credentials)?))
        });
        let (given, secret) = match changed {
            Ok((given, secret)) => (Ok(given), Ok(secret)),
            Err(error) => {
                let reason = error.to_string();
                (Err(error), Err(DatabaseError::Forbidden { reason }))
            }
        };
        *told.lock() = Some(given);
        secret
    });
    (made, outcome)
}
