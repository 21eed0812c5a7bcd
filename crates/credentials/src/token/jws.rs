//! The compact form of signed JSON (JWS; RFC 7515, section 7.1).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::token::{KeySet, LONGEST_TOKEN, TokenError};

/// An algorithm of signatures (RFC 7518, section 3.1; RFC 8037, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512
    Rs512,
    /// ECDSA on P-256 with SHA-256
    Es256,
    /// Ed25519
    EdDsa,
    /// HMAC-SHA-256
    Hs256,
    /// HMAC-SHA-384
    Hs384,
    /// HMAC-SHA-512
    Hs512,
}

impl Algorithm {
    /// All that are accepted. `none` is not one of them.
    pub const ALL: [Self; 8] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Es256,
        Self::EdDsa,
        Self::Hs256,
        Self::Hs384,
        Self::Hs512,
    ];

    /// Its registered name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
            Self::Hs256 => "HS256",
            Self::Hs384 => "HS384",
            Self::Hs512 => "HS512",
        }
    }

    /// The algorithm of a name, which is compared with its case (RFC 7515, section 4.1.1). `Ed25519` is what RFC 9864 calls
    /// `EdDSA` with that curve.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = if name == "Ed25519" { "EdDSA" } else { name };
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    pub(super) const fn hmac(self) -> Option<hmac::Algorithm> {
        match self {
            Self::Hs256 => Some(hmac::HMAC_SHA256),
            Self::Hs384 => Some(hmac::HMAC_SHA384),
            Self::Hs512 => Some(hmac::HMAC_SHA512),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

/// What a token says, its signature checked and nothing else.
pub(super) struct Signed {
    pub(super) claims: Map<String, Value>,
    /// `typ` of the header, in lower case, without `application/`.
    pub(super) kind: Option<String>,
}

/// Takes a token apart and checks its signature by the keys.
pub(super) fn open(token: &str, keys: &KeySet) -> Result<Signed, TokenError> {
    let (header, payload) = open_bytes(token, keys)?;
    let claims = serde_json::from_slice(&payload).map_err(|_| TokenError::Malformed)?;
    let kind = header.typ.map(|kind| {
        let kind = kind.to_ascii_lowercase();
        kind.strip_prefix("application/").map(str::to_owned).unwrap_or(kind)
    });
    Ok(Signed { claims, kind })
}

/// Whom a token says it is from, which nobody has verified yet: by it the provider is found whose keys can do so.
#[must_use]
pub fn claimed_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Issuer {
        iss: String,
    }
    if token.len() > LONGEST_TOKEN {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice::<Issuer>(&payload).ok().map(|claims| claims.iss)
}

fn open_bytes(token: &str, keys: &KeySet) -> Result<(Header, Vec<u8>), TokenError> {
    if token.len() > LONGEST_TOKEN {
        return Err(TokenError::TooLong);
    }
    let (message, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
    let (header, payload) = message.split_once('.').ok_or(TokenError::Malformed)?;
    // A dot more makes a part that is no base64url.
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed);
    let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| TokenError::Malformed)?;
    let algorithm = Algorithm::parse(&header.alg).ok_or(TokenError::Algorithm)?;
    if header.crit.is_some() {
        return Err(TokenError::Critical);
    }
    let (payload, signature) = (decode(payload)?, decode(signature)?);
    let kid = header.kid.as_deref();
    if !keys.knows(kid) {
        return Err(TokenError::UnknownKey);
    }
    let (mut has_candidate, mut is_verified) = (false, false);
    for key in keys.candidates(kid, algorithm) {
        has_candidate = true;
        is_verified |= key.verify(algorithm, message.as_bytes(), &signature);
    }
    match (has_candidate, is_verified) {
        (_, true) => Ok((header, payload)),
        (true, false) => Err(TokenError::Signature),
        (false, false) => Err(TokenError::Algorithm),
    }
}

/// Makes a token with a shared secret, for what the server itself asks another one with CouchDB's interface.
#[must_use]
pub fn sign_hmac(secret: &[u8], key_id: Option<&str>, claims: &Value) -> String {
    let mut header = serde_json::json!({ "alg": "HS256", "typ": "JWT" });
    if let (Some(id), Some(header)) = (key_id, header.as_object_mut()) {
        header.insert("kid".to_owned(), id.into());
    }
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", encode(&header), encode(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::public_key::PublicKey;
    use crate::token::VerifyKey;

    /// RFC 8037, appendices A.2 and A.4; its payload is no JSON.
    #[test]
    fn the_signature_of_rfc_8037_is_verified() {
        let key = URL_SAFE_NO_PAD.decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        let mut keys = KeySet::default();
        keys.add(None, VerifyKey::Public(PublicKey::ed25519(&key).unwrap()));
        let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
                     hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
        let (header, payload) = open_bytes(token, &keys).unwrap();
        assert_eq!((header.alg.as_str(), payload.as_slice()), ("EdDSA", &b"Example of Ed25519 signing"[..]));
        let forged = token.replace("RXhh", "RXhi");
        assert_eq!(open_bytes(&forged, &keys).err(), Some(TokenError::Signature));
    }
}
