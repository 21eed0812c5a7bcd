//! A look at RocksDB's manifest before RocksDB reads it.
//!
//! A manifest is a sequence of records in blocks of 32 KB: checksum (4 bytes), length (2, little-endian), type (1), data;
//! none begins in the last 6 bytes of a block. Records of a manifest are whole or in pieces (types 1 to 4). Other types,
//! which only RocksDB's own log has, must not stand there: on one, such as a single flipped bit makes,
//! RocksDB 11.8 goes round without end (`log::Reader::ReadRecord`). And a last record that says it is longer than what is left
//! is to RocksDB one that a crash cut off: it continues without it, as an older state, and removes the files that only the
//! newer one has. Where a flipped bit made it longer, its checksum tells. All other damage RocksDB finds and names itself.
//!
//! One kind of it is not damage: a power loss may leave a file its new length, and of the last record only the first sectors; the
//! rest of the file are zeros then. RocksDB syncs a manifest before it relies on a record, so that nobody has relied on
//! this one; but it refuses the whole tree for it. Such a record is cut off.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::Path;

use crc::{CRC_32_ISCSI, Crc};

use crate::StoreError;

const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;
const LAST_TYPE: u8 = 4;

/// What a device writes whole or not at all.
const SECTOR_BYTES: usize = 512;

const CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    ForeignType(u8),
    /// It has this many bytes, and says that it has more.
    Longer {
        is: usize,
        says: usize,
    },
    /// Its checksum is another. From the first sector that begins within it to the end of the block there is nothing but
    /// zeros, or from a later one.
    Torn,
}

/// Refuses a tree whose manifest has a record of a type that does not belong there, or one whose length is wrong. Cuts off
/// what a power loss has left of a last record.
pub(crate) fn check(tree: &Path) -> Result<(), StoreError> {
    // What is missing or no name is for RocksDB to say.
    let Ok(current) = std::fs::read_to_string(tree.join("CURRENT")) else { return Ok(()) };
    let path = tree.join(current.trim_end());
    let failed = |error| StoreError::io("read", &path, error);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    let mut before = 0;
    loop {
        block.clear();
        file.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block).map_err(failed)?;
        if let Some((offset, flaw)) = flaw_in(&block) {
            let flaw = match flaw {
                Flaw::Torn if is_zero(&mut file).map_err(failed)? => return cut(&path, before + offset),
                // RocksDB says it.
                Flaw::Torn => return Ok(()),
                Flaw::ForeignType(kind) => format!("has the unknown type {kind}"),
                Flaw::Longer { is, says } => format!("is of {is} bytes, and says that it is of {says}"),
            };
            let what = format!("the record at byte {} {flaw}", before + offset);
            return Err(StoreError::Corrupt { path, what });
        }
        if block.len() < BLOCK_BYTES {
            return Ok(());
        }
        before += block.len();
    }
}

/// Where in a block the first record with a flaw begins.
fn flaw_in(block: &[u8]) -> Option<(usize, Flaw)> {
    let (mut rest, mut offset) = (block, 0);
    while let Some(([a, b, c, d, low, high, kind], data)) = rest.split_first_chunk::<HEADER_BYTES>() {
        if *kind > LAST_TYPE {
            return Some((offset, Flaw::ForeignType(*kind)));
        }
        let stored = u32::from_le_bytes([*a, *b, *c, *d]);
        let says = usize::from(u16::from_le_bytes([*low, *high]));
        // Space that was only reserved.
        if *kind == 0 {
            return None;
        }
        if says > data.len() {
            let is = whole_length(stored, *kind, data);
            return is.map(|is| (offset, Flaw::Longer { is, says }));
        }
        let (data, after) = data.split_at_checked(says)?;
        // Few records end with zeros, so that hardly any checksum is needed.
        if is_torn(data, after, offset + HEADER_BYTES) && checksum(*kind, data) != stored {
            return Some((offset, Flaw::Torn));
        }
        rest = after;
        offset += HEADER_BYTES + says;
    }
    None
}

/// Whether `data`, which begins at `offset`, was written up to some sector and neither the rest of it nor what is after it.
fn is_torn(data: &[u8], after: &[u8], offset: usize) -> bool {
    let zeros = data.iter().rev().take_while(|byte| **byte == 0).count();
    let in_last_sector = (offset + data.len()) % SECTOR_BYTES;
    // The last boundary within the data; blocks begin at one, too.
    let least = if in_last_sector == 0 { SECTOR_BYTES } else { in_last_sector };
    least < data.len() && zeros >= least && after.iter().all(|byte| *byte == 0)
}

/// Whether what follows in `file` is nothing but zeros.
fn is_zero(file: &mut File) -> std::io::Result<bool> {
    let mut piece = Vec::with_capacity(BLOCK_BYTES);
    loop {
        piece.clear();
        if file.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut piece)? == 0 {
            return Ok(true);
        }
        if piece.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
}

fn cut(path: &Path, length: usize) -> Result<(), StoreError> {
    let failed = |error| StoreError::io("cut", path, error);
    let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    let was = file.metadata().map_err(failed)?.len();
    file.set_len(length as u64).and_then(|()| file.sync_all()).map_err(failed)?;
    let bytes = was.saturating_sub(length as u64);
    tracing::warn!(path = %path.display(), bytes, "a power loss has left a part of the last record; it was cut off");
    Ok(())
}

fn checksum(kind: u8, data: &[u8]) -> u32 {
    let mut digest = CRC32C.digest();
    digest.update(&[kind]);
    digest.update(data);
    masked(digest.finalize())
}

/// How much of `data` has the checksum of a record of this type; nothing of one that was cut off.
fn whole_length(checksum: u32, kind: u8, data: &[u8]) -> Option<usize> {
    let mut digest = CRC32C.digest();
    digest.update(&[kind]);
    // A record may be empty.
    let mut lengths = 0..=data.len();
    lengths.find(|length| {
        if let Some(last) = length.checked_sub(1).and_then(|last| data.get(last)) {
            digest.update(std::slice::from_ref(last));
        }
        masked(digest.clone().finalize()) == checksum
    })
}

/// RocksDB keeps checksums in this form, so that one of data that hold checksums is not one of theirs (`crc32c::Mask`).
const fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}
