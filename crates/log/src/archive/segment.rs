//! A segment: the frames of one extent as they lie in it, in a file of the archive.
//!
//! `FORMAT.md` describes every byte.

use std::path::{Path, PathBuf};

use bytes::{Buf, BufMut};
use scrinium_assertion::{Fault, always, never};
use xxhash_rust::xxh3::xxh3_64;

use crate::LogError;
use crate::buffer::{AlignedBuffer, BLOCK, BlockStream, read_full, write_all};
use crate::extent::{self, FIRST_FRAME};
use crate::recovery::Live;
use crate::system::{Access, System};
use crate::walk::{FrameFinding, Walk};

/// A segment that is being written; left by a crash, it means nothing.
const UNFINISHED: &str = "segment.new";

const MAGIC: [u8; 8] = *b"SCRIARCH";
const FORMAT: u32 = 1;
const ENCODED: usize = 80;

/// Written at once.
const BUFFER_BYTES: usize = 1 << 20;

/// What the first block of a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// The log's key, which seeds the frames' checksums, as the extent's number does.
    pub(crate) key: u64,
    pub(crate) extent: u64,
    /// The first record, and the one after the last.
    pub(crate) first: u64,
    pub(crate) next: u64,
    /// Where the last frame ends.
    pub(crate) end: u64,
    /// When the first and the last group that tell it were written, in milliseconds since 1970; 0: none tells.
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
}

/// An extent, or its beginning, to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) live: Live,
    /// The record after the last to copy, which begins no frame before it.
    pub(crate) next: u64,
}

/// The log that is copied from.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) dir: PathBuf,
    pub(crate) key: u64,
    pub(crate) extent_bytes: u64,
}

impl SegmentHeader {
    fn encode(&self, block: &mut [u8]) -> Result<(), Fault> {
        block.fill(0);
        let header = block.first_chunk_mut::<ENCODED>();
        let header = header.ok_or_else(|| never!("the header of a segment fits into its block"))?;
        let mut fields = header.as_mut_slice();
        fields.put_slice(&MAGIC);
        fields.put_u32_le(FORMAT);
        fields.put_u32_le(0);
        let values = [self.key, self.extent, self.first, self.next, self.end, self.first_ms, self.last_ms];
        for value in values {
            fields.put_u64_le(value);
        }
        let checksum = header.split_last_chunk::<8>().map_or(0, |(head, _)| xxh3_64(head));
        if let Some(field) = header.last_chunk_mut::<8>() {
            *field = checksum.to_le_bytes();
        }
        Ok(())
    }

    /// Reads a segment's header.
    pub(crate) fn read(system: &dyn System, path: &Path) -> Result<Self, LogError> {
        let opened = system.open(path, Access::Read, false);
        let file = opened.map_err(|error| LogError::io("open", path, error))?;
        let mut block = vec![0; BLOCK];
        read_full(&*file, &mut block, 0).map_err(|error| LogError::io("read", path, error))?;
        let damaged = LogError::Damaged {
            file: path.to_owned(),
            offset: 0,
            problem: "its header is not that of an archived segment",
        };
        let Some(header) = block.first_chunk::<ENCODED>() else { return Err(damaged) };
        let Some((head, checksum)) = header.split_last_chunk::<8>() else { return Err(damaged) };
        let Some(mut fields) = head.strip_prefix(&MAGIC) else { return Err(damaged) };
        if xxh3_64(head) != u64::from_le_bytes(*checksum) {
            return Err(damaged);
        }
        let found = fields.get_u32_le();
        if found != FORMAT {
            return Err(LogError::NewerFormat { file: path.to_owned(), found, supported: FORMAT });
        }
        fields.advance(4);
        Ok(Self {
            key: fields.get_u64_le(),
            extent: fields.get_u64_le(),
            first: fields.get_u64_le(),
            next: fields.get_u64_le(),
            end: fields.get_u64_le(),
            first_ms: fields.get_u64_le(),
            last_ms: fields.get_u64_le(),
        })
    }
}

/// Where the segments of a log lie: the key tells its log from those of other servers and from what the same
/// server wrote before it was restored.
pub(crate) fn folder(archive_dir: &Path, key: u64) -> PathBuf {
    archive_dir.join(format!("{key:016x}"))
}

pub(crate) fn path(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}.TXN"))
}

/// The first record in a segment's name; `None` for any other file.
pub(crate) fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".TXN")?;
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}

/// Copies what `job` says into a segment: whole frames that were checked, written, synced, read again and only
/// then given their name. Returns the segment's length in bytes.
pub(crate) fn copy(
    system: &dyn System,
    source: &Source,
    job: Job,
    archive_dir: &Path,
) -> Result<u64, LogError> {
    // The archive's own folder is nobody's to make here: where it is missing, a device may be.
    system.list(archive_dir).map_err(|error| LogError::io("list", archive_dir, error))?;
    let folder = folder(archive_dir, source.key);
    system.create_dir(&folder).map_err(|error| LogError::io("create", &folder, error))?;
    let unfinished = folder.join(UNFINISHED);
    let written = write(system, source, job, &unfinished).and_then(|header| {
        check(system, &unfinished, &header)?;
        Ok(header)
    });
    let header = match written {
        Ok(header) => header,
        Err(error) => {
            // Half a segment must not keep the space that others wait for.
            drop(system.remove(&unfinished));
            return Err(error);
        }
    };
    let path = path(&folder, header.first);
    system.rename(&unfinished, &path).map_err(|error| LogError::io("rename", &unfinished, error))?;
    system.sync_dir(&folder).map_err(|error| LogError::io("sync", &folder, error))?;
    Ok(header.end)
}

fn write(system: &dyn System, source: &Source, job: Job, to: &Path) -> Result<SegmentHeader, LogError> {
    let failed = |error| LogError::io("write", to, error);
    let number = job.live.number;
    let mut walk =
        Walk::open(system, &extent::path(&source.dir, number), source.key, number, source.extent_bytes)?;
    let file = system.open(to, Access::Create, true).map_err(|error| LogError::io("create", to, error))?;
    let mut buffer = AlignedBuffer::new(BUFFER_BYTES);
    let mut header = SegmentHeader {
        key: source.key,
        extent: number,
        first: job.live.first,
        next: job.live.first,
        end: FIRST_FRAME,
        first_ms: 0,
        last_ms: 0,
    };
    let mut stream = BlockStream::new(&*file, &mut buffer, FIRST_FRAME);
    while header.next < job.next {
        let length = pass_frame(&mut walk, &mut header)?;
        let frame = walk.bytes(header.end - length, usize::try_from(length).unwrap_or(usize::MAX))?;
        stream.put(&frame).map_err(failed)?;
    }
    let end = stream.finish().map_err(failed)?;
    always!(end == header.end, "a segment ends where its header says", "at {end}: {header:?}")?;
    always!(header.next == job.next, "an extent is copied up to the end of a group", "{header:?}, {job:?}")?;
    let mut block = AlignedBuffer::new(BLOCK);
    header.encode(block.bytes_mut())?;
    write_all(&*file, block.bytes(), 0).map_err(failed)?;
    file.sync_data().map_err(|error| LogError::io("sync", to, error))?;
    Ok(header)
}

/// Reads a segment from end to end.
pub(crate) fn check(system: &dyn System, path: &Path, header: &SegmentHeader) -> Result<(), LogError> {
    let damaged = |offset, problem| Err(LogError::Damaged { file: path.to_owned(), offset, problem });
    if SegmentHeader::read(system, path)? != *header {
        return damaged(0, "its header is not what was written");
    }
    let mut walk = Walk::open(system, path, header.key, header.extent, header.end)?;
    let mut found = SegmentHeader { next: header.first, end: FIRST_FRAME, ..*header };
    while found.next < header.next {
        pass_frame(&mut walk, &mut found)?;
    }
    if found == *header { Ok(()) } else { damaged(found.end, "it does not end where its header says") }
}

/// Goes past the frame that `reached` ends before; returns the frame's length.
fn pass_frame(walk: &mut Walk, reached: &mut SegmentHeader) -> Result<u64, LogError> {
    match walk.frame(reached.end)? {
        FrameFinding::Frame(frame, _) if frame.first == reached.next => {
            reached.next = frame.next();
            reached.end += frame.frame_bytes();
            if let Some(time_ms) = frame.time_ms {
                reached.last_ms = time_ms;
                if reached.first_ms == 0 {
                    reached.first_ms = time_ms;
                }
            }
            Ok(frame.frame_bytes())
        }
        _ => {
            let problem = "a frame is missing or is not what was written";
            Err(LogError::Damaged { file: walk.path.clone(), offset: reached.end, problem })
        }
    }
}
