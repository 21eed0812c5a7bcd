//! The end of the log, where frames are laid.

use std::path::PathBuf;

use bytes::Bytes;
use scrinium_assertion::{always, never};

use crate::buffer::{AlignedBuffer, BLOCK_BYTES, BlockStream};
use crate::extent::FIRST_FRAME;
use crate::frame::{FRAME_ALIGNMENT, FrameHeader, Seed, length_of};
use crate::keeper::Prepared;
use crate::system::{FileHandle, System};
use crate::{LogError, LogOptions};

/// Groups up to this size are one write; larger ones several, before the one sync.
const BUFFER_BYTES: usize = 4 << 20;

/// What a frame is filled up with.
static PADDING: [u8; FRAME_ALIGNMENT] = [0; FRAME_ALIGNMENT];

/// The extent that is written, and where its next frame goes.
///
/// Writes are whole blocks: the block in which the last frame ended is kept in memory and written
/// again, with the same bytes, under the next frame. So no write has to read from the disk first.
pub(crate) struct Writer {
    key: u64,
    number: u64,
    path: PathBuf,
    file: Box<dyn FileHandle>,
    extent_bytes: u64,
    offset: u64,
    buffer: AlignedBuffer,
    sync: bool,
}

impl Writer {
    /// Goes on at `offset`; `unfinished` is what is before it in its block.
    pub(crate) fn new(
        options: &LogOptions,
        key: u64,
        at: Prepared,
        offset: u64,
        unfinished: &[u8],
    ) -> Result<Self, LogError> {
        always!(
            unfinished.len() as u64 == offset % BLOCK_BYTES,
            "what is carried on is the beginning of the block that the next frame goes to",
            "{} bytes before {offset}",
            unfinished.len()
        )?;
        let mut buffer = AlignedBuffer::new(BUFFER_BYTES);
        let start = buffer.bytes_mut().get_mut(..unfinished.len());
        start.ok_or_else(|| never!("the buffer holds a block"))?.copy_from_slice(unfinished);
        let Prepared { number, path, file } = at;
        let (extent_bytes, sync) = (options.extent_bytes, options.sync);
        Ok(Self { key, number, path, file, extent_bytes, offset, buffer, sync })
    }

    /// Whether the extent is still what its name leads to. What is written to a file that was deleted, or whose
    /// file system was put aside, would be acknowledged and lost.
    pub(crate) fn check_there(&self, system: &dyn System) -> Result<(), LogError> {
        match system.leads_to(&self.path, &*self.file) {
            Ok(true) => Ok(()),
            Ok(false) => Err(LogError::io("find", &self.path, std::io::ErrorKind::NotFound.into())),
            Err(error) => Err(LogError::io("find", &self.path, error)),
        }
    }

    /// Whether a frame of that size still fits into the extent.
    pub(crate) fn takes(&self, frame_bytes: u64) -> bool {
        self.offset.saturating_add(frame_bytes) <= self.extent_bytes
    }

    /// Leaves the rest of this extent unused and goes on in the next.
    pub(crate) fn go_on_in(&mut self, next: Prepared) {
        self.number = next.number;
        self.path = next.path;
        self.file = next.file;
        self.offset = FIRST_FRAME;
    }

    /// Writes and syncs one frame; after an error nothing more may be written.
    pub(crate) fn append(&mut self, first: u64, records: &[Bytes], time_ms: u64) -> Result<(), LogError> {
        let seed = Seed::new(self.key, self.number, self.offset);
        let header = FrameHeader::of(first, records, time_ms, seed);
        let header = header.ok_or_else(|| never!("a group has records, and an extent's length at most"))?;
        let end = self.offset.saturating_add(header.frame_bytes());
        always!(
            self.offset.is_multiple_of(FRAME_ALIGNMENT as u64) && end <= self.extent_bytes,
            "a frame is aligned, and lies within its extent",
            "{} to {end} of {}",
            self.offset,
            self.path.display()
        )?;
        let encoded = header.encode(seed)?;
        let unpadded = header.header_bytes() as u64 + u64::from(header.payload_bytes);
        let padding = usize::try_from(header.frame_bytes() - unpadded).ok();
        let padding = padding.and_then(|padding| PADDING.get(..padding));
        let padding =
            padding.ok_or_else(|| never!("the padding of a frame is shorter than its alignment"))?;
        let mut stream = BlockStream::new(&*self.file, &mut self.buffer, self.offset);
        let mut write = || {
            stream.put(&encoded)?;
            for record in records {
                stream.put(&length_of(record))?;
                stream.put(record)?;
            }
            stream.put(padding)
        };
        let written = write().and_then(|()| stream.finish());
        let written = written.map_err(|error| LogError::io("write", &self.path, error))?;
        always!(written == end, "a frame ends where its header says", "at {written}, not {end}")?;
        if self.sync {
            self.file.sync_data().map_err(|error| LogError::io("sync", &self.path, error))?;
        }
        self.offset = end;
        Ok(())
    }
}
