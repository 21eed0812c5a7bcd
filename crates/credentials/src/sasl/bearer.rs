//! OAUTHBEARER (RFC 7628) and XOAUTH2: a token from a provider in place of a password.

use crate::names::{LONGEST_NAME, prepare_name};
use crate::sasl::exchange::{Claim, ClaimedProof};
use crate::sasl::scram::read_saslname;
use crate::sasl::{ExchangeError, LONGEST_MESSAGE};

/// What parts of a message end with (RFC 7628, section 3.1).
const SEPARATOR: char = '\u{1}';

/// The most key-value pairs that are looked at.
const MOST_PAIRS: usize = 16;

/// Reads the message of OAUTHBEARER: `gs2-header kvsep *kvpair kvsep` (RFC 7628, section 3.1).
pub(super) fn read_oauthbearer(message: &[u8]) -> Result<Claim, ExchangeError> {
    let text = bounded(message)?;
    let (header, rest) = text.split_once(SEPARATOR).ok_or(ExchangeError::Malformed)?;
    let mut parts = header.split(',');
    let (Some(binding), Some(name), Some(""), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(ExchangeError::Malformed);
    };
    // Bindings are not for bearer tokens (section 3.1): `n`, or `y` of a client that knows them.
    if !matches!(binding, "n" | "y") {
        return Err(ExchangeError::Binding);
    }
    let name = match name {
        "" => None,
        name => Some(read_saslname(name.strip_prefix("a=").ok_or(ExchangeError::Malformed)?)?),
    };
    let token = token_of(rest)?;
    claim(name, token)
}

/// Reads the message of XOAUTH2: `user=NAME ^A auth=Bearer TOKEN ^A ^A`.
pub(super) fn read_xoauth2(message: &[u8]) -> Result<Claim, ExchangeError> {
    let text = bounded(message)?;
    let (user, rest) = text.split_once(SEPARATOR).ok_or(ExchangeError::Malformed)?;
    let name = user.strip_prefix("user=").ok_or(ExchangeError::Malformed)?;
    let name = if name.is_empty() { None } else { Some(name.to_owned()) };
    claim(name, token_of(rest)?)
}

fn bounded(message: &[u8]) -> Result<&str, ExchangeError> {
    if message.len() > LONGEST_MESSAGE {
        return Err(ExchangeError::TooLong);
    }
    std::str::from_utf8(message).map_err(|_| ExchangeError::Malformed)
}

fn claim(name: Option<String>, token: String) -> Result<Claim, ExchangeError> {
    let name = match name {
        Some(name) if name.len() > LONGEST_NAME => return Err(ExchangeError::TooLong),
        Some(name) => Some(prepare_name(&name).map_err(|_| ExchangeError::Name)?),
        None => None,
    };
    Ok(Claim { name, act_as: None, proof: ClaimedProof::Token(token) })
}

/// The token of `auth=Bearer …`; other pairs, such as `host` and `port`, say nothing here.
fn token_of(pairs: &str) -> Result<String, ExchangeError> {
    // Each pair ends with a separator, and the message with another one.
    let pairs = pairs.strip_suffix(SEPARATOR).filter(|pairs| pairs.ends_with(SEPARATOR));
    let pairs = pairs.ok_or(ExchangeError::Malformed)?;
    let mut token = None;
    let mut count = 0;
    for pair in pairs.split_terminator(SEPARATOR) {
        count += 1;
        let (key, value) = pair.split_once('=').ok_or(ExchangeError::Malformed)?;
        if count > MOST_PAIRS || !key.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(ExchangeError::Malformed);
        }
        if key == "auth" {
            let (scheme, value) = value.split_once(' ').ok_or(ExchangeError::Malformed)?;
            // RFC 6750, section 2.1: b64token.
            let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
            if !scheme.eq_ignore_ascii_case("bearer") || value.is_empty() || !value.bytes().all(letters) {
                return Err(ExchangeError::Malformed);
            }
            if token.replace(value.to_owned()).is_some() {
                return Err(ExchangeError::Malformed);
            }
        }
    }
    token.ok_or(ExchangeError::Malformed)
}

/// What a server says of a token that it refuses (RFC 7628, section 3.2.2), as the JSON of a last challenge. The client
/// answers it with a byte or nothing, and then hears that log-in failed.
#[must_use]
pub fn bearer_failure(is_xoauth2: bool, discovery_url: Option<&str>) -> Vec<u8> {
    let status = if is_xoauth2 { "400" } else { "invalid_token" };
    let mut failure = serde_json::json!({ "status": status, "schemes": "Bearer", "scope": "" });
    if let (Some(url), Some(failure), false) = (discovery_url, failure.as_object_mut(), is_xoauth2) {
        failure.insert("openid-configuration".to_owned(), url.into());
    }
    failure.to_string().into_bytes()
}

/// The message of a client of OAUTHBEARER.
#[must_use]
pub fn oauthbearer_response(name: &str, token: &str) -> Vec<u8> {
    let name = name.replace('=', "=3D").replace(',', "=2C");
    let header = if name.is_empty() { String::new() } else { format!("a={name}") };
    format!("n,{header},{SEPARATOR}auth=Bearer {token}{SEPARATOR}{SEPARATOR}").into_bytes()
}

/// The message of a client of XOAUTH2.
#[must_use]
pub fn xoauth2_response(name: &str, token: &str) -> Vec<u8> {
    format!("user={name}{SEPARATOR}auth=Bearer {token}{SEPARATOR}{SEPARATOR}").into_bytes()
}
