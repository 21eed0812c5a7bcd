//! Going through the frames of one extent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use scrinium_assertion::never;

use crate::LogError;
use crate::buffer::{BLOCK_BYTES, read_full};
use crate::extent::FIRST_FRAME;
use crate::frame::{FRAME_ALIGNMENT, FrameHeader, HEADER_BYTES, MAGIC, Seed};
use crate::system::{Access, FileHandle, System};

/// How much is read at once, in bytes. A frame that is longer is read whole.
const WINDOW_BYTES: usize = 256 << 10;

/// What lies at one place of an extent.
pub(crate) enum FrameFinding {
    /// A whole frame.
    Frame(FrameHeader, Bytes),
    /// The header of a frame whose payload is not what was written.
    BrokenPayload(FrameHeader),
    /// No header. If it looks like one, the number of the first record that it claims.
    Nothing(Option<u64>),
}

/// One extent, read through a window.
pub(crate) struct Walk {
    pub(crate) path: PathBuf,
    file: Box<dyn FileHandle>,
    key: u64,
    extent: u64,
    extent_bytes: u64,
    window_start: u64,
    window: Bytes,
    /// Blocks that the device does not read, by their offsets, where these are passed over; they count as zeros.
    unreadable: Option<BTreeSet<u64>>,
}

impl Walk {
    pub(crate) fn open(
        system: &dyn System,
        path: &Path,
        key: u64,
        extent: u64,
        extent_bytes: u64,
    ) -> Result<Self, LogError> {
        let file = match system.open(path, Access::Read, false) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(LogError::Missing { file: path.to_owned() });
            }
            opened => opened.map_err(|error| LogError::io("open", path, error))?,
        };
        let path = path.to_owned();
        let window = Bytes::new();
        Ok(Self { path, file, key, extent, extent_bytes, window_start: 0, window, unreadable: None })
    }

    /// From now on what the device does not read is no error, and counts as zeros.
    pub(crate) fn pass_over_unreadable(&mut self) {
        self.unreadable.get_or_insert_default();
    }

    /// The blocks that the device did not read so far, by their offsets.
    pub(crate) fn unreadable(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.unreadable.iter().flatten().copied()
    }

    /// The length of the file, which should be that of every extent.
    pub(crate) fn len_bytes(&self) -> Result<u64, LogError> {
        self.file.len_bytes().map_err(|error| LogError::io("read", &self.path, error))
    }

    pub(crate) fn extent_bytes(&self) -> u64 {
        self.extent_bytes
    }

    /// `length` bytes at `offset`, without a copy; fewer at the end of the extent.
    pub(crate) fn bytes(&mut self, offset: u64, length: usize) -> Result<Bytes, LogError> {
        let left = usize::try_from(self.extent_bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = length.min(left);
        let within = offset.checked_sub(self.window_start).and_then(|within| usize::try_from(within).ok());
        if let Some(within) = within.filter(|within| within.saturating_add(length) <= self.window.len()) {
            return Ok(self.window.slice(within..within + length));
        }
        let mut fresh = BytesMut::zeroed(WINDOW_BYTES.max(length).min(left));
        let read = match (read_full(&*self.file, &mut fresh, offset), &mut self.unreadable) {
            (Err(_), Some(unreadable)) => read_around(&*self.file, &mut fresh, offset, unreadable),
            (read, _) => read.map_err(|error| LogError::io("read", &self.path, error))?,
        };
        fresh.truncate(read);
        self.window = fresh.freeze();
        self.window_start = offset;
        Ok(self.window.slice(..length.min(read)))
    }

    /// What lies at `offset`. No length is believed before the header's checksum is right.
    pub(crate) fn frame(&mut self, offset: u64) -> Result<FrameFinding, LogError> {
        let head = self.bytes(offset, HEADER_BYTES)?;
        let Some(head) = head.first_chunk::<HEADER_BYTES>() else { return Ok(FrameFinding::Nothing(None)) };
        let seed = Seed::new(self.key, self.extent, offset);
        let Some(header) = FrameHeader::decode(head, seed) else {
            return Ok(FrameFinding::Nothing(FrameHeader::claimed_first(head)));
        };
        let length = usize::try_from(header.frame_bytes()).unwrap_or(usize::MAX);
        let mut frame = self.bytes(offset, length)?;
        if frame.len() < length {
            return Ok(FrameFinding::BrokenPayload(header));
        }
        let mut payload = frame.split_off(header.header_bytes());
        payload.truncate(header.payload_bytes as usize);
        if header.matches(&payload, seed) {
            return Ok(FrameFinding::Frame(header, payload));
        }
        Ok(FrameFinding::BrokenPayload(header))
    }

    /// The header of the extent's first frame, if there is one.
    pub(crate) fn first_header(&mut self) -> Result<Option<FrameHeader>, LogError> {
        let head = self.bytes(FIRST_FRAME, HEADER_BYTES)?;
        let seed = Seed::new(self.key, self.extent, FIRST_FRAME);
        Ok(head.first_chunk().and_then(|head| FrameHeader::decode(head, seed)))
    }

    /// Whether the header of any frame of record `from` or later lies at or after `offset`.
    pub(crate) fn any_frame_from(&mut self, offset: u64, from: u64) -> Result<bool, LogError> {
        Ok(self.find_frame_from(offset, from)?.is_some())
    }

    /// Where the first header of a frame of record `from` or later lies, at or after `offset`.
    pub(crate) fn find_frame_from(&mut self, mut offset: u64, from: u64) -> Result<Option<u64>, LogError> {
        while offset.saturating_add(HEADER_BYTES as u64) <= self.extent_bytes {
            let window = self.bytes(offset, WINDOW_BYTES)?;
            if window.len() < HEADER_BYTES {
                break;
            }
            let mut at = 0_usize;
            while let Some(rest) = window.get(at..).filter(|rest| rest.len() >= HEADER_BYTES) {
                let place = offset + at as u64;
                if rest.starts_with(&MAGIC)
                    && let Some(head) = rest.first_chunk()
                    && let Some(header) = FrameHeader::decode(head, Seed::new(self.key, self.extent, place))
                    && header.first >= from
                {
                    return Ok(Some(place));
                }
                at += FRAME_ALIGNMENT;
            }
            offset += at as u64;
        }
        Ok(None)
    }
}

/// Reads block by block, with zeros for those that the device does not read. Returns how much there is.
fn read_around(
    file: &dyn FileHandle,
    bytes: &mut [u8],
    offset: u64,
    unreadable: &mut BTreeSet<u64>,
) -> usize {
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        let at = offset + read as u64;
        let within = usize::try_from(BLOCK_BYTES - at % BLOCK_BYTES).unwrap_or(rest.len());
        let length = within.min(rest.len());
        let Some(piece) = rest.get_mut(..length) else {
            never!("a piece of a block is no longer than what is left");
            break;
        };
        match read_full(file, piece, at) {
            Ok(found) if found < length => return read + found,
            Ok(_) => {}
            Err(_) => {
                piece.fill(0);
                unreadable.insert(at - at % BLOCK_BYTES);
            }
        }
        read += length;
    }
    read
}
