//! What can be wrong with a directory document or a login.

use std::time::Duration;

use scrinium_credentials::passkey::PasskeyError;
use scrinium_credentials::{
    Answer, AppPasswordError, ChangeError, MOST_LINKS, NextStep, PasswordError, Protocol, RandomError,
    StoredError,
};
use scrinium_database::DatabaseError;
use thiserror::Error;

/// Why a document cannot stand in the directory.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum DirectoryError {
    /// The id lacks the prefix of its form.
    #[error("the id {id:?} must start with {prefix:?}")]
    Id {
        /// The id that was given.
        id: String,
        /// What it must start with.
        prefix: &'static str,
    },
    /// The form is not that of the id.
    #[error("Form must be {expected:?}, not {found:?}")]
    Form {
        /// The form that the id asks for.
        expected: &'static str,
        /// The form that was given.
        found: String,
    },
    /// A required field is absent or empty.
    #[error("the field {field} is required")]
    Missing {
        /// Its name.
        field: &'static str,
    },
    /// A field has a value of the wrong kind.
    #[error("the field {field} must be {expected}")]
    Type {
        /// Its name.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A field's value breaks a rule.
    #[error("the field {field} cannot be {value:?}: {rule}")]
    Value {
        /// Its name.
        field: &'static str,
        /// The value, cut to a readable length.
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// A list is too long.
    #[error("the field {field} has {count} values; at most {limit} are kept")]
    TooMany {
        /// Its name.
        field: &'static str,
        /// How many were given.
        count: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// The password is too short or too long.
    #[error("a password has between {least} and {limit} bytes")]
    PasswordLength {
        /// The least length, in bytes.
        least: usize,
        /// The greatest length, in bytes.
        limit: usize,
    },
    /// The password could not be hashed.
    #[error("the password could not be hashed: {0}")]
    Hash(String),
}

/// Why a login was refused.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum LoginError {
    /// The first proof is right, and a second one is needed.
    #[error("Name and password are right, and the account has two-step sign-in: a second step is needed.")]
    SecondStep(NextStep),
    /// The proof cannot be used here, or is right and not enough.
    #[error("{}", .0.text(*.1))]
    Denied(Answer, Protocol),
    /// Unknown name or wrong password; which of both is never told.
    #[error("Name or password is incorrect.")]
    Refused,
    /// Too many attempts with this name came from the same network.
    #[error("Account is temporarily locked due to multiple authentication failures")]
    Locked {
        /// For so much longer.
        retry_after: Duration,
    },
    /// Too many logins are being checked at this moment.
    #[error("too many logins are being checked; try again in a moment")]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
}

/// Why a person's credentials were not changed.
#[derive(Debug, Error)]
pub enum CredentialError {
    /// Nobody has this id.
    #[error("there is no such person in the directory")]
    Nobody,
    /// The code that was shown is wrong.
    #[error("the code is not right")]
    WrongCode,
    /// Nothing of this name is there.
    #[error("there is no such {0}")]
    Unknown(&'static str),
    /// A person has as many linked accounts as may be, or the account's name is too long.
    #[error(
        "at most {MOST_LINKS} accounts of providers are linked to a person, each with a name of at most 255 bytes"
    )]
    TooManyLinks,
    /// As [`AppPasswordError`].
    #[error(transparent)]
    AppPassword(#[from] AppPasswordError),
    /// As [`PasskeyError`].
    #[error(transparent)]
    Passkey(#[from] PasskeyError),
    /// As [`ChangeError`].
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// As [`PasswordError`].
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// As [`RandomError`].
    #[error(transparent)]
    Random(#[from] RandomError),
    /// The record cannot be read, or not be written.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// As [`DatabaseError`].
    #[error(transparent)]
    Database(#[from] DatabaseError),
}
