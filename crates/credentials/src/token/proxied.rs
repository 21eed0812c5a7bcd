//! CouchDB's proxy authentication: a proxy that shares a secret with the server says who asks.
//!
//! The token is the HMAC of the name alone. It does not end and says nothing of the roles, so that it is worth something only from
//! the proxy itself: the caller must know that the request came from there.

use data_encoding::HEXLOWER_PERMISSIVE;
use ring::hmac;

/// The shortest secret, in bytes: as many as the HMAC has.
pub const SHORTEST_PROXY_SECRET: usize = 32;

/// What a proxy and the server share.
pub struct ProxySecret(hmac::Key);

impl std::fmt::Debug for ProxySecret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ProxySecret")
    }
}

impl ProxySecret {
    /// `None`: it is shorter than [`SHORTEST_PROXY_SECRET`].
    #[must_use]
    pub fn new(secret: &[u8]) -> Option<Self> {
        let is_long_enough = secret.len() >= SHORTEST_PROXY_SECRET;
        is_long_enough.then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// Whether a token, in hexadecimal, is the one of a name. The time that it takes tells nothing of the right one.
    #[must_use]
    pub fn is_of(&self, token: &str, name: &str) -> bool {
        let token = HEXLOWER_PERMISSIVE.decode(token.as_bytes());
        token.is_ok_and(|token| hmac::verify(&self.0, name.as_bytes(), &token).is_ok())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::ProxySecret;

    #[test]
    fn a_token_is_of_one_name_and_one_secret() {
        let secret = ProxySecret::new(b"a secret of thirty-two bytes, or more").unwrap();
        // printf ada | openssl dgst -sha256 -hmac 'a secret of thirty-two bytes, or more'
        let ada = "260d9a2a149a65e66faf23c1167c2b2c040f46d30fd5abfbe717532be0fe9991";
        assert!(secret.is_of(ada, "ada") && secret.is_of(&ada.to_uppercase(), "ada"));
        let other = ProxySecret::new(b"another secret of thirty-two bytes, or more").unwrap();
        assert!(!other.is_of(ada, "ada"));
        for (token, name) in
            [(ada, "Ada"), (ada, ""), ("", "ada"), ("zz", "ada"), (ada.split_at(62).0, "ada")]
        {
            assert!(!secret.is_of(token, name), "{token} {name}");
        }
        assert!(ProxySecret::new(b"short").is_none());
    }
}
