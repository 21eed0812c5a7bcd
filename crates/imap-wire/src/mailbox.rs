//! Names of mailboxes: modified UTF-7 (RFC 3501, section 5.1.3), or UTF-8 (RFC 9051, section 5.1; RFC 9755).

use base64::Engine;
use base64::alphabet::IMAP_MUTF7;
use base64::engine::DecodePaddingMode;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::GeneralPurposeConfig;
use thiserror::Error;

/// A longer name is refused.
pub(crate) const NAME_MAX_BYTES: usize = 4096;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &IMAP_MUTF7,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// How names are written in this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameEncoding {
    /// Modified UTF-7.
    Utf7,
    /// UTF-8, after UTF8=ACCEPT or IMAP4rev2.
    Utf8,
}

/// The name is no valid modified UTF-7 or UTF-8, holds control characters, or is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the name of the mailbox is not valid")]
pub struct NameError;

/// The name of a mailbox, decoded. INBOX is one in any case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MailboxName(String);

impl MailboxName {
    /// A name. `None` if it is too long or holds control characters.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let valid = name.len() <= NAME_MAX_BYTES && !name.chars().any(char::is_control);
        valid.then(|| {
            Self(if name.eq_ignore_ascii_case("INBOX") { "INBOX".to_owned() } else { name.to_owned() })
        })
    }

    /// The inbox.
    #[must_use]
    pub fn inbox() -> Self {
        Self("INBOX".to_owned())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a name.
    ///
    /// # Errors
    /// [`NameError`]
    pub fn decode(name: &[u8], encoding: NameEncoding) -> Result<Self, NameError> {
        let name = match encoding {
            NameEncoding::Utf8 => std::str::from_utf8(name).map_err(|_| NameError)?.to_owned(),
            NameEncoding::Utf7 => decode_utf7(name)?,
        };
        Self::new(&name).ok_or(NameError)
    }

    /// Writes the name.
    #[must_use]
    pub fn encode(&self, encoding: NameEncoding) -> String {
        match encoding {
            NameEncoding::Utf8 => self.0.clone(),
            NameEncoding::Utf7 => encode_utf7(&self.0),
        }
    }
}

/// Reads modified UTF-7. What could have been written more plainly is refused: two spellings of a name would be two
/// mailboxes.
///
/// # Errors
/// [`NameError`]
pub fn decode_utf7(name: &[u8]) -> Result<String, NameError> {
    if name.len() > NAME_MAX_BYTES {
        return Err(NameError);
    }
    let name = std::str::from_utf8(name).map_err(|_| NameError)?;
    let mut decoded = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('&') {
        let (plain, shifted) = rest.split_at(at);
        decoded.push_str(plain);
        let (base64, after) = shifted.get(1..).and_then(|text| text.split_once('-')).ok_or(NameError)?;
        if base64.is_empty() {
            decoded.push('&');
        } else {
            let bytes = BASE64.decode(base64).map_err(|_| NameError)?;
            let units: Vec<u16> = bytes
                .chunks(2)
                .filter_map(|pair| match pair {
                    [high, low] => Some(u16::from_be_bytes([*high, *low])),
                    _ => None,
                })
                .collect();
            decoded.push_str(&String::from_utf16(&units).map_err(|_| NameError)?);
        }
        rest = after;
    }
    decoded.push_str(rest);
    if encode_utf7(&decoded) == name { Ok(decoded) } else { Err(NameError) }
}

/// Writes modified UTF-7.
#[must_use]
pub fn encode_utf7(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    let mut units: Vec<u8> = Vec::new();
    for character in name.chars() {
        if matches!(character, ' '..='~') {
            flush(&mut units, &mut encoded);
            encoded.push(character);
            if character == '&' {
                encoded.push('-');
            }
            continue;
        }
        let mut pair = [0; 2];
        for unit in character.encode_utf16(&mut pair) {
            units.extend_from_slice(&unit.to_be_bytes());
        }
    }
    flush(&mut units, &mut encoded);
    encoded
}

fn flush(units: &mut Vec<u8>, encoded: &mut String) {
    if !units.is_empty() {
        encoded.push('&');
        encoded.push_str(&BASE64.encode(&units));
        encoded.push('-');
        units.clear();
    }
}
