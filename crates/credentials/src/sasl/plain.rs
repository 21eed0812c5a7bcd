//! PLAIN (RFC 4616).

use crate::names::{LONGEST_NAME, LONGEST_PASSWORD};
use crate::sasl::ExchangeError;

/// The one message of PLAIN.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainMessage {
    /// Whom the client wants to act as; empty: as itself.
    pub act_as: String,
    /// Who the client is.
    pub name: String,
    /// The proof.
    pub password: String,
}

/// It holds a password, which no log may show.
impl std::fmt::Debug for PlainMessage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PlainMessage({:?}, {:?}, …)", self.act_as, self.name)
    }
}

impl PlainMessage {
    /// Reads `[authzid] NUL authcid NUL passwd` (RFC 4616, section 2).
    ///
    /// # Errors
    /// [`ExchangeError::TooLong`] and [`ExchangeError::Malformed`]
    pub fn parse(message: &[u8]) -> Result<Self, ExchangeError> {
        if message.len() > 2 * LONGEST_NAME + LONGEST_PASSWORD + 2 {
            return Err(ExchangeError::TooLong);
        }
        let text = std::str::from_utf8(message).map_err(|_| ExchangeError::Malformed)?;
        let mut parts = text.split('\0');
        let (Some(act_as), Some(name), Some(password), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(ExchangeError::Malformed);
        };
        if name.is_empty() || password.is_empty() {
            return Err(ExchangeError::Malformed);
        }
        if act_as.len() > LONGEST_NAME || name.len() > LONGEST_NAME || password.len() > LONGEST_PASSWORD {
            return Err(ExchangeError::TooLong);
        }
        let owned = str::to_owned;
        Ok(Self { act_as: owned(act_as), name: owned(name), password: owned(password) })
    }

    /// The message.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        format!("{}\0{}\0{}", self.act_as, self.name, self.password).into_bytes()
    }
}
