//! A look at RocksDB's manifest before RocksDB reads it.
//!
//! A manifest is a sequence of records in blocks of 32 KB: checksum (4 bytes), length (2, little-endian), type (1), data;
//! none begins in the last 6 bytes of a block. Records of a manifest are whole or in pieces (types 1 to 4). Other types,
//! which only RocksDB's own log has, must not stand there: on one, such as a single flipped bit makes,
//! RocksDB 11.8 goes round without end (`log::Reader::ReadRecord`). All other damage it finds and names itself.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::StoreError;

const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;
const LAST_TYPE: u8 = 4;

/// Refuses a tree whose manifest has a record of a type that does not belong there.
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
        if let Some((offset, kind)) = stranger(&block) {
            let what = format!("the record at byte {} has the type {kind}, which none has", before + offset);
            return Err(StoreError::Corrupt { path, what });
        }
        if block.len() < BLOCK_BYTES {
            return Ok(());
        }
        before += block.len();
    }
}

/// Where in a block the first record of a foreign type begins, and that type.
fn stranger(block: &[u8]) -> Option<(usize, u8)> {
    let (mut rest, mut offset) = (block, 0);
    while let Some(([_, _, _, _, low, high, kind], data)) = rest.split_first_chunk::<HEADER_BYTES>() {
        if *kind > LAST_TYPE {
            return Some((offset, *kind));
        }
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        // Space that was only reserved, or a record that was cut off.
        if *kind == 0 || length > data.len() {
            return None;
        }
        rest = data.get(length..)?;
        offset += HEADER_BYTES + length;
    }
    None
}
