//! One revision of a document: `generation-digest`.

use std::cmp::Ordering;
use std::fmt::{self, Display, Write as _};
use std::str::FromStr;

use scrinium_assertion::never;

use crate::{DocumentError, Fields};

/// The longest digest, in bytes, that is not 32 hexadecimal digits. CouchDB has no limit.
const TEXT_BYTES_MAX: usize = 128;

/// The highest generation that a revision may bring from elsewhere: up to here a double of JavaScript is exact.
pub const GENERATION_MAX: u64 = (1 << 53) - 1;

/// The part of a revision behind the dash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Digest {
    /// Thirty-two hexadecimal digits, kept as the sixteen bytes they stand for.
    Hash([u8; 16]),
    /// Any other text, as clients give it to replicated edits; 1 to 128 bytes.
    Text(Box<str>),
}

impl Digest {
    /// The bytes that CouchDB compares.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Hash(hash) => hash,
            Self::Text(text) => text.as_bytes(),
        }
    }

    /// Reads the part behind the dash. CouchDB: thirty-two characters must be hexadecimal, any other
    /// length is taken as it is.
    ///
    /// # Errors
    /// [`DocumentError::BadRequest`] `Invalid rev format`.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        match text.len() {
            32 => parse_hash(text).map(Self::Hash).ok_or_else(invalid),
            1..=TEXT_BYTES_MAX => Ok(Self::Text(text.into())),
            _ => Err(invalid()),
        }
    }
}

impl Ord for Digest {
    fn cmp(&self, other: &Self) -> Ordering {
        let kind = |digest: &Self| matches!(digest, Self::Text(_));
        self.as_bytes().cmp(other.as_bytes()).then_with(|| kind(self).cmp(&kind(other)))
    }
}

impl PartialOrd for Digest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hash(hash) => out.write_str(write_hash(hash, &mut [0; 32])),
            Self::Text(text) => out.write_str(text),
        }
    }
}

/// A revision, printed and parsed as CouchDB writes it: `3-917fa2381192822767f010b95b45325b`.
///
/// Revisions are ordered as CouchDB chooses winners: by generation, then by the digest's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision {
    generation: u64,
    digest: Digest,
}

impl Revision {
    /// A revision of the given generation (1 for a document's first) and digest.
    #[must_use]
    pub fn new(generation: u64, digest: Digest) -> Self {
        Self { generation, digest }
    }

    /// How many edits lead to it, itself included.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The part behind the dash.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Whether a client may bring it: a generation from 1 to [`GENERATION_MAX`], and a digest of letters, digits and
    /// `.`, `_`, `~`, `-` (what an URL takes without escapes, RFC 3986 §2.3).
    #[must_use]
    pub fn may_be_brought(&self) -> bool {
        let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
        let is_clean = match &self.digest {
            Digest::Hash(_) => true,
            Digest::Text(text) => text.bytes().all(is_unreserved),
        };
        is_clean && (1..=GENERATION_MAX).contains(&self.generation)
    }

    /// Reads `generation-digest`, as somebody names a revision that may be stored. Earlier versions stored digests of
    /// any text and any generation, which must stay readable and be deleted; so one that is to be
    /// stored is asked for [`may_be_brought`](Self::may_be_brought) as well.
    ///
    /// # Errors
    /// [`DocumentError::BadRequest`] `Invalid rev format`.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let (generation, digest) = text.split_once('-').ok_or_else(invalid)?;
        if generation.is_empty() || !generation.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        let generation = generation.parse().map_err(|_| invalid())?;
        Ok(Self { generation, digest: Digest::parse(digest)? })
    }
}

impl FromStr for Revision {
    type Err = DocumentError;

    fn from_str(text: &str) -> Result<Self, DocumentError> {
        Self::parse(text)
    }
}

impl Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.generation)?;
        out.write_char('-')?;
        self.digest.fmt(out)
    }
}

fn invalid() -> DocumentError {
    DocumentError::BadRequest("Invalid rev format".into())
}

/// A revision is written several times for each update, and formatting byte by byte showed in profiles.
fn write_hash<'a>(hash: &[u8; 16], text: &'a mut [u8; 32]) -> &'a str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| {
        DIGITS.get(usize::from(value)).copied().unwrap_or_else(|| {
            never!("half a byte is below sixteen", "{value}");
            b'0'
        })
    };
    for (pair, byte) in text.chunks_exact_mut(2).zip(hash) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    std::str::from_utf8(text).unwrap_or_else(|error| {
        never!("hexadecimal digits are text", "{error}");
        ""
    })
}

fn parse_hash(text: &str) -> Option<[u8; 16]> {
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

/// The revision that an edit makes, the same on every server that makes the same edit.
///
/// `attachments` are names with digests (as `sha256-…` or any text that stands for the content), in any
/// order. Whether a value is stored outside its record does not change the revision.
/// The digest is the first half of a BLAKE3 hash over a versioned, unambiguous spelling of all this.
#[must_use]
pub fn new_revision(
    parent: Option<&Revision>,
    deleted: bool,
    fields: Fields<'_>,
    attachments: &[(&str, &str)],
) -> Revision {
    // One piece: the hash takes it several times faster than many small ones.
    let mut identity = Vec::with_capacity(1024);
    let mut text = |text: &[u8]| {
        identity.extend_from_slice(&(text.len() as u64).to_le_bytes());
        identity.extend_from_slice(text);
    };
    text(b"scrinium revision 1");
    text(parent.map(Revision::to_string).unwrap_or_default().as_bytes());
    text(&[u8::from(deleted)]);
    text(&(fields.len() as u64).to_le_bytes());
    for (name, value) in fields.iter() {
        text(name.as_bytes());
        value.with_identity(|identity| text(identity));
    }
    let mut attachments = attachments.to_vec();
    attachments.sort_unstable();
    for (name, digest) in attachments {
        text(name.as_bytes());
        text(digest.as_bytes());
    }
    let hash = blake3::hash(&identity).as_bytes().first_chunk().copied().unwrap_or_else(|| {
        never!("a hash has 32 bytes");
        [0; 16]
    });
    let generation = parent.map_or(0, Revision::generation).saturating_add(1);
    Revision { generation, digest: Digest::Hash(hash) }
}
