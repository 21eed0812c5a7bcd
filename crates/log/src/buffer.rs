//! Memory that direct I/O accepts, and writing whole blocks from it.

use std::io::{self, ErrorKind};

use scrinium_assertion::{always, never};

use crate::system::FileHandle;

/// Writes begin and end on multiples of this, in the file and in memory.
pub(crate) const BLOCK: usize = 4096;

/// [`BLOCK`] as a file position.
pub(crate) const BLOCK_BYTES: u64 = BLOCK as u64;

/// A write that gets nowhere is given up after this many tries.
const TRIES_WITHOUT_PROGRESS: u32 = 3;

/// Zeroed memory that begins on a block boundary. It is made once and kept, since the first touch of
/// fresh memory costs more than the write that it is for.
pub(crate) struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    capacity: usize,
}

impl AlignedBuffer {
    /// `capacity` is rounded up to whole blocks.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.next_multiple_of(BLOCK).max(BLOCK);
        let memory = vec![0; capacity + BLOCK];
        // Without an answer the start stays unaligned, and direct I/O falls back to the page cache.
        let start = memory.as_ptr().align_offset(BLOCK);
        let start = if start < BLOCK { start } else { 0 };
        Self { memory, start, capacity }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..self.start + self.capacity).unwrap_or_else(|| {
            never!("a buffer has the capacity that it was made with");
            &[]
        })
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.start..self.start + self.capacity).unwrap_or_else(|| {
            never!("a buffer has the capacity that it was made with");
            &mut []
        })
    }
}

/// Writes all of `bytes`, whole blocks, however little the system takes at a time.
pub(crate) fn write_all(file: &dyn FileHandle, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    let mut tries = 0;
    while !bytes.is_empty() {
        // A direct write must go on at a block boundary; repeating part of a block is harmless.
        let written = match file.write_at(bytes, offset) {
            Ok(written) => {
                always!(written <= bytes.len(), "no more is written than was given")
                    .map_err(io::Error::other)?;
                (written / BLOCK) * BLOCK
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        tries = if written == 0 { tries + 1 } else { 0 };
        if tries >= TRIES_WITHOUT_PROGRESS {
            return Err(ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
        offset += written as u64;
    }
    Ok(())
}

/// Fills `buffer` from `offset`; answers how much there was before the file's end.
pub(crate) fn read_full(file: &dyn FileHandle, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    let mut interrupted = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted && interrupted < 100 => interrupted += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Lays bytes one after another into whole blocks of a file, through a buffer.
pub(crate) struct BlockStream<'a> {
    file: &'a dyn FileHandle,
    buffer: &'a mut AlignedBuffer,
    /// How much of the buffer is filled.
    filled: usize,
    /// Where in the file the buffer's beginning belongs.
    at: u64,
}

impl<'a> BlockStream<'a> {
    /// Begins at `offset`, of whose block the first bytes are already in the buffer.
    pub(crate) fn new(file: &'a dyn FileHandle, buffer: &'a mut AlignedBuffer, offset: u64) -> Self {
        let within = offset % BLOCK_BYTES;
        #[allow(clippy::cast_possible_truncation, reason = "it is less than a block")]
        let filled = within as usize;
        Self { file, buffer, filled, at: offset - within }
    }

    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let free = self.buffer.bytes_mut().get_mut(self.filled..).filter(|free| !free.is_empty());
            let Some(free) = free else { return Err(no_room()) };
            let fits = free.len().min(bytes.len());
            let (now, later) = bytes.split_at(fits);
            let Some(target) = free.get_mut(..fits) else { return Err(no_room()) };
            target.copy_from_slice(now);
            self.filled += fits;
            bytes = later;
            if self.filled == self.buffer.capacity {
                write_all(self.file, self.buffer.bytes(), self.at)?;
                self.at += self.filled as u64;
                self.filled = 0;
            }
        }
        Ok(())
    }

    /// Writes the rest, the last block filled up with zeros, and leaves that block's beginning in the buffer.
    /// Returns where in the file the bytes that were put end.
    pub(crate) fn finish(self) -> io::Result<u64> {
        let whole = self.filled.next_multiple_of(BLOCK);
        self.buffer.bytes_mut().get_mut(self.filled..whole).ok_or_else(no_room)?.fill(0);
        write_all(self.file, self.buffer.bytes().get(..whole).ok_or_else(no_room)?, self.at)?;
        let unfinished = (self.filled / BLOCK) * BLOCK;
        self.buffer.bytes_mut().copy_within(unfinished..self.filled, 0);
        Ok(self.at + self.filled as u64)
    }
}

fn no_room() -> io::Error {
    io::Error::other(never!("a stream fills no more than its buffer"))
}
