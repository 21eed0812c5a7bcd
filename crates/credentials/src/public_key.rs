//! Public keys, of passkeys and of providers, and what is signed with them.

use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};

use crate::der;
use crate::secret::SecretBytes;

/// The least and most bytes of an RSA modulus: 2,048 to 4,096 bits.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=512;

/// A hash of an RSA signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RsaHash {
    Sha256,
    Sha384,
    Sha512,
}

/// A public key, whose kind says what it can verify.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum PublicKey {
    /// A point on P-256, uncompressed.
    P256 {
        /// `04`, x and y: 65 bytes.
        point: SecretBytes,
    },
    /// A key of Ed25519 (RFC 8032).
    Ed25519 {
        /// 32 bytes.
        key: SecretBytes,
    },
    /// A key of RSA (RFC 8017) with 2,048 to 4,096 bits.
    Rsa {
        /// The modulus, big-endian, without leading zeros.
        modulus: SecretBytes,
        /// The public exponent, alike.
        exponent: SecretBytes,
    },
}

impl PublicKey {
    pub(crate) fn p256(x: &[u8], y: &[u8]) -> Option<Self> {
        let (x, y) = (<[u8; 32]>::try_from(x).ok()?, <[u8; 32]>::try_from(y).ok()?);
        let point: Vec<u8> = [4].into_iter().chain(x).chain(y).collect();
        Some(Self::P256 { point: SecretBytes::new(point) })
    }

    pub(crate) fn ed25519(key: &[u8]) -> Option<Self> {
        (key.len() == 32).then(|| Self::Ed25519 { key: SecretBytes::new(key) })
    }

    pub(crate) fn rsa(modulus: &[u8], exponent: &[u8]) -> Option<Self> {
        let stripped =
            |number: &[u8]| number.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<_>>();
        let (modulus, exponent) = (stripped(modulus), stripped(exponent));
        let odd = exponent.last().is_some_and(|byte| byte % 2 == 1);
        // Ring takes exponents up to 33 bits; 3 and 65,537 are what there is.
        (RSA_BYTES.contains(&modulus.len()) && (1..=4).contains(&exponent.len()) && odd)
            .then(|| Self::Rsa { modulus: SecretBytes::new(modulus), exponent: SecretBytes::new(exponent) })
    }

    /// Reads a `SubjectPublicKeyInfo` (RFC 5280, section 4.1.2.7), as PEM files labelled `PUBLIC KEY` hold it.
    pub(crate) fn from_spki(bytes: &[u8]) -> Option<Self> {
        const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
        const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
        const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
        const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
        let (algorithm, rest) = der::element(der::sequence(bytes)?, der::SEQUENCE)?;
        let (identifier, parameters) = der::element(algorithm, der::OBJECT_IDENTIFIER)?;
        let (bits, rest) = der::element(rest, der::BIT_STRING)?;
        // The first byte says how many bits of the last one are unused.
        let key = bits.strip_prefix(&[0]).filter(|_| rest.is_empty())?;
        match identifier {
            RSA => {
                let (modulus, rest) = der::unsigned(der::sequence(key)?)?;
                let (exponent, rest) = der::unsigned(rest)?;
                Self::rsa(modulus, exponent).filter(|_| rest.is_empty())
            }
            EC => {
                let (curve, _) = der::element(parameters, der::OBJECT_IDENTIFIER)?;
                let point = key.strip_prefix(&[4]).filter(|_| curve == P256)?;
                let (x, y) = point.split_at_checked(32)?;
                Self::p256(x, y)
            }
            ED25519 => Self::ed25519(key),
            _ => None,
        }
    }

    /// Whether what was read has the sizes that it must.
    pub(crate) fn is_within_limits(&self) -> bool {
        match self {
            Self::P256 { point } => point.expose().len() == 65,
            Self::Ed25519 { key } => key.expose().len() == 32,
            Self::Rsa { modulus, exponent } => {
                RSA_BYTES.contains(&modulus.expose().len()) && (1..=4).contains(&exponent.expose().len())
            }
        }
    }

    /// Checks a signature as passkeys make them (WebAuthn, section 6.5.5): ECDSA's in DER.
    pub(crate) fn verify_of_passkey(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::P256 { point } => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point.expose())
                .verify(message, signature)
                .is_ok(),
            _ => self.verify_of_token(message, signature, RsaHash::Sha256),
        }
    }

    /// Checks a signature as JWS has them (RFC 7518, section 3): ECDSA's is two numbers of 32 bytes.
    pub(crate) fn verify_of_token(&self, message: &[u8], signature: &[u8], hash: RsaHash) -> bool {
        match self {
            Self::P256 { point } => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point.expose())
                .verify(message, signature)
                .is_ok(),
            Self::Ed25519 { key } => {
                UnparsedPublicKey::new(&ED25519, key.expose()).verify(message, signature).is_ok()
            }
            Self::Rsa { modulus, exponent } => {
                let parameters = match hash {
                    RsaHash::Sha256 => &RSA_PKCS1_2048_8192_SHA256,
                    RsaHash::Sha384 => &RSA_PKCS1_2048_8192_SHA384,
                    RsaHash::Sha512 => &RSA_PKCS1_2048_8192_SHA512,
                };
                let key = RsaPublicKeyComponents { n: modulus.expose(), e: exponent.expose() };
                key.verify(parameters, message, signature).is_ok()
            }
        }
    }
}
