//! Records of keys in DNS (RFC 6376 §3.6.1, RFC 8463 §4).

use crate::tags::{Tags, folded_base64, list};

use super::key::KeyKind;

/// Bytes of a record that are looked at: a key of 8,192 bits has 1,500.
const RECORD_BYTES_MAX: usize = 8 << 10;

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is no list of tags, or has another version.
    #[error("the key's record cannot be read")]
    Malformed,
    /// RFC 6376 §3.6.1: an empty `p=`.
    #[error("the key has been revoked")]
    Revoked,
    /// A kind of key that is not known.
    #[error("the key is of a kind that is not known")]
    Kind,
    /// RFC 6376 §3.6.1: `h=` does not name sha256.
    #[error("the key is not for sha256")]
    Hash,
    /// RFC 6376 §3.6.1: `s=` names neither `email` nor `*`.
    #[error("the key is not for mail")]
    Service,
    /// The bytes are no key of their kind.
    #[error("the key is none")]
    Key,
    /// RFC 8301 §3.2: fewer than 1,024 bits.
    #[error("the key is too short")]
    Short,
}

/// A key that DNS has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// `k=`
    pub kind: KeyKind,
    /// For RSA the key as RFC 8017 A.1.1 has it, for Ed25519 its 32 bytes.
    pub key: Vec<u8>,
    /// `t=y`: the domain is trying out DKIM.
    pub is_testing: bool,
    /// `t=s`: the domain of `i=` has to be that of `d=`.
    pub is_strict: bool,
}

impl KeyRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// [`RecordError`]
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        let text = std::str::from_utf8(bytes).map_err(|_| RecordError::Malformed)?;
        if text.len() > RECORD_BYTES_MAX {
            return Err(RecordError::Malformed);
        }
        let tags = Tags::strict(text).map_err(|_| RecordError::Malformed)?;
        let is_version = match (tags.get("v"), tags.first()) {
            // If there is one, it stands first.
            (Some(version), Some((first, _))) => version == "DKIM1" && first == "v",
            (version, _) => version.is_none(),
        };
        if !is_version {
            return Err(RecordError::Malformed);
        }
        let names = |tag: &str, wanted: &[&str]| {
            tags.get(tag).is_none_or(|names| list(names).any(|name| wanted.contains(&name)))
        };
        if !names("h", &["sha256"]) {
            return Err(RecordError::Hash);
        }
        if !names("s", &["*", "email"]) {
            return Err(RecordError::Service);
        }
        let encoded = tags.get("p").ok_or(RecordError::Malformed)?;
        if encoded.is_empty() {
            return Err(RecordError::Revoked);
        }
        let bytes = folded_base64(encoded).ok_or(RecordError::Key)?;
        let (kind, key) = match tags.get("k").unwrap_or("rsa").to_ascii_lowercase().as_str() {
            "rsa" => (KeyKind::Rsa, rsa_key(&bytes)?),
            "ed25519" if bytes.len() == 32 => (KeyKind::Ed25519, bytes),
            "ed25519" => return Err(RecordError::Key),
            _ => return Err(RecordError::Kind),
        };
        let has_flag = |flag: &str| tags.get("t").is_some_and(|flags| list(flags).any(|found| found == flag));
        Ok(Self { kind, key, is_testing: has_flag("y"), is_strict: has_flag("s") })
    }
}

/// The key in a SubjectPublicKeyInfo (RFC 6376 §3.6.1 with erratum 3017), or the key alone; long enough (RFC 8301 §3.2).
fn rsa_key(bytes: &[u8]) -> Result<Vec<u8>, RecordError> {
    let key = inner_key(bytes).unwrap_or(bytes);
    let (_, sequence, _) = element(key).filter(|(tag, ..)| *tag == SEQUENCE).ok_or(RecordError::Key)?;
    let (_, modulus, _) = element(sequence).filter(|(tag, ..)| *tag == INTEGER).ok_or(RecordError::Key)?;
    let modulus = modulus.strip_prefix(&[0]).unwrap_or(modulus);
    let first = modulus.first().ok_or(RecordError::Key)?;
    let bits = (modulus.len() * 8).saturating_sub(first.leading_zeros() as usize);
    if bits < 1_024 { Err(RecordError::Short) } else { Ok(key.to_vec()) }
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// What a SubjectPublicKeyInfo holds.
fn inner_key(bytes: &[u8]) -> Option<&[u8]> {
    let (_, info, _) = element(bytes).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (_, _, after) = element(info).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (_, bits, _) = element(after).filter(|(tag, ..)| *tag == BIT_STRING)?;
    bits.strip_prefix(&[0])
}

/// The first element of DER: its tag, its contents, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81 | 0x82 => {
            let (octets, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (octets.iter().fold(0, |length, octet| length << 8 | usize::from(*octet)), rest)
        }
        _ => return None,
    };
    let (contents, after) = rest.split_at_checked(length)?;
    Some((*tag, contents, after))
}
