//! Keys by which tokens are verified, and the sets in which providers publish them (RFC 7517).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::Deserialize;

use crate::public_key::{PublicKey, RsaHash};
use crate::secret::SecretBytes;
use crate::token::{Algorithm, TokenError};

/// The longest key set, in bytes, and the most keys that are looked at.
const LONGEST_KEY_SET: usize = 256 * 1024;
const MOST_KEYS: usize = 64;

/// The shortest secret of an HMAC (RFC 7518, section 3.2).
const SHORTEST_SECRET: usize = 32;

/// A key set is fetched again after `FRESH_S`. A token that names an unknown key causes a fetch too, but at most one in
/// `PAUSE_S`: tokens come from strangers.
const FRESH_S: u64 = 24 * 60 * 60;
const PAUSE_S: u64 = 60;

/// A key that verifies tokens. Its kind says which algorithms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifyKey {
    /// A public key.
    Public(PublicKey),
    /// A secret that the signer has as well. Never from a key set.
    Shared(SecretBytes),
}

impl VerifyKey {
    /// A shared secret of at least 32 bytes.
    #[must_use]
    pub fn shared(secret: &[u8]) -> Option<Self> {
        (secret.len() >= SHORTEST_SECRET).then(|| Self::Shared(SecretBytes::new(secret)))
    }

    /// A public key in a PEM text labelled `PUBLIC KEY`: RSA of 2,048 bits or more, P-256 or Ed25519.
    #[must_use]
    pub fn from_pem(pem: &str) -> Option<Self> {
        const LONGEST: usize = 8 * 1024;
        let (_, rest) = pem.get(..LONGEST.min(pem.len()))?.split_once("-----BEGIN PUBLIC KEY-----")?;
        let (body, _) = rest.split_once("-----END PUBLIC KEY-----")?;
        let body: String = body.split_ascii_whitespace().collect();
        let bytes = base64::engine::general_purpose::STANDARD.decode(body).ok()?;
        PublicKey::from_spki(&bytes).map(Self::Public)
    }

    /// Whether a token may say that it is signed by this algorithm, where this is its key.
    #[must_use]
    pub const fn is_for(&self, algorithm: Algorithm) -> bool {
        matches!(
            (self, algorithm),
            (Self::Public(PublicKey::P256 { .. }), Algorithm::Es256)
                | (Self::Public(PublicKey::Ed25519 { .. }), Algorithm::EdDsa)
                | (
                    Self::Public(PublicKey::Rsa { .. }),
                    Algorithm::Rs256 | Algorithm::Rs384 | Algorithm::Rs512
                )
                | (Self::Shared(_), Algorithm::Hs256 | Algorithm::Hs384 | Algorithm::Hs512)
        )
    }

    pub(super) fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match self {
            _ if !self.is_for(algorithm) => false,
            Self::Public(key) => {
                let hash = match algorithm {
                    Algorithm::Rs384 => RsaHash::Sha384,
                    Algorithm::Rs512 => RsaHash::Sha512,
                    _ => RsaHash::Sha256,
                };
                key.verify_of_token(message, signature, hash)
            }
            Self::Shared(secret) => algorithm.hmac().is_some_and(|algorithm| {
                hmac::verify(&hmac::Key::new(algorithm, secret.expose()), message, signature).is_ok()
            }),
        }
    }
}

/// Keys by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet(Vec<(Option<String>, Option<Algorithm>, VerifyKey)>);

#[derive(Deserialize)]
struct JsonKeySet {
    keys: Vec<serde_json::Value>,
}

/// A JWK (RFC 7517, section 4; RFC 7518, section 6; RFC 8037, section 2).
#[derive(Deserialize)]
struct JsonKey {
    kty: String,
    kid: Option<String>,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl JsonKey {
    fn is_for_signatures(&self) -> bool {
        self.r#use.as_deref().is_none_or(|usage| usage == "sig")
            && self
                .key_ops
                .as_ref()
                .is_none_or(|operations| operations.iter().any(|operation| operation == "verify"))
    }

    /// The key; `None` where it is of a kind that is not used here. A secret (`oct`) in a public set is refused.
    fn public_key(&self) -> Option<PublicKey> {
        let bytes = |field: &Option<String>| URL_SAFE_NO_PAD.decode(field.as_ref()?).ok();
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("EC", Some("P-256")) => PublicKey::p256(&bytes(&self.x)?, &bytes(&self.y)?),
            ("OKP", Some("Ed25519")) => PublicKey::ed25519(&bytes(&self.x)?),
            ("RSA", None) => PublicKey::rsa(&bytes(&self.n)?, &bytes(&self.e)?),
            _ => None,
        }
    }
}

impl KeySet {
    /// Reads a provider's set (RFC 7517, section 5). Keys of other kinds, and those that are not for signatures, are left out,
    /// as the RFC says.
    ///
    /// # Errors
    /// [`TokenError::TooLong`] and [`TokenError::Malformed`]
    pub fn parse(json: &[u8]) -> Result<Self, TokenError> {
        if json.len() > LONGEST_KEY_SET {
            return Err(TokenError::TooLong);
        }
        let set: JsonKeySet = serde_json::from_slice(json).map_err(|_| TokenError::Malformed)?;
        let mut keys = Self::default();
        for value in set.keys.into_iter().take(MOST_KEYS) {
            let Ok(key) = serde_json::from_value::<JsonKey>(value) else { continue };
            let algorithm = key.alg.as_deref().map(Algorithm::parse);
            // A key for an algorithm that is not known here is for nothing here.
            let (Some(public), true, false) =
                (key.public_key(), key.is_for_signatures(), algorithm == Some(None))
            else {
                continue;
            };
            keys.0.push((key.kid, algorithm.flatten(), VerifyKey::Public(public)));
        }
        Ok(keys)
    }

    /// Adds a configured key. `id` is what tokens call it in `kid`; `None` for the key of tokens that name none.
    pub fn add(&mut self, id: Option<String>, key: VerifyKey) {
        if self.0.len() < MOST_KEYS {
            self.0.push((id, None, key));
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys that a token may be signed with: those of its key id, or all where it names none; of its algorithm.
    pub(super) fn candidates(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &VerifyKey> {
        self.0.iter().filter_map(move |(known, only, key)| {
            let named = id.is_none() || known.as_deref() == id;
            let fits = key.is_for(algorithm) && only.is_none_or(|only| only == algorithm);
            (named && fits).then_some(key)
        })
    }

    pub(super) fn knows(&self, id: Option<&str>) -> bool {
        self.0.iter().any(|(known, _, _)| id.is_none() || known.as_deref() == id)
    }
}

/// A provider's keys as they were fetched, and when they are to be fetched again: the fetching is the caller's.
#[derive(Clone, Debug, Default)]
pub struct KeyCache {
    keys: KeySet,
    fetched_s: Option<u64>,
    asked_s: Option<u64>,
}

impl KeyCache {
    /// The keys.
    #[must_use]
    pub const fn keys(&self) -> &KeySet {
        &self.keys
    }

    /// Whether the keys should be fetched now: there are none, they are a day old, or a token names one that is not there
    /// (rotation) — but not more often than once a minute, whatever tokens say and whether it succeeds. Saying yes counts
    /// as asking.
    pub fn should_fetch(&mut self, has_unknown_key: bool, now_s: u64) -> bool {
        let old = self.fetched_s.is_none_or(|then_s| now_s.saturating_sub(then_s) >= FRESH_S);
        let paused = self.asked_s.is_some_and(|then_s| now_s.saturating_sub(then_s) < PAUSE_S);
        let should = (old || has_unknown_key) && !paused;
        if should {
            self.asked_s = Some(now_s);
        }
        should
    }

    /// Takes what was fetched. A set that cannot be read changes nothing: the keys from before stay.
    ///
    /// # Errors
    /// As [`KeySet::parse`]
    pub fn take(&mut self, json: &[u8], now_s: u64) -> Result<(), TokenError> {
        self.keys = KeySet::parse(json)?;
        self.fetched_s = Some(now_s);
        Ok(())
    }
}
