//! The messages of SCRAM (RFC 5802, section 7).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::names::LONGEST_NAME;
use crate::sasl::{BindingType, ExchangeError};

/// The longest message of SCRAM; names, nonces and bindings are far shorter.
const LONGEST: usize = 4096;
const LONGEST_NONCE: usize = 256;

/// How a client stands to channel binding: the `gs2-cbind-flag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    /// `n`: it cannot.
    Cannot,
    /// `y`: it can, and believes that the server cannot.
    Could,
    /// `p=`: it does.
    Does(BindingType),
}

/// `client-first-message`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientFirst {
    pub(super) flag: Flag,
    /// `authzid`
    pub(super) act_as: Option<String>,
    pub(super) name: String,
    pub(super) nonce: String,
    /// The header as it came, which the client repeats in `c=`.
    pub(super) gs2_header: String,
    /// `client-first-message-bare` as it came, which both sign.
    pub(super) bare: String,
}

pub(super) fn text_of(message: &[u8]) -> Result<&str, ExchangeError> {
    if message.len() > LONGEST {
        return Err(ExchangeError::TooLong);
    }
    std::str::from_utf8(message).map_err(|_| ExchangeError::Malformed)
}

/// Reads `gs2-header client-first-message-bare`.
pub(super) fn client_first(message: &[u8]) -> Result<ClientFirst, ExchangeError> {
    let text = text_of(message)?;
    let (flag, rest) = text.split_once(',').ok_or(ExchangeError::Malformed)?;
    let (act_as, bare) = rest.split_once(',').ok_or(ExchangeError::Malformed)?;
    let gs2_header = text.strip_suffix(bare).ok_or(ExchangeError::Malformed)?;
    let flag = match flag {
        "n" => Flag::Cannot,
        "y" => Flag::Could,
        _ => {
            let name = flag.strip_prefix("p=").ok_or(ExchangeError::Malformed)?;
            Flag::Does(BindingType::parse(name).ok_or(ExchangeError::Binding)?)
        }
    };
    let act_as = match act_as {
        "" => None,
        name => Some(read_saslname(name.strip_prefix("a=").ok_or(ExchangeError::Malformed)?)?),
    };
    let mut attributes = bare.split(',');
    let first = attributes.next().unwrap_or_default();
    // `reserved-mext`: a client that sends it wants the exchange to fail where it is not known.
    if first.starts_with("m=") {
        return Err(ExchangeError::Extension);
    }
    let name = read_saslname(first.strip_prefix("n=").ok_or(ExchangeError::Malformed)?)?;
    let nonce =
        attributes.next().and_then(|nonce| nonce.strip_prefix("r=")).ok_or(ExchangeError::Malformed)?;
    check_nonce(nonce)?;
    check_extensions(attributes)?;
    let (gs2_header, bare) = (gs2_header.to_owned(), bare.to_owned());
    Ok(ClientFirst { flag, act_as, name, nonce: nonce.to_owned(), gs2_header, bare })
}

/// `client-final-message`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientFinal {
    /// The header and the data of the binding, decoded from `c=`.
    pub(super) binding: Vec<u8>,
    pub(super) nonce: String,
    pub(super) proof: [u8; 32],
    /// `client-final-message-without-proof` as it came.
    pub(super) without_proof: String,
}

pub(super) fn client_final(message: &[u8]) -> Result<ClientFinal, ExchangeError> {
    let text = text_of(message)?;
    let (without_proof, proof) = text.rsplit_once(",p=").ok_or(ExchangeError::Malformed)?;
    let proof = STANDARD.decode(proof).ok().and_then(|proof| <[u8; 32]>::try_from(proof).ok());
    let mut attributes = without_proof.split(',');
    let binding =
        attributes.next().and_then(|binding| binding.strip_prefix("c=")).ok_or(ExchangeError::Malformed)?;
    let binding = STANDARD.decode(binding).map_err(|_| ExchangeError::Malformed)?;
    let nonce =
        attributes.next().and_then(|nonce| nonce.strip_prefix("r=")).ok_or(ExchangeError::Malformed)?;
    check_nonce(nonce)?;
    check_extensions(attributes)?;
    let proof = proof.ok_or(ExchangeError::Malformed)?;
    Ok(ClientFinal { binding, nonce: nonce.to_owned(), proof, without_proof: without_proof.to_owned() })
}

/// Reads `r=…,s=…,i=…`; gives nonce, salt and iterations.
pub(super) fn server_first(message: &[u8]) -> Result<(String, Vec<u8>, u32), ExchangeError> {
    let mut attributes = text_of(message)?.split(',');
    let mut value = |prefix: &str| {
        attributes.next().and_then(|attribute| attribute.strip_prefix(prefix)).ok_or(ExchangeError::Malformed)
    };
    let nonce = value("r=")?;
    check_nonce(nonce)?;
    let salt = STANDARD.decode(value("s=")?).map_err(|_| ExchangeError::Malformed)?;
    let iterations = value("i=")?;
    let plain = iterations.bytes().all(|byte| byte.is_ascii_digit());
    let iterations = iterations.parse().ok().filter(|_| plain).ok_or(ExchangeError::Malformed)?;
    check_extensions(attributes)?;
    Ok((nonce.to_owned(), salt, iterations))
}

/// `nonce`: printable ASCII without commas.
fn check_nonce(nonce: &str) -> Result<(), ExchangeError> {
    if nonce.len() > LONGEST_NONCE {
        return Err(ExchangeError::TooLong);
    }
    let fine = !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic());
    if fine { Ok(()) } else { Err(ExchangeError::Malformed) }
}

/// Extensions that are not mandatory are passed over, where they have the form of one: `attr-val`.
fn check_extensions<'a>(mut attributes: impl Iterator<Item = &'a str>) -> Result<(), ExchangeError> {
    let fine = attributes.all(|attribute| {
        matches!(attribute.as_bytes(), [letter, b'=', _, ..] if letter.is_ascii_alphabetic() && *letter != b'm')
    });
    if fine { Ok(()) } else { Err(ExchangeError::Malformed) }
}

/// A name in which `=2C` stands for a comma and `=3D` for an equals sign.
pub(in crate::sasl) fn read_saslname(text: &str) -> Result<String, ExchangeError> {
    if text.len() > 3 * LONGEST_NAME {
        return Err(ExchangeError::TooLong);
    }
    let mut name = String::with_capacity(text.len());
    let mut parts = text.split('=');
    name.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (letter, rest) = match (part.strip_prefix("2C"), part.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (_, Some(rest)) => ('=', rest),
            _ => return Err(ExchangeError::Malformed),
        };
        name.push(letter);
        name.push_str(rest);
    }
    match name.len() {
        0 => Err(ExchangeError::Malformed),
        length if length > LONGEST_NAME => Err(ExchangeError::TooLong),
        _ if name.contains('\0') => Err(ExchangeError::Malformed),
        _ => Ok(name),
    }
}

/// The other way.
pub(super) fn write_saslname(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}
