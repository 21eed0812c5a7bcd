//! What the header of a part says.

use scrinium_imap_wire::Envelope;

use crate::decode::TransferEncoding;
use crate::envelope::envelope;
use crate::field::{fields, tidied};
use crate::media::{MediaValue, content_type, disposition, word, words};

/// The fields of one part. The first of several with one name counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartHeader {
    pub(crate) content_type: Option<MediaValue>,
    pub(crate) encoding: Option<Vec<u8>>,
    pub(crate) id: Option<Vec<u8>>,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) md5: Option<Vec<u8>>,
    pub(crate) disposition: Option<MediaValue>,
    pub(crate) languages: Vec<Vec<u8>>,
    pub(crate) location: Option<Vec<u8>>,
}

impl PartHeader {
    pub(crate) fn read(header: &[u8]) -> Self {
        let mut part = Self::default();
        let set = |place: &mut Option<Vec<u8>>, value: Vec<u8>| {
            if place.is_none() && !value.is_empty() {
                *place = Some(value);
            }
        };
        for field in fields(header) {
            let Some(name) = field.name.get("Content-".len()..) else { continue };
            if !field.name.to_ascii_lowercase().starts_with(b"content-") {
                continue;
            }
            let value = field.unfolded();
            match name.to_ascii_lowercase().as_slice() {
                b"type" if part.content_type.is_none() => part.content_type = content_type(&value),
                b"transfer-encoding" => set(&mut part.encoding, word(&value).unwrap_or_default()),
                b"id" => set(&mut part.id, value),
                b"description" => set(&mut part.description, tidied(&value)),
                b"md5" => set(&mut part.md5, value),
                b"disposition" if part.disposition.is_none() => part.disposition = disposition(&value),
                b"language" if part.languages.is_empty() => part.languages = words(&value),
                b"location" => set(&mut part.location, value),
                _ => {}
            }
        }
        part
    }

    pub(crate) fn is_type(&self, name: &str) -> bool {
        self.content_type.as_ref().is_some_and(|media| media.value.eq_ignore_ascii_case(name.as_bytes()))
    }

    pub(crate) fn is(&self, name: &str, subtype: &str) -> bool {
        self.is_type(name)
            && self
                .content_type
                .as_ref()
                .is_some_and(|media| media.subtype.eq_ignore_ascii_case(subtype.as_bytes()))
    }

    pub(crate) fn transfer_encoding(&self) -> TransferEncoding {
        TransferEncoding::named(self.encoding.as_deref().unwrap_or_default())
    }

    pub(crate) fn is_attachment(&self) -> bool {
        self.disposition.as_ref().is_some_and(|found| found.value.eq_ignore_ascii_case(b"attachment"))
    }
}

/// The header of a whole message: of its part, and its envelope.
pub(crate) fn message_header(header: &[u8]) -> (PartHeader, Envelope) {
    (PartHeader::read(header), envelope(header))
}
