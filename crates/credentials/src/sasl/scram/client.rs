//! The client's side of SCRAM, for mail that goes out and for the laboratory.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use thiserror::Error;

use super::message::{server_first, text_of, write_saslname};
use super::{LEAST_ITERATIONS, MOST_ITERATIONS, ScramSalt, exclusive_or, hmac_of, sha256};
use crate::names::{LONGEST_NAME, prepare_password};
use crate::sasl::{ChannelBindings, ExchangeError};
use crate::secret::{random, same};

/// Why a client does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ScramClientError {
    /// A message of the server is malformed, or comes out of order.
    #[error("the server's message: {0}")]
    Exchange(#[from] ExchangeError),
    /// The server asks for fewer rounds than are safe, or for more than an honest server would.
    #[error("the server asks for {0} rounds; {LEAST_ITERATIONS} to {MOST_ITERATIONS} are accepted")]
    Iterations(u32),
    /// The server's nonce does not begin with the client's.
    #[error("the server's nonce is not this exchange's")]
    Nonce,
    /// The server does not have this person's keys: it is another one.
    #[error("the server has not shown that it knows the password; it may be another server")]
    Server,
    /// The server has refused, with its word (RFC 5802, section 7, `server-error-value`).
    #[error("the server refuses the log-in")]
    Refused,
}

/// An exchange of a client.
pub struct ScramClient {
    password: String,
    /// `gs2-header`, and the data of the binding.
    header: String,
    binding: Vec<u8>,
    bare: String,
    nonce: String,
    /// What the server has to send in the end.
    expected: Option<[u8; 32]>,
}

/// It holds a password, which no log may show.
impl std::fmt::Debug for ScramClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ScramClient({})", self.header)
    }
}

impl ScramClient {
    /// Begins an exchange. With `plus` it is SCRAM-SHA-256-PLUS, bound to the best of the bindings; without, the client says
    /// whether it could have bound it, so that the server sees whether somebody has hidden -PLUS.
    ///
    /// # Errors
    /// [`ExchangeError`]
    pub fn new(
        name: &str,
        password: &str,
        plus: bool,
        bindings: &ChannelBindings,
    ) -> Result<Self, ExchangeError> {
        Self::with_nonce(name, password, plus, bindings, STANDARD_NO_PAD.encode(random::<18>()?))
    }

    fn with_nonce(
        name: &str,
        password: &str,
        plus: bool,
        bindings: &ChannelBindings,
        nonce: String,
    ) -> Result<Self, ExchangeError> {
        if name.len() > LONGEST_NAME {
            return Err(ExchangeError::TooLong);
        }
        let password = prepare_password(password).map_err(|_| ExchangeError::Malformed)?;
        let (header, binding) = match (plus, bindings.best()) {
            (true, None) => return Err(ExchangeError::Binding),
            (true, Some(best)) => {
                (format!("p={},,", best.name()), bindings.get(best).unwrap_or_default().to_vec())
            }
            (false, Some(_)) => ("y,,".to_owned(), Vec::new()),
            (false, None) => ("n,,".to_owned(), Vec::new()),
        };
        let bare = format!("n={},r={nonce}", write_saslname(name));
        Ok(Self { password, header, binding, bare, nonce, expected: None })
    }

    /// The first message.
    #[must_use]
    pub fn first(&self) -> Vec<u8> {
        format!("{}{}", self.header, self.bare).into_bytes()
    }

    /// The answer to the server's first message.
    ///
    /// # Errors
    /// [`ScramClientError`]
    pub fn last(&mut self, server_message: &[u8]) -> Result<Vec<u8>, ScramClientError> {
        let (nonce, salt, iterations) = server_first(server_message)?;
        if !(LEAST_ITERATIONS..=MOST_ITERATIONS).contains(&iterations) {
            return Err(ScramClientError::Iterations(iterations));
        }
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(ScramClientError::Nonce);
        }
        let mut shown = self.header.clone().into_bytes();
        shown.extend_from_slice(&self.binding);
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(shown));
        let server_first = text_of(server_message)?;
        let auth_message = format!("{},{server_first},{without_proof}", self.bare);
        let salted = ScramSalt::with_salt(&salt, iterations).salted(&self.password);
        let client_key = hmac_of(&salted, b"Client Key");
        let signature = hmac_of(&sha256(&client_key), auth_message.as_bytes());
        let proof = STANDARD.encode(exclusive_or(&client_key, &signature));
        self.expected = Some(hmac_of(&hmac_of(&salted, b"Server Key"), auth_message.as_bytes()));
        Ok(format!("{without_proof},p={proof}").into_bytes())
    }

    /// Checks what the server sends in the end, without which the log-in is not to be believed.
    ///
    /// # Errors
    /// [`ScramClientError`]
    pub fn check(&mut self, server_message: &[u8]) -> Result<(), ScramClientError> {
        let expected = self.expected.take().ok_or(ExchangeError::Order)?;
        let text = text_of(server_message)?;
        if text.starts_with("e=") {
            return Err(ScramClientError::Refused);
        }
        let shown = text.split(',').next().and_then(|value| value.strip_prefix("v="));
        let shown = shown.and_then(|value| STANDARD.decode(value).ok()).ok_or(ExchangeError::Malformed)?;
        if same(&shown, &expected) { Ok(()) } else { Err(ScramClientError::Server) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3.
    #[test]
    fn the_exchange_of_the_rfc_is_spoken_byte_for_byte() {
        let bindings = ChannelBindings::default();
        let nonce = "rOprNGfwEbeRWgbNEkqO".to_owned();
        let mut client = ScramClient::with_nonce("user", "pencil", false, &bindings, nonce).unwrap();
        assert_eq!(client.first(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let last = client
            .last(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
            .unwrap();
        assert_eq!(
            String::from_utf8(last).unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        client.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").unwrap();
    }

    #[test]
    fn a_server_that_lies_is_not_believed() {
        let begin = || {
            let nonce = "rOprNGfwEbeRWgbNEkqO".to_owned();
            ScramClient::with_nonce("user", "pencil", false, &ChannelBindings::default(), nonce).unwrap()
        };
        let salt = "s=W22ZaJ0SNY7soEsUEjb6gQ==";
        let other = begin().last(format!("r=another,{salt},i=4096").as_bytes());
        assert_eq!(other, Err(ScramClientError::Nonce));
        let bare = begin().last(format!("r=rOprNGfwEbeRWgbNEkqO,{salt},i=4096").as_bytes());
        assert_eq!(bare, Err(ScramClientError::Nonce), "a server adds a part of its own");
        for rounds in [0, 1, 4095, 1_000_001, u32::MAX] {
            let told = begin().last(format!("r=rOprNGfwEbeRWgbNEkqOx,{salt},i={rounds}").as_bytes());
            assert_eq!(told, Err(ScramClientError::Iterations(rounds)));
        }
        let mut client = begin();
        assert_eq!(client.check(b"v=AAAA"), Err(ScramClientError::Exchange(ExchangeError::Order)), "not yet");
        client.last(format!("r=rOprNGfwEbeRWgbNEkqOx,{salt},i=4096").as_bytes()).unwrap();
        let forged = format!("v={}", STANDARD.encode([7; 32]));
        assert_eq!(client.check(forged.as_bytes()), Err(ScramClientError::Server));
    }
}
