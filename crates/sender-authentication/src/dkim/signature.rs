//! The field `DKIM-Signature` (RFC 6376 §3.5).

use std::fmt;

use crate::name::DomainName;
use crate::tags::{TagError, Tags, folded_base64, list};

/// Bytes of one signature field that are looked at.
const SIGNATURE_BYTES_MAX: usize = 32 << 10;

/// Names in `h=`.
const SIGNED_NAMES_MAX: usize = 500;

/// Bytes of a selector (it is a name below `_domainkey`).
const SELECTOR_BYTES_MAX: usize = 200;

/// How a signature is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// `rsa-sha256` (RFC 6376 §3.3.2).
    RsaSha256,
    /// `ed25519-sha256` (RFC 8463).
    Ed25519Sha256,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::RsaSha256 => "rsa-sha256",
            Self::Ed25519Sha256 => "ed25519-sha256",
        })
    }
}

/// What may happen to a message on its way (RFC 6376 §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canonicalization {
    /// Nothing.
    Simple,
    /// White space may change.
    Relaxed,
}

/// What is wrong with a signature, before anything is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// It is no list of tags.
    #[error("the signature cannot be read: {0}")]
    Tags(#[from] TagError),
    /// It is too long, or no text.
    #[error("the signature is no text of at most {SIGNATURE_BYTES_MAX} bytes")]
    Text,
    /// RFC 6376 §3.5: a required tag is missing, or its value is none.
    #[error("the tag {0}= is missing or wrong")]
    Tag(&'static str),
    /// RFC 6376 §6.1.1: another version.
    #[error("the signature is of another version")]
    Version,
    /// RFC 6376 §3.5: `d=` is not a parent of the domain in `i=`.
    #[error("the domain of i= is not within d=")]
    Identity,
    /// RFC 6376 §5.4: the From field has to be signed.
    #[error("the From field is not signed")]
    FromNotSigned,
    /// RFC 8301 §3.1: `rsa-sha1` must not be believed.
    #[error("rsa-sha1 is not safe")]
    Sha1,
    /// Another algorithm.
    #[error("the algorithm is not known")]
    Algorithm,
    /// RFC 6376 §8.2: what stands behind the part that is signed may be anybody's.
    #[error("l= leaves the end of the body unsigned")]
    PartOfBody,
}

/// A signature as it stands in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// `a=`
    pub algorithm: Algorithm,
    /// `c=`, for fields.
    pub fields_form: Canonicalization,
    /// `c=`, for the body.
    pub body_form: Canonicalization,
    /// `d=`: who takes responsibility.
    pub domain: DomainName,
    /// `s=`
    pub selector: String,
    /// `i=`, as it stands; `@` and the domain where there is none.
    pub identity: String,
    /// `h=`, in lower case.
    pub signed_names: Vec<String>,
    /// `t=`, in seconds since 1970.
    pub signed_seconds: Option<u64>,
    /// `x=`, in seconds since 1970.
    pub expires_seconds: Option<u64>,
    /// `bh=`
    pub body_digest: Vec<u8>,
    /// `b=`
    pub bytes: Vec<u8>,
}

/// What can be told of a signature that cannot be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) domain: Option<DomainName>,
    pub(crate) selector: Option<String>,
}

impl Claim {
    pub(crate) fn of(value: &[u8]) -> Self {
        let text = std::str::from_utf8(value).ok().filter(|text| text.len() <= SIGNATURE_BYTES_MAX);
        let tags = Tags::lenient(text.unwrap_or_default());
        Self { domain: tags.get("d").and_then(DomainName::parse), selector: tags.get("s").and_then(selector) }
    }
}

impl Signature {
    /// Reads the value of a field.
    ///
    /// # Errors
    /// [`SignatureError`]
    pub fn parse(value: &[u8]) -> Result<Self, SignatureError> {
        let text = std::str::from_utf8(value).map_err(|_| SignatureError::Text)?;
        if text.len() > SIGNATURE_BYTES_MAX {
            return Err(SignatureError::Text);
        }
        let tags = Tags::strict(text)?;
        let get = |name: &'static str| tags.get(name).ok_or(SignatureError::Tag(name));
        if get("v")? != "1" {
            return Err(SignatureError::Version);
        }
        let algorithm = match get("a")?.to_ascii_lowercase().as_str() {
            "rsa-sha256" => Algorithm::RsaSha256,
            "ed25519-sha256" => Algorithm::Ed25519Sha256,
            "rsa-sha1" => return Err(SignatureError::Sha1),
            _ => return Err(SignatureError::Algorithm),
        };
        let base64 = |name: &'static str| {
            let bytes = folded_base64(get(name)?).filter(|bytes| !bytes.is_empty());
            bytes.ok_or(SignatureError::Tag(name))
        };
        let domain = DomainName::parse(get("d")?).ok_or(SignatureError::Tag("d"))?;
        let identity = identity(tags.get("i"), &domain)?;
        let (fields_form, body_form) = forms(tags.get("c"))?;
        let (signed_seconds, expires_seconds) = times(&tags)?;
        // RFC 6376 §3.5: a list of ways to ask for the key, of which one has to be known.
        if tags.get("q").is_some_and(|ways| !list(ways).any(|way| way.eq_ignore_ascii_case("dns/txt"))) {
            return Err(SignatureError::Tag("q"));
        }
        let signature = Self {
            algorithm,
            fields_form,
            body_form,
            selector: selector(get("s")?).ok_or(SignatureError::Tag("s"))?,
            domain,
            identity,
            signed_names: signed_names(get("h")?)?,
            signed_seconds,
            expires_seconds,
            body_digest: base64("bh")?,
            bytes: base64("b")?,
        };
        if tags.get("l").is_some() {
            return Err(SignatureError::PartOfBody);
        }
        Ok(signature)
    }

    /// Where the key is (RFC 6376 §3.6.2.1).
    #[must_use]
    pub fn key_name(&self) -> Option<DomainName> {
        self.domain.below(&format!("{}._domainkey", self.selector))
    }
}

/// A selector: labels of a name (RFC 6376 §3.1).
fn selector(text: &str) -> Option<String> {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_whole = text.len() <= SELECTOR_BYTES_MAX && text.split('.').all(is_label);
    is_whole.then(|| text.to_ascii_lowercase())
}

fn identity(text: Option<&str>, domain: &DomainName) -> Result<String, SignatureError> {
    let Some(text) = text else { return Ok(format!("@{domain}")) };
    let (_, behind) = text.rsplit_once('@').ok_or(SignatureError::Tag("i"))?;
    let identity = DomainName::parse(behind).ok_or(SignatureError::Tag("i"))?;
    if identity.is_within(domain) { Ok(text.to_owned()) } else { Err(SignatureError::Identity) }
}

fn forms(text: Option<&str>) -> Result<(Canonicalization, Canonicalization), SignatureError> {
    let form = |text: &str| match text.to_ascii_lowercase().as_str() {
        "simple" => Ok(Canonicalization::Simple),
        "relaxed" => Ok(Canonicalization::Relaxed),
        _ => Err(SignatureError::Tag("c")),
    };
    let text = text.unwrap_or("simple");
    // RFC 6376 §3.5: the body's is simple where only one is named.
    let (fields, body) = text.split_once('/').unwrap_or((text, "simple"));
    Ok((form(fields)?, form(body)?))
}

fn times(tags: &Tags<'_>) -> Result<(Option<u64>, Option<u64>), SignatureError> {
    let time = |name: &'static str| {
        let Some(text) = tags.get(name) else { return Ok(None) };
        let is_number = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        let time = text.parse().ok().filter(|_| is_number);
        time.map(Some).ok_or(SignatureError::Tag(name))
    };
    let (signed, expires) = (time("t")?, time("x")?);
    // RFC 6376 §3.5: x= is later than t=.
    if signed.zip(expires).is_some_and(|(signed, expires): (u64, u64)| expires <= signed) {
        return Err(SignatureError::Tag("x"));
    }
    Ok((signed, expires))
}

fn signed_names(text: &str) -> Result<Vec<String>, SignatureError> {
    let mut names = Vec::new();
    for name in list(text) {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';');
        if !is_name || names.len() == SIGNED_NAMES_MAX {
            return Err(SignatureError::Tag("h"));
        }
        names.push(name.to_ascii_lowercase());
    }
    if !names.iter().any(|name| name == "from") {
        return Err(SignatureError::FromNotSigned);
    }
    Ok(names)
}

/// The value of a signature field without what stands in `b=` (RFC 6376 §3.7), with all else as it is.
pub(crate) fn without_signature(value: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(value.len());
    for (number, piece) in value.split(|byte| *byte == b';').enumerate() {
        if number > 0 {
            kept.push(b';');
        }
        let equals = piece.iter().position(|byte| *byte == b'=');
        let name = equals.and_then(|equals| piece.get(..equals));
        match name {
            Some(name) if name.trim_ascii() == b"b" => {
                kept.extend_from_slice(name);
                kept.push(b'=');
            }
            _ => kept.extend_from_slice(piece),
        }
    }
    kept
}
