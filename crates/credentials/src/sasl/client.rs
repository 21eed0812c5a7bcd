//! The client's side of an exchange, for mail that goes out through another server and for the laboratory.

use thiserror::Error;

use crate::sasl::scram::ScramClientError;
use crate::sasl::{
    ChannelBindings, ExchangeError, PlainMessage, SaslMechanism, ScramClient, oauthbearer_response,
    xoauth2_response,
};

/// Why a client gives up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClientError {
    /// The server offers no mechanism that this secret can be shown by, or none that is safe on this connection.
    #[error("the server offers no mechanism that can be used on this connection")]
    NoMechanism,
    /// The exchange cannot go on.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The server's side of SCRAM is not as it should be.
    #[error(transparent)]
    Scram(#[from] ScramClientError),
    /// The server has refused a token, for this reason.
    #[error("the server refuses the token")]
    TokenRefused,
}

/// What a client shows.
#[derive(Clone, Copy)]
pub enum ClientSecret<'a> {
    /// A password.
    Password(&'a str),
    /// A token.
    Token(&'a str),
}

/// Secrets are no log's to show.
impl std::fmt::Debug for ClientSecret<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Password(_) => "Password(…)",
            Self::Token(_) => "Token(…)",
        })
    }
}

/// An exchange.
#[derive(Debug)]
pub struct ClientExchange {
    mechanism: SaslMechanism,
    state: State,
}

enum State {
    /// One message says everything; then nothing more is sent.
    Once(Vec<u8>),
    /// LOGIN: the name, then the password.
    LoginName {
        name: String,
        password: String,
    },
    LoginPassword(String),
    ScramFirst(ScramClient),
    ScramLast(ScramClient),
    ScramCheck(ScramClient),
    Done,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("State(…)")
    }
}

impl ClientExchange {
    /// Begins with the best of the mechanisms that the server offers: none that shows a secret where the connection is not
    /// protected.
    ///
    /// # Errors
    /// [`ClientError`]
    pub fn begin(
        offered: &[SaslMechanism],
        name: &str,
        secret: ClientSecret<'_>,
        is_protected: bool,
        bindings: &ChannelBindings,
    ) -> Result<Self, ClientError> {
        let usable = |mechanism: &SaslMechanism| {
            let for_tokens = matches!(mechanism, SaslMechanism::OauthBearer | SaslMechanism::Xoauth2);
            offered.contains(mechanism)
                && (is_protected || !mechanism.shows_secret())
                && for_tokens == matches!(secret, ClientSecret::Token(_))
                && (*mechanism != SaslMechanism::ScramSha256Plus || !bindings.is_empty())
        };
        let mechanism = SaslMechanism::ALL.into_iter().find(usable).ok_or(ClientError::NoMechanism)?;
        let (ClientSecret::Password(secret) | ClientSecret::Token(secret)) = secret;
        let owned = str::to_owned;
        let state = match mechanism {
            SaslMechanism::ScramSha256Plus => {
                State::ScramFirst(ScramClient::new(name, secret, true, bindings)?)
            }
            SaslMechanism::ScramSha256 => {
                // The client could have bound the exchange only if -PLUS was hidden from it.
                State::ScramFirst(ScramClient::new(name, secret, false, bindings)?)
            }
            SaslMechanism::OauthBearer => State::Once(oauthbearer_response(name, secret)),
            SaslMechanism::Xoauth2 => State::Once(xoauth2_response(name, secret)),
            SaslMechanism::Plain => {
                let message =
                    PlainMessage { act_as: String::new(), name: owned(name), password: owned(secret) };
                let message = message.write();
                // What the grammar does not allow would be read as something else.
                PlainMessage::parse(&message)?;
                State::Once(message)
            }
            SaslMechanism::Login => State::LoginName { name: owned(name), password: owned(secret) },
        };
        Ok(Self { mechanism, state })
    }

    /// Which mechanism it is.
    #[must_use]
    pub const fn mechanism(&self) -> SaslMechanism {
        self.mechanism
    }

    /// What may be sent along with the command; `None` where the server speaks first, as with LOGIN.
    pub fn initial(&mut self) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Once(message) => Some(message),
            State::ScramFirst(client) => {
                let message = client.first();
                self.state = State::ScramLast(client);
                Some(message)
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    /// The answer to a challenge, or to what came along with the success of SCRAM.
    ///
    /// # Errors
    /// [`ClientError`]
    pub fn respond(&mut self, challenge: &[u8]) -> Result<Vec<u8>, ClientError> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Once(message) => Ok(message),
            State::ScramFirst(client) => {
                let message = client.first();
                self.state = State::ScramLast(client);
                Ok(message)
            }
            State::ScramLast(mut client) => {
                let message = client.last(challenge)?;
                self.state = State::ScramCheck(client);
                Ok(message)
            }
            State::ScramCheck(mut client) => {
                client.check(challenge)?;
                Ok(Vec::new())
            }
            State::LoginName { name, password } => {
                self.state = State::LoginPassword(password);
                Ok(name.into_bytes())
            }
            State::LoginPassword(password) => Ok(password.into_bytes()),
            State::Done if matches!(self.mechanism, SaslMechanism::OauthBearer | SaslMechanism::Xoauth2) => {
                Err(ClientError::TokenRefused)
            }
            State::Done => Err(ClientError::Exchange(ExchangeError::Order)),
        }
    }

    /// Whether the server may say now that the client is in: with SCRAM only once its signature was checked.
    #[must_use]
    pub const fn may_succeed(&self) -> bool {
        matches!(self.state, State::Done)
    }
}
