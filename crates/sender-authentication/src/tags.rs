//! Lists of `name=value` (RFC 6376 §3.2), of which DKIM's, DMARC's and MTA-STS's records consist.

/// Tags of one list.
const TAGS_MAX: usize = 100;

/// Why a text is no list of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    /// A piece between two semicolons has no name, or no equals sign.
    #[error("a tag has no name or no value")]
    Malformed,
    /// RFC 6376 §3.2: a name that is there twice makes the whole list invalid.
    #[error("a tag is there twice")]
    Repeated,
    /// More tags than any record has.
    #[error("there are more than {TAGS_MAX} tags")]
    TooMany,
}

/// The tags of a list, in their order, without the white space around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tags<'a> {
    list: Vec<(&'a str, &'a str)>,
}

impl<'a> Tags<'a> {
    /// Reads a list as DKIM wants it: nothing in it may be wrong.
    ///
    /// # Errors
    /// [`TagError`]
    pub fn strict(text: &'a str) -> Result<Self, TagError> {
        let mut list: Vec<(&str, &str)> = Vec::new();
        let mut pieces = text.split(';').peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() && piece.trim_ascii().is_empty() {
                break;
            }
            let (name, value) = tag(piece).ok_or(TagError::Malformed)?;
            if list.iter().any(|(known, _)| *known == name) {
                return Err(TagError::Repeated);
            }
            if list.len() == TAGS_MAX {
                return Err(TagError::TooMany);
            }
            list.push((name, value));
        }
        Ok(Self { list })
    }

    /// Reads a list as DMARC wants it (RFC 9989 §4.7): what is wrong in it is as if it were not there, and of two tags with one
    /// name the first counts.
    #[must_use]
    pub fn lenient(text: &'a str) -> Self {
        let mut list: Vec<(&str, &str)> = Vec::new();
        for (name, value) in text.split(';').filter_map(tag).take(TAGS_MAX) {
            if !list.iter().any(|(known, _)| *known == name) {
                list.push((name, value));
            }
        }
        Self { list }
    }

    /// The value of a tag; names are compared as they are.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.list.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The first tag.
    #[must_use]
    pub fn first(&self) -> Option<(&'a str, &'a str)> {
        self.list.first().copied()
    }
}

fn tag(piece: &str) -> Option<(&str, &str)> {
    let (name, value) = piece.split_once('=')?;
    let name = name.trim_ascii();
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| (name, value.trim_ascii()))
}

/// The pieces of a value between colons, without white space around them.
pub(crate) fn list(value: &str) -> impl Iterator<Item = &str> {
    value.split(':').map(str::trim_ascii)
}

/// Base64 that may be folded (RFC 6376 §2.10, §3.5).
pub(crate) fn folded_base64(value: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    use base64::alphabet::STANDARD;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let letters: Vec<u8> = value.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    ENGINE.decode(letters).ok()
}
