//! A look at RocksDB's manifest before RocksDB reads it.
//!
//! A manifest is a sequence of records in blocks of 32 KB: checksum (4 bytes), length (2, little-endian), type (1), data;
//! none begins in the last 6 bytes of a block. Records of a manifest are whole or in pieces (types 1 to 4). Other types,
//! which only RocksDB's own log has, must not stand there: on one, such as a single flipped bit makes,
//! RocksDB 11.8 goes round without end (`log::Reader::ReadRecord`). And a last record that says it is longer than what is left
//! is to RocksDB one that a crash cut off: it goes on without it, as an older state, and removes the files that only the
//! newer one has. Where a flipped bit made it longer, its checksum tells. All other damage RocksDB finds and names itself.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crc::{CRC_32_ISCSI, Crc};

use crate::StoreError;

const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;
const LAST_TYPE: u8 = 4;
const CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    ForeignType(u8),
    /// It has so many bytes, and says that it has more.
    Longer {
        is: usize,
        says: usize,
    },
}

/// Refuses a tree whose manifest has a record of a type that does not belong there, or one whose length is wrong.
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
                Flaw::ForeignType(kind) => format!("has the type {kind}, which none has"),
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
        let says = usize::from(u16::from_le_bytes([*low, *high]));
        // Space that was only reserved.
        if *kind == 0 {
            return None;
        }
        if says > data.len() {
            let is = whole_length(u32::from_le_bytes([*a, *b, *c, *d]), *kind, data);
            return is.map(|is| (offset, Flaw::Longer { is, says }));
        }
        rest = data.get(says..)?;
        offset += HEADER_BYTES + says;
    }
    None
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

/// RocksDB keeps checksums in this form, so that one of data that hold checksums is none of theirs (`crc32c::Mask`).
const fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}
