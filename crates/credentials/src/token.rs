//! Tokens: JSON Web Tokens (RFC 7519) that a provider has signed, or, for CouchDB's interface, a service with a configured key.
//!
//! A key can verify signatures of its own kind alone, so that the word in a token's header cannot make an RSA key an HMAC
//! secret, and `none` is no algorithm at all (RFC 8725, sections 3.1 and 3.2). Keys come from a set that was fetched or
//! configured, never from the token.

mod claims;
mod couch;
mod jws;
mod keys;
mod proxied;

pub use claims::{FactorRule, NameClaim, TokenRules, TokenUse, VerifiedToken, verify};
pub use couch::{CouchRules, CouchToken, verify_couch};
pub use jws::{Algorithm, claimed_issuer, sign_hmac};
pub use keys::{KeyCache, KeySet, VerifyKey};
pub use proxied::{ProxySecret, SHORTEST_PROXY_SECRET};

use thiserror::Error;

/// The longest token, in bytes.
pub const LONGEST_TOKEN: usize = 16 * 1024;

/// Clocks may differ by as many seconds.
pub const LEEWAY_S: u64 = 60;

/// Why a token is not accepted. What the client hears is that log-in failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// It is longer than [`LONGEST_TOKEN`].
    #[error("the token is too long")]
    TooLong,
    /// It is no JWT of three parts, or a part is no JSON object.
    #[error("the token is malformed")]
    Malformed,
    /// Its algorithm is not accepted, or is not that of the key.
    #[error("the token's algorithm is not accepted")]
    Algorithm,
    /// It has an extension that it says must be understood (`crit`; RFC 7515, section 4.1.11).
    #[error("the token needs an extension that is not there")]
    Critical,
    /// It is of a type that is not expected here.
    #[error("the token is of another type")]
    Type,
    /// No key has its id: fetch the provider's keys again, if [`KeyCache::should_fetch`] says so.
    #[error("no key is known by which the token could be verified")]
    UnknownKey,
    /// The signature does not fit.
    #[error("the token's signature is wrong")]
    Signature,
    /// Another issuer has made it.
    #[error("the token is of another issuer")]
    Issuer,
    /// It is for somebody else.
    #[error("the token is for another audience")]
    Audience,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet")]
    NotYet,
    /// It is the answer to another request.
    #[error("the token is the answer to another request")]
    Nonce,
    /// This claim is missing, or is not as it must be.
    #[error("the token's claim {0} is missing or not as it must be")]
    Claim(String),
}
