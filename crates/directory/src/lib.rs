//! People and groups: their documents, their passwords, their sessions, and finding them by name.
//!
//! People and groups are ordinary documents of the database [`DIRECTORY_DATABASE`]. Anyone who writes there
//! passes the document through [`prepare`] first, which checks it and replaces a clear-text password by its
//! hash. [`Directory`] holds everybody in memory, by every name they answer to, as the database is at the
//! moment; it is what a login and the mail router ask.
//!
//! Nothing here knows a protocol: a login arrives as a name and a password, a session as the text of a
//! cookie.

mod administrator;
mod credentials;
mod delegates;
mod directory;
mod domain;
mod domain_rules;
mod error;
mod fields;
mod group;
mod hashing;
mod journal;
mod login;
mod lookup;
mod mail_in;
mod membership;
mod names;
mod open_sessions;
mod outsiders;
mod person;
mod preferences;
mod record;
mod resource;
mod revocation;
mod sasl;
mod session;
mod source_login;
mod users_form;
mod words;
mod writing;

pub use administrator::{
    ADMINISTRATOR_ID, ADMINISTRATOR_NAME, ADMINISTRATOR_PASSWORD_VARIABLE, ADMINISTRATOR_ROLE,
    NewAdministrator, first_administrator,
};
pub use credentials::{CredentialOptions, Credentials};
pub use delegates::{Delegates, mail_editors_group, mail_readers_group};
pub use directory::{Directory, EnsureError};
pub use domain::{
    ADDRESS_READERS, DOMAIN_ADMINISTRATORS, DOMAIN_FORM, DOMAIN_PREFIX, DirectoryDomain, prepare_domain,
};
pub use error::{CredentialError, DirectoryError, LoginError};
pub use group::{GROUP_FORM, GROUP_PREFIX, Group, GroupSenders, prepare_group};
pub use hashing::{HashingError, HashingOptions, HashingThreads};
pub use journal::{BeforeAndAfter, DirectoryChange, WrittenChange};
pub use login::{Approach, HashError, Login, LoginAttempt, LoginOutcome, LoginWatch, Logins};
pub use lookup::{Found, NameIndex, NameLookup, is_listed};
pub use mail_in::{MAIL_IN_FORM, MAIL_IN_PREFIX, MailIn, prepare_mail_in};
pub use names::{abbreviate, common_name, fold_name};
pub use open_sessions::{OpenSession, OpenSessions};
pub use person::{
    FOLLOWED_SOURCE, Forwarding, OPENING_FIELDS, OTHER_NAMES, OWN_FIELDS, PERSON_FORM, PERSON_PREFIX, Person,
    Prepared, hide_secrets, prepare_person,
};
pub use preferences::Absence;
pub use record::{CredentialChange, CredentialRecords, PasswordEdit, check_password};
pub use resource::{Resource, ResourceKind};
pub use revocation::Revocations;
pub use sasl::{SaslConnection, SaslError, SaslLogin, SaslReply, TokenVerification, TokenVerifier};
pub use session::{
    Session, SessionError, SessionKeeper, SessionName, SessionOrigin, SessionTimes, SessionUse,
};
pub use source_login::{PasswordAnswer, PasswordSource};

pub use users_form::USERS_PREFIX;

/// The database that holds people and groups.
pub const DIRECTORY_DATABASE: &str = "directory";

/// Checks and completes a document on its way into the directory, by its form: people as
/// [`prepare_person`], groups as [`prepare_group`], domains as [`prepare_domain`], mail-in databases as [`prepare_mail_in`]; any other document (a design document, a deletion) as it
/// is.
///
/// # Errors
/// What is wrong with the document, in words for the one who wrote it.
pub fn prepare(mut document: serde_json::Map<String, serde_json::Value>) -> Result<Prepared, DirectoryError> {
    users_form::complete(&mut document)?;
    let group = |document| prepare_group(document).map(Prepared::without_password);
    let domain = |document| prepare_domain(document).map(Prepared::without_password);
    let mail_in = |document| prepare_mail_in(document).map(Prepared::without_password);
    if document.get("_deleted").and_then(serde_json::Value::as_bool) == Some(true) {
        return Ok(Prepared::without_password(document));
    }
    let id = document.get("_id").and_then(serde_json::Value::as_str).unwrap_or_default();
    if id.starts_with("_design/") || id.starts_with("_local/") {
        return Ok(Prepared::without_password(document));
    }
    match document.get("Form").and_then(serde_json::Value::as_str) {
        Some(PERSON_FORM) => prepare_person(document),
        Some(GROUP_FORM) => group(document),
        Some(DOMAIN_FORM) => domain(document),
        Some(MAIL_IN_FORM) => mail_in(document),
        // An id of a person with another form would be a login that nobody checked.
        _ if id.starts_with(PERSON_PREFIX) => prepare_person(document),
        _ if id.starts_with(GROUP_PREFIX) => group(document),
        _ if id.starts_with(DOMAIN_PREFIX) => domain(document),
        _ if id.starts_with(MAIL_IN_PREFIX) => mail_in(document),
        _ => Ok(Prepared::without_password(document)),
    }
}
