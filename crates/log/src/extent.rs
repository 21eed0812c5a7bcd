//! Extents: the files that frames lie in, their names and their first block.

use std::path::{Path, PathBuf};

use bytes::{Buf, BufMut};
use scrinium_assertion::{Fault, never};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::buffer::BLOCK_BYTES;

/// Where the first frame of an extent begins; the block before it is written once.
pub(crate) const FIRST_FRAME: u64 = BLOCK_BYTES;

/// An extent that is being made; it gets its name when it is whole.
pub(crate) const UNFINISHED: &str = "extent.new";

const MAGIC: [u8; 8] = *b"SCRIEXTN";
const FORMAT: u32 = 1;
const ENCODED: usize = 40;

/// What the first block of an extent says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExtentHeader {
    /// The number in its name.
    pub(crate) number: u64,
    /// The length of the file.
    pub(crate) extent_bytes: u64,
}

impl ExtentHeader {
    /// Lays the header into the first bytes of `block`, the rest zero.
    pub(crate) fn encode(&self, key: u64, block: &mut [u8]) -> Result<(), Fault> {
        block.fill(0);
        let header = block.first_chunk_mut::<ENCODED>();
        let header = header.ok_or_else(|| never!("the header of an extent fits into its block"))?;
        let mut fields = header.as_mut_slice();
        fields.put_slice(&MAGIC);
        fields.put_u32_le(FORMAT);
        fields.put_u32_le(0);
        fields.put_u64_le(self.number);
        fields.put_u64_le(self.extent_bytes);
        let checksum = header.split_last_chunk::<8>().map_or(0, |(head, _)| xxh3_64_with_seed(head, key));
        if let Some(field) = header.last_chunk_mut::<8>() {
            *field = checksum.to_le_bytes();
        }
        match Self::decode(key, block) {
            Some(read) if read == *self => Ok(()),
            _ => Err(never!("the header of an extent is read as it is written", "{self:?}")),
        }
    }

    /// Reads a header; `None` if it is damaged or of another log.
    pub(crate) fn decode(key: u64, block: &[u8]) -> Option<Self> {
        let header = block.first_chunk::<ENCODED>()?;
        let (head, checksum) = header.split_last_chunk::<8>()?;
        let mut fields = head.strip_prefix(&MAGIC)?;
        if fields.get_u32_le() != FORMAT || xxh3_64_with_seed(head, key) != u64::from_le_bytes(*checksum) {
            return None;
        }
        fields.advance(4);
        Some(Self { number: fields.get_u64_le(), extent_bytes: fields.get_u64_le() })
    }
}

/// `S0000001.TXN`, and so on; more digits when seven do not suffice.
pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("S{number:07}.TXN"))
}

/// The number in an extent's name; `None` for any other file.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('S')?.strip_suffix(".TXN")?;
    let number = digits.parse().ok()?;
    (name == format!("S{number:07}.TXN")).then_some(number)
}
