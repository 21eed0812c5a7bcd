//! SASL (RFC 4422): the mechanisms by which mail and LDAP carry a proof, as state machines that a protocol feeds.
//!
//! A server begins a [`ServerExchange`], gives it what the client sends, already decoded, and does what each [`Step`] says:
//! send a challenge, bring the keys of a name, or ask [`crate::Gate::decide`] about a [`Claim`]. What is then sent is an
//! [`Ending`]. Every message is bounded before anything is made of it, and an exchange ends after a few of them whatever the
//! client does.

mod bearer;
mod channel;
mod client;
mod exchange;
mod plain;
mod scram;

pub use bearer::{bearer_failure, oauthbearer_response, xoauth2_response};
pub use channel::{BindingType, ChannelBindings, ServerEndPoint, server_end_point};
pub use client::{ClientError, ClientExchange, ClientSecret};
pub use exchange::{Claim, ClaimedProof, Ending, ServerExchange, Step};
pub use plain::PlainMessage;
pub(crate) use scram::ITERATIONS;
pub use scram::{ScramAccount, ScramClient, ScramClientError, ScramKey, ScramKeys, ScramProof, ScramSalt};

use thiserror::Error;

/// The longest message of an exchange, in bytes: tokens are what is long.
pub const LONGEST_MESSAGE: usize = 16 * 1024;

/// A mechanism of SASL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SaslMechanism {
    /// SCRAM-SHA-256-PLUS (RFC 7677), bound to the connection.
    ScramSha256Plus,
    /// SCRAM-SHA-256 (RFC 7677).
    ScramSha256,
    /// PLAIN (RFC 4616).
    Plain,
    /// LOGIN, which no RFC has and Outlook needs.
    Login,
    /// OAUTHBEARER (RFC 7628).
    OauthBearer,
    /// XOAUTH2, as Google and Microsoft describe it.
    Xoauth2,
}

impl SaslMechanism {
    /// All of them, the best first.
    pub const ALL: [Self; 6] = [
        Self::ScramSha256Plus,
        Self::ScramSha256,
        Self::OauthBearer,
        Self::Xoauth2,
        Self::Plain,
        Self::Login,
    ];

    /// Its registered name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ScramSha256Plus => "SCRAM-SHA-256-PLUS",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::Plain => "PLAIN",
            Self::Login => "LOGIN",
            Self::OauthBearer => "OAUTHBEARER",
            Self::Xoauth2 => "XOAUTH2",
        }
    }

    /// The mechanism of a name, in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name().eq_ignore_ascii_case(name))
    }

    /// Whether somebody who listens to an open connection has the secret afterwards.
    #[must_use]
    pub const fn shows_secret(self) -> bool {
        !matches!(self, Self::ScramSha256 | Self::ScramSha256Plus)
    }

    /// What a server offers on a connection: none that shows a secret where the connection is open, and -PLUS only where there
    /// is something to bind to (RFC 5802, section 6).
    #[must_use]
    pub fn offered(is_protected: bool, bindings: &ChannelBindings, has_tokens: bool) -> Vec<Self> {
        let is_offered = |mechanism: &Self| match mechanism {
            Self::ScramSha256Plus => !bindings.is_empty(),
            Self::ScramSha256 => true,
            Self::OauthBearer | Self::Xoauth2 => is_protected && has_tokens,
            Self::Plain | Self::Login => is_protected,
        };
        Self::ALL.into_iter().filter(is_offered).collect()
    }
}

/// Why an exchange cannot go on. What the client hears is that log-in failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ExchangeError {
    /// A message is longer than [`LONGEST_MESSAGE`], or a name or password longer than may be.
    #[error("a message of the exchange is too long")]
    TooLong,
    /// A message does not follow the mechanism's grammar.
    #[error("a message of the exchange is malformed")]
    Malformed,
    /// The name cannot be prepared (RFC 5802, section 5.1).
    #[error("the name has characters that are not allowed")]
    Name,
    /// The client asks for an extension that it says is needed (`m=`; RFC 5802, section 5.1).
    #[error("the client needs an extension that is not there")]
    Extension,
    /// The client binds the exchange to another connection, or in a way that was not offered.
    #[error("the exchange is not bound to this connection")]
    Binding,
    /// The client could bind the exchange and believes that the server cannot: somebody between them has taken -PLUS out of
    /// the list of mechanisms (RFC 5802, section 6).
    #[error("somebody has hidden SCRAM-SHA-256-PLUS from the client")]
    Downgrade,
    /// The client's nonce is not the one that the exchange has.
    #[error("the nonce is another one")]
    Nonce,
    /// The message is not expected now.
    #[error("the exchange is not at this point")]
    Order,
    /// As [`crate::RandomError`].
    #[error(transparent)]
    Random(#[from] crate::RandomError),
}
