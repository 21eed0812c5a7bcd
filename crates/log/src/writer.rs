//! The end of the log, where frames are laid.

use std::path::PathBuf;

use bytes::Bytes;

use crate::buffer::{AlignedBuffer, BlockStream};
use crate::extent::FIRST_FRAME;
use crate::frame::{FrameHeader, Seed, length_of};
use crate::keeper::Prepared;
use crate::system::{FileHandle, System};
use crate::{LogError, LogOptions};

/// Groups up to this size are one write; larger ones several, before the one sync.
const BUFFER_BYTES: usize = 4 << 20;

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
    pub(crate) fn new(options: &LogOptions, key: u64, at: Prepared, offset: u64, unfinished: &[u8]) -> Self {
        let mut buffer = AlignedBuffer::new(BUFFER_BYTES);
        if let Some(start) = buffer.bytes_mut().get_mut(..unfinished.len()) {
            start.copy_from_slice(unfinished);
        }
        let Prepared { number, path, file } = at;
        let (extent_bytes, sync) = (options.extent_bytes, options.sync);
        Self { key, number, path, file, extent_bytes, offset, buffer, sync }
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
        let Some(header) = FrameHeader::of(first, records, time_ms, seed) else {
            return Err(LogError::TooLarge { bytes: usize::MAX, limit_bytes: u32::MAX as usize });
        };
        let mut stream = BlockStream::new(&*self.file, &mut self.buffer, self.offset);
        let mut write = || {
            stream.put(&header.encode(seed))?;
            for record in records {
                stream.put(&length_of(record))?;
                stream.put(record)?;
            }
            let unpadded = header.header_bytes() as u64 + u64::from(header.payload_bytes);
            let padding = usize::try_from(header.frame_bytes() - unpadded).unwrap_or(0);
            stream.put([0; 8].get(..padding).unwrap_or_default())
        };
        write().and_then(|()| stream.finish()).map_err(|error| LogError::io("write", &self.path, error))?;
        if self.sync {
            self.file.sync_data().map_err(|error| LogError::io("sync", &self.path, error))?;
        }
        self.offset += header.frame_bytes();
        Ok(())
    }
}
