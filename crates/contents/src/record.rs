//! How a content is stored: what is known of it, and its bytes or where its pieces are.

use bytes::Bytes;
use scrinium_objects::{compress, decompress};

use crate::wire::{Input, put_bytes, put_number};

const VERSION: u8 = 1;

const INLINE: u8 = 0;
const UPLOAD: u8 = 1;
const OBJECT: u8 = 2;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Less than this cannot win back the header of a compressed frame.
const COMPRESS_FROM_BYTES: usize = 128;

/// What is known of a content, and where its bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Bytes of the content, uncompressed.
    pub length: u64,
    /// Its MD5 digest.
    pub md5: [u8; 16],
    /// Where its bytes are.
    pub placement: Placement,
}

/// Where a content's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the record itself.
    Inline(Data),
    /// In the pieces of an upload, each of `piece_bytes` but the last.
    Upload {
        /// The number of the upload.
        upload: u64,
        /// Bytes of a piece, uncompressed.
        piece_bytes: u64,
    },
    /// An object of a store of objects.
    Object(ObjectPlace),
}

/// Which object a content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectPlace {
    /// The number of the place, see `places`.
    pub place: u32,
    /// The number of the upload, which is a part of the object's name.
    pub upload: u64,
    /// Bytes of the object.
    pub stored_bytes: u64,
}

/// Bytes, compressed where that saved a tenth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    encoding: u8,
    bytes: Bytes,
}

impl Record {
    /// The record of a content that lies in it.
    #[must_use]
    pub fn inline(bytes: &[u8], md5: [u8; 16], compressible: bool) -> Self {
        let placement = Placement::Inline(Data::new(bytes, compressible));
        Self { length: bytes.len() as u64, md5, placement }
    }

    /// As it is stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_number(&mut out, self.length);
        out.extend_from_slice(&self.md5);
        match &self.placement {
            Placement::Inline(data) => {
                out.push(INLINE);
                out.extend_from_slice(&data.encode());
            }
            Placement::Upload { upload, piece_bytes } => {
                out.push(UPLOAD);
                put_number(&mut out, *upload);
                put_number(&mut out, *piece_bytes);
            }
            Placement::Object(object) => {
                out.push(OBJECT);
                object.put(&mut out);
            }
        }
        out
    }

    /// `None`: damaged, or of a version that is not known.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        if input.byte()? != VERSION {
            return None;
        }
        let length = input.number()?;
        let md5 = input.array()?;
        let placement = match input.byte()? {
            INLINE => Placement::Inline(Data::decode(input.rest())?),
            UPLOAD => {
                let upload = input.number()?;
                let piece_bytes = input.number()?;
                (piece_bytes > 0).then_some(Placement::Upload { upload, piece_bytes })?
            }
            OBJECT => Placement::Object(ObjectPlace::read(&mut input)?),
            _ => return None,
        };
        Some(Self { length, md5, placement })
    }
}

impl ObjectPlace {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.place));
        put_number(out, self.upload);
        put_number(out, self.stored_bytes);
    }

    pub(crate) fn read(input: &mut Input<'_>) -> Option<Self> {
        let place = u32::try_from(input.number()?).ok()?;
        Some(Self { place, upload: input.number()?, stored_bytes: input.number()? })
    }
}

impl Data {
    /// These bytes, compressed where that pays.
    #[must_use]
    pub fn new(bytes: &[u8], compressible: bool) -> Self {
        if compressible
            && bytes.len() >= COMPRESS_FROM_BYTES
            && let Some(compressed) = compress(bytes)
        {
            return Self { encoding: ZSTD, bytes: compressed.into() };
        }
        Self { encoding: PLAIN, bytes: Bytes::copy_from_slice(bytes) }
    }

    /// The bytes as they were; `None` if they cannot be had or are more than `max_bytes`.
    #[must_use]
    pub fn open(&self, max_bytes: u64) -> Option<Bytes> {
        let max_bytes = usize::try_from(max_bytes).ok()?;
        match self.encoding {
            PLAIN if self.bytes.len() <= max_bytes => Some(self.bytes.clone()),
            ZSTD => decompress(&self.bytes, max_bytes).map(Bytes::from),
            _ => None,
        }
    }

    /// As it is stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + 8);
        out.push(self.encoding);
        put_bytes(&mut out, &self.bytes);
        out
    }

    /// `None`: damaged.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let encoding = input.byte()?;
        Some(Self { encoding, bytes: Bytes::copy_from_slice(input.bytes()?) })
    }
}

/// Whether bytes of a MIME type are worth the try: pictures, sound and archives are compressed already.
#[must_use]
pub fn is_compressible(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (class, name) = kind.split_once('/').unwrap_or((kind.as_str(), ""));
    match class {
        "image" => matches!(name, "svg+xml" | "bmp" | "x-ms-bmp" | "tiff"),
        "audio" | "video" => name.contains("wav"),
        "application" => {
            !["zip", "gzip", "x-7z", "rar", "x-xz", "zstd", "bzip", "openxmlformats", "opendocument"]
                .iter()
                .any(|packed| name.contains(packed))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let text = "The quick brown fox. ".repeat(100);
        for compressible in [false, true] {
            let record = Record::inline(text.as_bytes(), [7; 16], compressible);
            let bytes = record.encode();
            assert_eq!(bytes.len() < 400, compressible);
            let read = Record::decode(&bytes).unwrap();
            assert_eq!(read, record);
            let Placement::Inline(data) = read.placement else { panic!("not inline") };
            assert_eq!(data.open(record.length).unwrap(), text.as_bytes());
            assert_eq!(data.open(10), None);
        }
        let record = Record {
            length: 1 << 30,
            md5: [0; 16],
            placement: Placement::Upload { upload: 9, piece_bytes: 4 },
        };
        assert_eq!(Record::decode(&record.encode()).unwrap(), record);
        let object = ObjectPlace { place: 3, upload: u64::MAX, stored_bytes: 1 << 29 };
        let record = Record { placement: Placement::Object(object), ..record };
        assert_eq!(Record::decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn a_cut_record_is_refused() {
        let bytes = Record::inline(&[1; 300], [0; 16], true).encode();
        for end in 0..bytes.len() {
            assert_eq!(Record::decode(&bytes[..end]), None, "cut at {end}");
        }
    }
}
