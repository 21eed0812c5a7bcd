//! Signing in with a provider: OpenID Connect's authorization-code flow with PKCE (OpenID Connect Core 1.0, section 3.1;
//! RFC 7636), as values. URLs and forms come out, answers go in; the caller makes the requests.

mod flow;
mod provider;

pub use flow::{Callback, SignIn, TokenRequest, id_token_of};
pub use provider::{ClientAuthentication, OidcClient, Provider};

use thiserror::Error;

/// Why a sign-in does not go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OidcError {
    /// An answer of the provider is too long, or not what the standard says.
    #[error("the provider's answer is malformed: {0}")]
    Malformed(&'static str),
    /// The provider calls itself another name than the one that was configured.
    #[error("the provider calls itself {0}, which is not the configured issuer")]
    Issuer(String),
    /// An address of the provider is not encrypted.
    #[error("the provider's {0} does not begin with https://")]
    NotEncrypted(&'static str),
    /// The browser comes back from a sign-in that was not begun here, or too long ago.
    #[error("this sign-in was not begun here, or took too long; begin again")]
    State,
    /// The provider refuses (RFC 6749, section 4.1.2.1), with its word.
    #[error("the provider refuses the sign-in: {0}")]
    Refused(String),
    /// As [`crate::RandomError`].
    #[error(transparent)]
    Random(#[from] crate::RandomError),
}
