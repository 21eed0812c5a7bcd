//! The administrator that a server gets at its first start.

use rand::TryRngCore;
use rand::rngs::OsRng;
use serde_json::{Map, Value, json};

use crate::{DirectoryError, PasswordEdit, prepare_person};

/// The first administrator's short name.
pub const ADMINISTRATOR_NAME: &str = "admin";

/// Id of the first administrator's document.
pub const ADMINISTRATOR_ID: &str = "person:admin";

/// The role that administers the server, as CouchDB calls it.
pub const ADMINISTRATOR_ROLE: &str = "_admin";

/// The environment variable that may hold the first administrator's password.
pub const ADMINISTRATOR_PASSWORD_VARIABLE: &str = "SCRINIUM_ADMIN_PASSWORD";

/// Without 0 O 1 l I, so that it can be read aloud: 32 letters, five bits each.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// 24 letters: 120 bits.
const PASSWORD_LETTERS: usize = 24;

/// The document of a server's first administrator.
#[derive(Debug)]
pub struct NewAdministrator {
    /// To be written into the directory.
    pub document: Map<String, Value>,
    /// With this password.
    pub password: PasswordEdit,
    /// The password where it was made here: show it once, it is kept nowhere. `None` where it was given.
    pub made_password: Option<String>,
}

/// The document of the first administrator, with the `given` password (the environment's) or a made one. Call
/// it when nobody in the directory holds [`ADMINISTRATOR_ROLE`].
///
/// # Errors
/// [`DirectoryError::PasswordLength`] for an empty or endless given password; [`DirectoryError::Hash`].
pub fn first_administrator(given: Option<&str>) -> Result<NewAdministrator, DirectoryError> {
    let made_password = if given.is_none() { Some(make_password()?) } else { None };
    let password = given.or(made_password.as_deref()).unwrap_or_default();
    let mut document = Map::new();
    for (field, value) in [
        ("_id", json!(ADMINISTRATOR_ID)),
        ("Form", json!(crate::PERSON_FORM)),
        ("FullName", json!(["Administrator"])),
        ("ShortName", json!(ADMINISTRATOR_NAME)),
        ("Roles", json!([ADMINISTRATOR_ROLE])),
        ("password", json!(password)),
    ] {
        document.insert(field.to_owned(), value);
    }
    let prepared = prepare_person(document)?;
    Ok(NewAdministrator { document: prepared.document, password: prepared.password, made_password })
}

fn make_password() -> Result<String, DirectoryError> {
    let mut bytes = [0_u8; PASSWORD_LETTERS];
    OsRng.try_fill_bytes(&mut bytes).map_err(|error| DirectoryError::Hash(error.to_string()))?;
    let letter = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).copied().map_or('a', char::from);
    Ok(bytes.iter().map(letter).collect())
}
