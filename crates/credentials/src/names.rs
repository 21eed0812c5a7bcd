//! Names and passwords prepared, so that the same one is the same bytes however a keyboard writes it.

use stringprep::saslprep;
use thiserror::Error;

/// The longest name, in bytes (RFC 4616, section 2, allows as many).
pub const LONGEST_NAME: usize = 255;

/// The longest password, in bytes.
pub const LONGEST_PASSWORD: usize = 1024;

/// Why a text can be nobody's name or password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing is left of it.
    #[error("it is empty")]
    Empty,
    /// It is longer than [`LONGEST_NAME`] or [`LONGEST_PASSWORD`].
    #[error("it is too long")]
    TooLong,
    /// It has characters that names may not have, such as control characters.
    #[error("it has characters that are not allowed")]
    Forbidden,
}

/// A log-in name as it is looked up: prepared by SASLprep (RFC 4013), in lower case.
///
/// # Errors
/// [`NameError`]
pub fn prepare_name(name: &str) -> Result<String, NameError> {
    if name.len() > LONGEST_NAME {
        return Err(NameError::TooLong);
    }
    let prepared = saslprep(name).map_err(|_| NameError::Forbidden)?;
    let folded = prepared.trim().to_lowercase();
    if folded.is_empty() { Err(NameError::Empty) } else { Ok(folded) }
}

/// A password as it is hashed: prepared by SASLprep (RFC 4013), so that SCRAM's clients, which do the same, meet it.
/// What SASLprep does not allow, such as signs that came to Unicode after version 3.2, stays as it is; clients that
/// check more strictly cannot use it with SCRAM, and can with every other mechanism.
///
/// # Errors
/// [`NameError::Empty`] and [`NameError::TooLong`]
pub fn prepare_password(password: &str) -> Result<String, NameError> {
    if password.len() > LONGEST_PASSWORD {
        return Err(NameError::TooLong);
    }
    let prepared = match saslprep(password) {
        Ok(prepared) if !prepared.is_empty() => prepared.into_owned(),
        _ => password.to_owned(),
    };
    if prepared.is_empty() { Err(NameError::Empty) } else { Ok(prepared) }
}
