//! A message between where it comes from and the database: in memory while it is small, else in a temporary file, so that
//! what takes messages needs the same memory whatever their size.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use scrinium_database::{Database, DatabaseError, NewAttachment, SOURCE_START, WIRE_SIZE};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::message::{SOURCE_ATTACHMENT, SOURCE_CONTENT_TYPE};

/// A message of more bytes than this is kept in a temporary file.
pub const MEMORY_BYTES: usize = 4 << 20;

/// Read of a message at a time.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// Written to a temporary file at a time.
const WRITTEN_BYTES: usize = 256 * 1024;

/// Where large files lie that need not outlive a restart (Filesystem Hierarchy Standard §5.15); `/tmp` may be memory.
const LARGE_FILES: &str = "/var/tmp";

/// The bytes of a message as they came, of any length.
#[derive(Clone)]
pub struct MessageSource {
    /// Stands before what is kept, in the place of that many of its bytes.
    beginning: Bytes,
    replaced: u64,
    kept: Kept,
}

#[derive(Clone)]
enum Kept {
    Memory(Bytes),
    /// A temporary file that nobody else sees, and that is gone with the last of these.
    File {
        file: Arc<File>,
        length: u64,
    },
}

impl MessageSource {
    /// Bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.beginning.len() as u64 + self.kept.len().saturating_sub(self.replaced)
    }

    /// The same message with another beginning, in the place of this many bytes. Nothing else of it is copied.
    #[must_use]
    pub fn with_beginning(self, beginning: Bytes, replaced_bytes: u64) -> Self {
        let stands = self.beginning.len() as u64;
        let left = self.beginning.slice(self.beginning.len().min(length_of(replaced_bytes))..);
        let beginning = if left.is_empty() { beginning } else { [beginning, left].concat().into() };
        Self { beginning, replaced: self.replaced + replaced_bytes.saturating_sub(stands), kept: self.kept }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes from `position` on, at most the number asked for; none at the end.
    ///
    /// # Errors
    /// What reading the temporary file says.
    pub fn piece(&self, position: u64, most_bytes: usize) -> io::Result<Bytes> {
        let stands = self.beginning.len() as u64;
        let Some(within) = stands.checked_sub(position).filter(|within| *within > 0) else {
            return self.kept.piece(self.replaced + (position - stands), most_bytes);
        };
        let start = self.beginning.len() - length_of(within);
        let first = self.beginning.slice(start..self.beginning.len().min(start.saturating_add(most_bytes)));
        if first.len() == most_bytes {
            return Ok(first);
        }
        let rest = self.kept.piece(self.replaced, most_bytes - first.len())?;
        Ok([first, rest].concat().into())
    }

    /// All bytes, of a message that is known to be small.
    ///
    /// # Errors
    /// As [`MessageSource::piece`].
    pub fn bytes(&self) -> io::Result<Bytes> {
        self.piece(0, usize::MAX)
    }

    /// Notes in the fields of its memo how long it is where each line ends in CR LF, if its own lines do not: so long it is to a mail
    /// program.
    ///
    /// # Errors
    /// As [`MessageSource::piece`].
    pub fn note_wire_size(&self, fields: &mut Map<String, Value>) -> io::Result<()> {
        let start = fields.get(SOURCE_START).and_then(Value::as_u64).unwrap_or(0);
        let (mut position, mut lone_feeds, mut before) = (start, 0, 0);
        loop {
            let piece = self.piece(position, PIECE_BYTES)?;
            let Some(last) = piece.last().copied() else { break };
            for place in memchr::memchr_iter(b'\n', &piece) {
                let previous = place.checked_sub(1).and_then(|place| piece.get(place).copied());
                lone_feeds += u64::from(previous.unwrap_or(before) != b'\r');
            }
            position += piece.len() as u64;
            before = last;
        }
        if lone_feeds > 0 {
            let bytes = self.len().saturating_sub(start) + lone_feeds;
            fields.insert(WIRE_SIZE.to_owned(), Value::from(bytes));
        }
        Ok(())
    }

    /// Reads the message from its beginning.
    #[must_use]
    pub fn reader(&self) -> MessageReader {
        MessageReader { source: self.clone(), position: 0 }
    }
}

impl Kept {
    fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
        }
    }

    fn piece(&self, position: u64, most_bytes: usize) -> io::Result<Bytes> {
        match self {
            Self::Memory(bytes) => {
                let start = length_of(position).min(bytes.len());
                Ok(bytes.slice(start..bytes.len().min(start.saturating_add(most_bytes))))
            }
            Self::File { file, length } => {
                let left = length_of(length.saturating_sub(position));
                let mut piece = vec![0; left.min(most_bytes)];
                file.read_exact_at(&mut piece, position)?;
                Ok(Bytes::from(piece))
            }
        }
    }
}

fn length_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl From<Kept> for MessageSource {
    fn from(kept: Kept) -> Self {
        Self { beginning: Bytes::new(), replaced: 0, kept }
    }
}

impl From<Bytes> for MessageSource {
    fn from(bytes: Bytes) -> Self {
        Kept::Memory(bytes).into()
    }
}

impl fmt::Debug for MessageSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a message of {} bytes", self.len())
    }
}

/// Reads a message from its beginning.
#[derive(Debug)]
pub struct MessageReader {
    source: MessageSource,
    position: u64,
}

impl Read for MessageReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let source = &self.source;
        let stands = source.beginning.len() as u64;
        let read = if self.position < stands {
            source.beginning.get(length_of(self.position)..).unwrap_or_default().read(into)?
        } else {
            let position = source.replaced + (self.position - stands);
            match &source.kept {
                Kept::Memory(bytes) => bytes.get(length_of(position)..).unwrap_or_default().read(into)?,
                Kept::File { file, .. } => file.read_at(into, position)?,
            }
        };
        self.position += read as u64;
        Ok(read)
    }
}

/// A message that is coming.
pub struct SourceWriter {
    /// What is not in the file.
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
    limit_bytes: u64,
    /// More than this goes into the file.
    memory_bytes: usize,
    /// What is gathered before it is written to the file.
    written_bytes: usize,
    is_too_large: bool,
}

impl SourceWriter {
    /// For a message of at most this number of bytes, of which [`MEMORY_BYTES`] may be in memory.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            memory: Vec::new(),
            file: None,
            length: 0,
            limit_bytes,
            memory_bytes: MEMORY_BYTES,
            written_bytes: WRITTEN_BYTES,
            is_too_large: false,
        }
    }

    /// For a message of any length, whose caller says when it leaves memory, and gives pieces that are worth writing.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { memory_bytes: usize::MAX, ..Self::new(u64::MAX) }
    }

    /// What arrived goes into a file with the next bytes, and all that follows at once.
    pub fn leave_memory(&mut self) {
        (self.memory_bytes, self.written_bytes) = (0, 0);
    }

    /// Whether some of it is in a file.
    #[must_use]
    pub const fn is_in_file(&self) -> bool {
        self.file.is_some()
    }

    /// Whether nothing arrived yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bytes that have come.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.length
    }

    /// Whether the message was found to be larger than it may be. Nothing of it is kept then.
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Takes the next bytes. Where they go into the file, it blocks for as long as the disk does.
    ///
    /// # Errors
    /// The temporary file cannot be made or written.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.is_too_large |= self.length > self.limit_bytes;
        if self.is_too_large {
            (self.memory, self.file) = (Vec::new(), None);
            return Ok(());
        }
        self.memory.extend_from_slice(bytes);
        let most = if self.file.is_some() { self.written_bytes } else { self.memory_bytes };
        if self.memory.len() > most { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(temporary_file()?),
        };
        file.write_all(&self.memory).map_err(SpoolError::of)?;
        self.memory.clear();
        self.memory.shrink_to(self.written_bytes);
        Ok(())
    }

    /// The message, without as many bytes at its end.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(mut self, dropped_bytes: usize) -> io::Result<MessageSource> {
        let length = self.length.saturating_sub(dropped_bytes as u64);
        if self.file.is_some() {
            self.write_out()?;
        }
        let Some(file) = self.file else {
            self.memory.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            return Ok(Kept::Memory(self.memory.into()).into());
        };
        file.set_len(length).map_err(SpoolError::of)?;
        Ok(Kept::File { file: Arc::new(file), length }.into())
    }
}

/// Stores a message piece by piece, for a document to refer to. Blocks.
///
/// # Errors
/// What the store reports, and what reading the message gives.
pub fn attachment_of(
    database: &Arc<Database>,
    source: &MessageSource,
) -> Result<NewAttachment, DatabaseError> {
    let unreadable = |error: io::Error| DatabaseError::Internal { reason: error.to_string() };
    let mut upload = database.upload(SOURCE_CONTENT_TYPE);
    let mut position = 0;
    loop {
        let piece = source.piece(position, PIECE_BYTES).map_err(unreadable)?;
        if piece.is_empty() {
            break;
        }
        upload.write(&piece)?;
        position += piece.len() as u64;
    }
    Ok(NewAttachment {
        name: SOURCE_ATTACHMENT.to_owned(),
        content_type: SOURCE_CONTENT_TYPE.to_owned(),
        content: upload.finish()?,
    })
}

/// A temporary file could not be written, so that no large message can be read.
#[derive(Debug, Error)]
#[error("cannot write a temporary file in {folder}, which a large message needs: {error}. TMPDIR names another folder", folder = folder.display())]
pub(crate) struct SpoolError {
    folder: PathBuf,
    error: io::Error,
}

impl SpoolError {
    pub(crate) fn of(error: io::Error) -> io::Error {
        io::Error::new(error.kind(), Self { folder: folder_of_large_files(), error })
    }

    /// Whether an error is one of these.
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

/// A file without a name, gone when it is closed.
pub(crate) fn temporary_file() -> io::Result<File> {
    tempfile::tempfile_in(folder_of_large_files()).map_err(SpoolError::of)
}

fn folder_of_large_files() -> PathBuf {
    let is_named = std::env::var_os("TMPDIR").is_some_and(|folder| !folder.is_empty());
    let large = Path::new(LARGE_FILES);
    if !is_named && large.is_dir() { large.to_owned() } else { std::env::temp_dir() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_same_in_memory_and_in_a_file() {
        let bytes: Vec<u8> = (0..=250).cycle().take(MEMORY_BYTES + 3 * WRITTEN_BYTES + 5).collect();
        for length in [0, 1, MEMORY_BYTES, MEMORY_BYTES + 1, bytes.len()] {
            let whole = &bytes[..length];
            let mut writer = SourceWriter::new(u64::MAX);
            whole.chunks(100_000).for_each(|piece| writer.push(piece).unwrap());
            let dropped = length.min(2);
            let source = writer.finish(dropped).unwrap();
            let expected = &whole[..length - dropped];
            assert_eq!(matches!(source.kept, Kept::File { .. }), length > MEMORY_BYTES);
            assert_eq!((source.len(), source.is_empty()), (expected.len() as u64, expected.is_empty()));
            assert!(source.bytes().unwrap() == expected);
            let mut read = Vec::new();
            source.reader().take(length as u64).read_to_end(&mut read).unwrap();
            assert!(read == expected);
            let middle = expected.len() / 2;
            assert!(
                source.piece(middle as u64, 7).unwrap()
                    == expected[middle..].chunks(7).next().unwrap_or_default()
            );
        }
        let mut writer = SourceWriter::in_memory();
        writer.push(&bytes).unwrap();
        assert!(!writer.is_in_file());
        writer.leave_memory();
        writer.push(b"end").unwrap();
        assert!(writer.is_in_file() && writer.memory.capacity() == 0);
        assert!(writer.finish(0).unwrap().bytes().unwrap() == [&bytes[..], b"end"].concat());
        let mut writer = SourceWriter::new(10);
        writer.push(&[b'a'; 11]).unwrap();
        assert!(writer.is_too_large());
    }

    #[test]
    fn a_message_with_another_beginning_is_read_like_any_other() {
        let text = b"Received: x\r\n\r\nbody\r\n";
        let in_memory = MessageSource::from(Bytes::from_static(text));
        let mut writer = SourceWriter::in_memory();
        writer.leave_memory();
        writer.push(text).unwrap();
        for source in [in_memory, writer.finish(0).unwrap()] {
            for (beginning, replaced) in [("", 0), ("A: b\r\n", 0), ("A: b\r\n", 13), ("A", 19), ("", 22)] {
                let expected = [beginning.as_bytes(), text.get(replaced..).unwrap_or_default()].concat();
                let other = source.clone().with_beginning(Bytes::from(beginning), replaced as u64);
                assert_eq!(
                    (other.len(), &other.bytes().unwrap()[..]),
                    (expected.len() as u64, &expected[..])
                );
                let mut read = Vec::new();
                other.reader().read_to_end(&mut read).unwrap();
                assert_eq!(read, expected);
                for most in [1, 2, 7] {
                    let mut pieces = Vec::new();
                    while let Some(piece) = Some(other.piece(pieces.len() as u64, most).unwrap())
                        .filter(|piece| !piece.is_empty())
                    {
                        pieces.extend_from_slice(&piece);
                    }
                    assert_eq!(pieces, expected);
                }
                let third = other.with_beginning(Bytes::from_static(b"Z"), 2);
                let expected = [b"Z", expected.get(2..).unwrap_or_default()].concat();
                assert_eq!(&third.bytes().unwrap()[..], &expected[..], "{beginning} {replaced}");
            }
        }
    }
}
