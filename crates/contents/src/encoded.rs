//! Contents that are stored as gzip, and read as that or as what it stands for.
//!
//! What comes encoded stays so, and its digest is that of the encoded bytes, as in CouchDB. How much it stands for is found out as
//! it comes, by decoding it piece by piece; nothing of that is kept. So neither a gzip that stands for very much nor one that is read
//! by very many takes more memory than a piece and a decoder each.

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use flate2::{read, write};
use parking_lot::Mutex;

use crate::contents::{Content, PIECE_BYTES};
use crate::error::{ContentError, Result};
use crate::hex::hex;
use crate::reader::ContentReader;
use crate::upload::Upload;

/// Encoded bytes are read from the store in pieces of this many.
const READ_BYTES: usize = 64 << 10;

/// A gzip on its way in. Dropped before [`EncodedUpload::finish`], it is thrown away.
pub struct EncodedUpload {
    upload: Upload,
    decoder: write::MultiGzDecoder<DecodedLength>,
}

/// Counts what a gzip stands for.
struct DecodedLength {
    length: u64,
    max_bytes: u64,
}

impl Write for DecodedLength {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length = self.length.saturating_add(bytes.len() as u64);
        if self.length > self.max_bytes { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl EncodedUpload {
    /// Takes a gzip into an upload. What it stands for may be no larger than the upload may.
    #[must_use]
    pub fn new(upload: Upload) -> Self {
        let counter = DecodedLength { length: 0, max_bytes: upload.max_bytes() };
        Self { upload, decoder: write::MultiGzDecoder::new(counter) }
    }

    /// As [`Upload::may_leave`].
    #[must_use]
    pub const fn may_leave(&self) -> bool {
        self.upload.may_leave()
    }

    /// Takes the next encoded bytes; may wait for the disk.
    ///
    /// # Errors
    /// [`ContentError::Encoding`] where they are no gzip, [`ContentError::TooLarge`] beyond the server's limit, and what the store
    /// reports.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.decoder.write_all(bytes).map_err(|_| self.failure())?;
        self.upload.write(bytes)
    }

    /// All is there: the content, which knows how much it stands for.
    ///
    /// # Errors
    /// As [`EncodedUpload::write`].
    pub fn finish(mut self) -> Result<Content> {
        self.decoder.try_finish().map_err(|_| self.failure())?;
        let length = self.decoder.get_ref().length;
        Ok(self.upload.finish()?.standing_for(Some(length)))
    }

    fn failure(&self) -> ContentError {
        let counter = self.decoder.get_ref();
        if counter.length > counter.max_bytes {
            return ContentError::TooLarge { limit_bytes: counter.max_bytes };
        }
        ContentError::Encoding
    }
}

/// A content on its way in, as it is or as gzip. Dropped before [`ContentUpload::finish`], it is thrown away.
pub enum ContentUpload {
    /// What comes is the content.
    Plain(Box<Upload>),
    /// What comes is gzip, and is stored so.
    Gzip(Box<EncodedUpload>),
}

impl ContentUpload {
    /// Takes what comes into an upload.
    #[must_use]
    pub fn new(upload: Upload, is_gzip: bool) -> Self {
        if is_gzip { Self::Gzip(Box::new(EncodedUpload::new(upload))) } else { Self::Plain(Box::new(upload)) }
    }

    /// As [`Upload::may_leave`].
    #[must_use]
    pub const fn may_leave(&self) -> bool {
        match self {
            Self::Plain(upload) => upload.may_leave(),
            Self::Gzip(upload) => upload.may_leave(),
        }
    }

    /// Takes the next bytes; may wait for the disk.
    ///
    /// # Errors
    /// As [`Upload::write`] or [`EncodedUpload::write`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Plain(upload) => upload.write(bytes),
            Self::Gzip(upload) => upload.write(bytes),
        }
    }

    /// All is there.
    ///
    /// # Errors
    /// As [`Upload::finish`] or [`EncodedUpload::finish`].
    pub fn finish(self) -> Result<Content> {
        match self {
            Self::Plain(upload) => upload.finish(),
            Self::Gzip(upload) => upload.finish(),
        }
    }
}

/// Reads a stored gzip as what it stands for. Whoever goes forward decodes it once; whoever goes back begins again.
pub(crate) struct Decoding {
    /// Bytes that it stands for.
    pub(crate) length: u64,
    decoder: Mutex<Option<Decoder>>,
}

struct Decoder {
    inflater: read::MultiGzDecoder<EncodedBytes>,
    /// Bytes that were decoded.
    position: u64,
}

struct EncodedBytes {
    reader: Arc<ContentReader>,
    offset: u64,
    piece: Bytes,
    /// Why the store gave no more; the decoder says only that it failed.
    failure: Option<ContentError>,
}

impl Decoding {
    pub(crate) const fn new(length: u64) -> Self {
        Self { length, decoder: Mutex::new(None) }
    }

    /// At most `max_bytes` from `offset`, and no more than a piece; empty at the end.
    pub(crate) fn read(&self, reader: &Arc<ContentReader>, offset: u64, max_bytes: usize) -> Result<Bytes> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = left.min(max_bytes).min(PIECE_BYTES);
        if wanted == 0 {
            return Ok(Bytes::new());
        }
        let mut kept = self.decoder.lock();
        let behind = |decoder: &Decoder| decoder.position <= offset;
        let mut decoder = kept.take().filter(behind).unwrap_or_else(|| Decoder::new(reader));
        while decoder.position < offset {
            let passed_over = usize::try_from(offset - decoder.position).unwrap_or(usize::MAX);
            decoder.next_bytes(passed_over.min(PIECE_BYTES))?;
        }
        let bytes = decoder.next_bytes(wanted)?;
        // A document may have very many, each read to its end.
        *kept = Some(decoder).filter(|decoder| decoder.position < self.length);
        Ok(bytes)
    }
}

impl Decoder {
    fn new(reader: &Arc<ContentReader>) -> Self {
        let reader = Arc::clone(reader);
        let encoded = EncodedBytes { reader, offset: 0, piece: Bytes::new(), failure: None };
        Self { inflater: read::MultiGzDecoder::new(encoded), position: 0 }
    }

    fn next_bytes(&mut self, count: usize) -> Result<Bytes> {
        let mut bytes = vec![0; count];
        if self.inflater.read_exact(&mut bytes).is_err() {
            let encoded = self.inflater.get_mut();
            let damaged = || ContentError::damaged("content", hex(encoded.reader.digest()));
            return Err(encoded.failure.take().unwrap_or_else(damaged));
        }
        self.position += count as u64;
        Ok(bytes.into())
    }
}

impl Read for EncodedBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            self.piece = self.reader.read(self.offset, READ_BYTES).map_err(|error| {
                self.failure = Some(error);
                io::Error::from(io::ErrorKind::Other)
            })?;
            self.offset += self.piece.len() as u64;
        }
        let count = self.piece.len().min(buffer.len());
        let taken = self.piece.split_to(count);
        let (part, _) = buffer.split_at_mut(count);
        part.copy_from_slice(&taken);
        Ok(count)
    }
}
