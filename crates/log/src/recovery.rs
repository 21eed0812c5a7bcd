//! Opening: what is in the directory, where the log ends, and making that end firm.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use scrinium_assertion::always;

use crate::buffer::{AlignedBuffer, BLOCK, BLOCK_BYTES, BlockStream};
use crate::control::{self, Control, ControlFile};
use crate::extent::{self, ExtentHeader, FIRST_FRAME};
use crate::frame::{FRAME_ALIGNMENT, HEADER_BYTES};
use crate::keeper::{Prepared, Stock};
use crate::system::{Access, System};
use crate::walk::{FrameFinding, Walk};
use crate::{DirectIo, LogError, LogOptions, Recovery, Sequence, TornTail};

/// An extent that holds records, or will hold the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) number: u64,
    /// The number of its first record, or of the next one if it holds none yet.
    pub(crate) first: u64,
}

/// Where the log ends.
#[derive(Clone, Copy, Debug)]
struct End {
    offset: u64,
    next: u64,
    /// Where the last whole frame of that extent begins, if it has one.
    last_frame: Option<u64>,
}

/// What opening found, ready to be written on.
pub(crate) struct Opened {
    pub(crate) stock: Stock,
    /// In order; the last is the one that is written.
    pub(crate) live: VecDeque<Live>,
    /// That last one, and where in it the next frame goes.
    pub(crate) active: Prepared,
    pub(crate) offset: u64,
    /// What lies before that in its block.
    pub(crate) unfinished: Bytes,
    pub(crate) recovery: Recovery,
}

/// Opens the log in a directory, or makes one.
pub(crate) fn open(system: Arc<dyn System>, options: &LogOptions) -> Result<Opened, LogError> {
    let dir = options.dir.as_path();
    let names = system.list(dir).map_err(|error| LogError::io("list", dir, error))?;
    let numbers: Vec<u64> = names.iter().filter_map(|name| extent::number(name)).collect();
    let control = match ControlFile::open(&*system, dir)? {
        Some(control) => control,
        None if numbers.is_empty() => create(&*system, options)?,
        None => return Err(LogError::Missing { file: dir.join(control::NAME) }),
    };
    if names.iter().any(|name| name == extent::UNFINISHED) {
        let unfinished = dir.join(extent::UNFINISHED);
        system.remove(&unfinished).map_err(|error| LogError::io("delete", &unfinished, error))?;
    }
    let mut stock = Stock {
        system,
        dir: dir.to_owned(),
        direct: options.direct_io == DirectIo::Auto,
        max_extents: max_extents(options, control.content().extent_bytes)?,
        max_bytes: options.max_bytes.unwrap_or(u64::MAX),
        control,
        spares: Vec::new(),
        spare_extents: options.spare_extents,
        ready: VecDeque::new(),
        files: Arc::default(),
    };
    collect_spares(&mut stock, &numbers)?;
    if stock.control.content().last_extent < stock.control.content().first_extent {
        stock.prepare()?;
    }
    let (live, unused) = used_extents(&stock)?;
    let (Some(oldest), Some(newest)) = (live.front().copied(), live.back().copied()) else {
        let (file, problem) = (dir.join(control::NAME), "it names no extent");
        return Err(LogError::Damaged { file, offset: 0, problem });
    };
    let (end, cut) = find_end(&stock, newest, &unused)?;
    for number in unused {
        let prepared = open_to_write(&stock, number)?;
        stock.ready.push_back(prepared);
    }
    Ok(Opened {
        active: open_to_write(&stock, newest.number)?,
        offset: end.offset,
        unfinished: unfinished_block(&stock, newest, &end)?,
        recovery: Recovery { first: Sequence(oldest.first), next: Sequence(end.next), cut },
        stock,
        live,
    })
}

/// A log that exists has its own size of extents.
fn max_extents(options: &LogOptions, extent_bytes: u64) -> Result<u64, LogError> {
    let options = LogOptions { extent_bytes, ..options.clone() };
    options.check_bound()?;
    Ok(options.max_extents().unwrap_or(u64::MAX))
}

fn open_to_write(stock: &Stock, number: u64) -> Result<Prepared, LogError> {
    let path = extent::path(&stock.dir, number);
    let file = stock.system.open(&path, Access::Write, stock.direct);
    let file = file.map_err(|error| LogError::io("open", &path, error))?;
    Ok(Prepared { number, path, file })
}

fn create(system: &dyn System, options: &LogOptions) -> Result<ControlFile, LogError> {
    let key = system.random().map_err(|error| LogError::io("make a key for", &options.dir, error))?;
    let content = Control {
        generation: 1,
        key,
        extent_bytes: options.extent_bytes,
        first_extent: 1,
        last_extent: 0,
        base: options.first.0.max(1),
        closed_at: 0,
    };
    ControlFile::create(system, &options.dir, content)
}

/// Files of extents that the control file does not name: released before a crash, or about to be named.
fn collect_spares(stock: &mut Stock, numbers: &[u64]) -> Result<(), LogError> {
    let Control { key, extent_bytes, first_extent, last_extent, .. } = *stock.control.content();
    for &number in numbers.iter().filter(|number| !(first_extent..=last_extent).contains(*number)) {
        let path = extent::path(&stock.dir, number);
        let mut walk = Walk::open(&*stock.system, &path, key, number, extent_bytes)?;
        // A control file of an older backup would have its newer extents taken for free ones.
        if number > last_extent && (number > last_extent + 1 || walk.first_header()?.is_some()) {
            let problem = "the control file does not name this extent; is it an older copy?";
            return Err(LogError::Damaged { file: path, offset: 0, problem });
        }
        // One that was never part of the log may not be whole on the device, whatever the page cache shows.
        if number < first_extent && walk.len_bytes()? == extent_bytes {
            stock.keep_or_delete(path)?;
        } else {
            stock.system.remove(&path).map_err(|error| LogError::io("delete", &path, error))?;
        }
    }
    Ok(())
}

/// Checks every extent's first block and tells those that hold records from those that do not yet.
fn used_extents(stock: &Stock) -> Result<(VecDeque<Live>, Vec<u64>), LogError> {
    let Control { first_extent, last_extent, base, .. } = *stock.control.content();
    let mut live = VecDeque::new();
    let mut unused = Vec::new();
    for number in first_extent..=last_extent {
        let mut walk = open_extent(stock, number)?;
        let Some(header) = walk.first_header()? else {
            unused.push(number);
            continue;
        };
        if let Some(empty) = unused.first() {
            let file = extent::path(&stock.dir, *empty);
            let problem = "its first frame is unreadable, but later extents hold records";
            return Err(LogError::Damaged { file, offset: FIRST_FRAME, problem });
        }
        live.push_back(Live { number, first: header.first });
    }
    if live.is_empty() && !unused.is_empty() {
        live.push_back(Live { number: unused.remove(0), first: base });
    }
    Ok((live, unused))
}

fn open_extent(stock: &Stock, number: u64) -> Result<Walk, LogError> {
    let Control { key, extent_bytes, .. } = *stock.control.content();
    let path = extent::path(&stock.dir, number);
    let mut walk = Walk::open(&*stock.system, &path, key, number, extent_bytes)?;
    let length = walk.len_bytes()?;
    let header = ExtentHeader::decode(key, &walk.bytes(0, BLOCK)?);
    let damaged = |offset, problem| Err(LogError::Damaged { file: path.clone(), offset, problem });
    if header != Some(ExtentHeader { number, extent_bytes }) {
        return damaged(0, "its header is unreadable, or of another extent or log");
    }
    if length != extent_bytes {
        return damaged(length.min(extent_bytes), "it does not have the length that it was made with");
    }
    Ok(walk)
}

/// Goes through the last extent to the last whole frame, and decides what the bytes after it are.
fn find_end(stock: &Stock, newest: Live, unused: &[u64]) -> Result<(End, Option<TornTail>), LogError> {
    let Control { extent_bytes, closed_at, .. } = *stock.control.content();
    let mut walk = open_extent(stock, newest.number)?;
    let mut end = End { offset: FIRST_FRAME, next: newest.first, last_frame: None };
    let damaged =
        |path: &Path, offset, problem| Err(LogError::Damaged { file: path.to_owned(), offset, problem });
    let torn_bytes = loop {
        match walk.frame(end.offset)? {
            FrameFinding::Frame(header, _) | FrameFinding::BrokenPayload(header)
                if header.first != end.next =>
            {
                return damaged(&walk.path, end.offset, "a frame does not continue the log");
            }
            FrameFinding::Frame(header, _) => {
                end.last_frame = Some(end.offset);
                end.next = header.next();
                end.offset += header.frame_bytes();
            }
            FrameFinding::BrokenPayload(header) => break header.frame_bytes(),
            FrameFinding::Nothing(claimed) if claimed == Some(end.next) => break HEADER_BYTES as u64,
            FrameFinding::Nothing(_) => break 0,
        }
    };
    // A panic in the middle of a write may have left something after a close.
    if closed_at == end.next && torn_bytes == 0 {
        return Ok((end, None));
    }
    if closed_at > end.next {
        return damaged(&walk.path, end.offset, "records that were there when the log was closed are gone");
    }
    if walk.any_frame_from(end.offset + FRAME_ALIGNMENT as u64, end.next)? {
        return damaged(&walk.path, end.offset, "a frame is broken, but later ones are whole");
    }
    for number in unused {
        let mut unused = open_extent(stock, *number)?;
        if unused.any_frame_from(FIRST_FRAME, end.next)? {
            return damaged(&unused.path, FIRST_FRAME, "its first frame is broken, but later ones are whole");
        }
    }
    let bytes = torn_bytes.min(extent_bytes - end.offset);
    let cut = (bytes > 0).then(|| TornTail { file: walk.path.clone(), offset: end.offset, bytes });
    make_firm(stock, newest, &mut walk, &end)?;
    Ok((end, cut))
}

/// Writes the last frame once more, and zeros after it, and syncs.
///
/// The process may have died between write and sync, or the sync may have failed with the page cache
/// still showing what was written. What is handed out as part of the log must be on the device.
fn make_firm(stock: &Stock, newest: Live, walk: &mut Walk, end: &End) -> Result<(), LogError> {
    let Prepared { path, file, .. } = open_to_write(stock, newest.number)?;
    let write = |error| LogError::io("write", &path, error);
    let mut from = end.last_frame.unwrap_or(end.offset);
    from -= from % BLOCK_BYTES;
    let mut buffer = AlignedBuffer::new(64 * BLOCK);
    let mut stream = BlockStream::new(&*file, &mut buffer, from);
    while from < end.offset {
        let wanted = usize::try_from(end.offset - from).unwrap_or(usize::MAX).min(64 * BLOCK);
        let bytes = walk.bytes(from, wanted)?;
        if bytes.is_empty() {
            let problem = "it became shorter while it was read";
            return Err(LogError::Damaged { file: path, offset: from, problem });
        }
        stream.put(&bytes).map_err(write)?;
        from += bytes.len() as u64;
    }
    // A torn header must not be read as one again; zeroing its beginning suffices.
    if end.offset.is_multiple_of(BLOCK_BYTES) && end.offset < walk.extent_bytes() {
        stream.put(&[0; BLOCK]).map_err(write)?;
    }
    let written = stream.finish().map_err(write)?;
    always!(written >= end.offset, "the end is written once more as a whole", "{written}, {end:?}")?;
    file.sync_data().map_err(|error| LogError::io("sync", &path, error))
}

/// The beginning of the unfinished block, which the writer carries on.
fn unfinished_block(stock: &Stock, newest: Live, end: &End) -> Result<Bytes, LogError> {
    let within = end.offset % BLOCK_BYTES;
    #[allow(clippy::cast_possible_truncation, reason = "it is less than a block")]
    let length = within as usize;
    let mut walk = open_extent(stock, newest.number)?;
    let bytes = walk.bytes(end.offset - within, length)?;
    if bytes.len() < length {
        let problem = "it became shorter while it was read";
        return Err(LogError::Damaged { file: walk.path, offset: end.offset, problem });
    }
    Ok(bytes)
}
