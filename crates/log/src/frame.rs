//! The frame: one group of records as it lies in an extent.

use bytes::{Buf, BufMut, Bytes};
use scrinium_assertion::{Fault, never};
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Bytes before the payload. Every frame is at least this long, also one of the first version.
pub(crate) const HEADER_BYTES: usize = 48;

/// Bytes before the payload in frames of the first version, which tell no time.
const FIRST_HEADER_BYTES: usize = 40;

/// Frames begin at multiples of this.
pub(crate) const FRAME_ALIGNMENT: usize = 8;

/// Bytes before each record in the payload: its length.
pub(crate) const RECORD_OVERHEAD: usize = 4;

/// What a frame begins with.
pub(crate) const MAGIC: [u8; 4] = *b"SFRM";

const VERSION: u16 = 2;
const FIRST_VERSION: u16 = 1;

/// The checksums' seed of the frame at one place of one log: the same bytes are a frame nowhere else, so
/// that neither a reused extent's old frames nor a record that holds a copy of a log can be taken for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(u64);

impl Seed {
    pub(crate) fn new(key: u64, extent: u64, offset: u64) -> Self {
        let mut place = [0; 16];
        let mut fields = place.as_mut_slice();
        fields.put_u64_le(extent);
        fields.put_u64_le(offset);
        Self(xxh3_64_with_seed(&place, key))
    }
}

/// What stands before the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Number of the first record.
    pub(crate) first: u64,
    /// How many records; at least one.
    pub(crate) records: u32,
    /// Length of the payload without its padding.
    pub(crate) payload_bytes: u32,
    /// When it was written, in milliseconds since 1970; frames of the first version do not tell.
    pub(crate) time_ms: Option<u64>,
    payload_checksum: u64,
}

impl FrameHeader {
    /// The header for a group; `None` if it is empty or too large for a frame's length field.
    pub(crate) fn of(first: u64, records: &[Bytes], time_ms: u64, seed: Seed) -> Option<Self> {
        let payload_bytes = u32::try_from(payload_bytes(records)).ok()?;
        let count = u32::try_from(records.len()).ok().filter(|count| *count > 0)?;
        let mut checksum = Xxh3::with_seed(seed.0);
        for record in records {
            checksum.update(&length_of(record));
            checksum.update(record);
        }
        let payload_checksum = checksum.digest();
        Some(Self { first, records: count, payload_bytes, time_ms: Some(time_ms), payload_checksum })
    }

    /// Where the payload begins.
    pub(crate) fn header_bytes(&self) -> usize {
        if self.time_ms.is_some() { HEADER_BYTES } else { FIRST_HEADER_BYTES }
    }

    /// The header's bytes, which are checked to be read again as what it says.
    pub(crate) fn encode(&self, seed: Seed) -> Result<[u8; HEADER_BYTES], Fault> {
        let mut bytes = [0; HEADER_BYTES];
        let mut fields = bytes.as_mut_slice();
        fields.put_slice(&MAGIC);
        fields.put_u16_le(VERSION);
        fields.put_u16_le(0);
        fields.put_u64_le(self.first);
        fields.put_u32_le(self.records);
        fields.put_u32_le(self.payload_bytes);
        fields.put_u64_le(self.payload_checksum);
        fields.put_u64_le(self.time_ms.unwrap_or_default());
        let checksum = bytes.split_last_chunk::<8>().map_or(0, |(head, _)| xxh3_64_with_seed(head, seed.0));
        if let Some(field) = bytes.last_chunk_mut::<8>() {
            *field = checksum.to_le_bytes();
        }
        match Self::decode(&bytes, seed) {
            Some(read) if read == *self => Ok(bytes),
            _ => Err(never!("the header of a frame is read as it is written", "{self:?}")),
        }
    }

    /// Reads a header; `None` if it is not one that was written at this place.
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES], seed: Seed) -> Option<Self> {
        let version = u16::from_le_bytes(*bytes.strip_prefix(&MAGIC)?.first_chunk()?);
        let length = match version {
            VERSION => HEADER_BYTES,
            FIRST_VERSION => FIRST_HEADER_BYTES,
            _ => return None,
        };
        let (head, checksum) = bytes.get(..length)?.split_last_chunk::<8>()?;
        if xxh3_64_with_seed(head, seed.0) != u64::from_le_bytes(*checksum) {
            return None;
        }
        let mut fields = head.get(8..)?;
        let header = Self {
            first: fields.try_get_u64_le().ok()?,
            records: fields.try_get_u32_le().ok()?,
            payload_bytes: fields.try_get_u32_le().ok()?,
            payload_checksum: fields.try_get_u64_le().ok()?,
            time_ms: fields.try_get_u64_le().ok(),
        };
        (header.records > 0).then_some(header)
    }

    /// What the header of a frame claims to be its first record, whether or not its checksum is right.
    pub(crate) fn claimed_first(bytes: &[u8; HEADER_BYTES]) -> Option<u64> {
        let mut fields = bytes.strip_prefix(&MAGIC)?;
        fields.advance(4);
        Some(fields.get_u64_le())
    }

    /// The number of the record after the last.
    pub(crate) fn next(&self) -> u64 {
        self.first.saturating_add(u64::from(self.records))
    }

    /// Length of the frame in the file, a multiple of [`FRAME_ALIGNMENT`].
    pub(crate) fn frame_bytes(&self) -> u64 {
        aligned(self.header_bytes(), u64::from(self.payload_bytes))
    }

    pub(crate) fn matches(&self, payload: &[u8], seed: Seed) -> bool {
        xxh3_64_with_seed(payload, seed.0) == self.payload_checksum
    }
}

/// Length of a frame with such a payload that is written now, in bytes.
pub(crate) fn frame_bytes(payload_bytes: u64) -> u64 {
    aligned(HEADER_BYTES, payload_bytes)
}

fn aligned(header_bytes: usize, payload_bytes: u64) -> u64 {
    (header_bytes as u64).saturating_add(payload_bytes).next_multiple_of(FRAME_ALIGNMENT as u64)
}

/// Length of the payload that these records make, in bytes.
pub(crate) fn payload_bytes(records: &[Bytes]) -> usize {
    records.iter().fold(0, |sum, record| sum.saturating_add(RECORD_OVERHEAD).saturating_add(record.len()))
}

/// The field that stands before a record. Records are far below 4 GiB.
pub(crate) fn length_of(record: &Bytes) -> [u8; RECORD_OVERHEAD] {
    let length = u32::try_from(record.len()).unwrap_or_else(|_| {
        never!("a record is shorter than 4 GiB", "{} bytes", record.len());
        u32::MAX
    });
    length.to_le_bytes()
}

/// Takes the next record off a payload; `None` if its length exceeds what is there.
pub(crate) fn take_record(payload: &mut Bytes) -> Option<Bytes> {
    let length = payload.try_get_u32_le().ok()?;
    let length = usize::try_from(length).ok().filter(|length| *length <= payload.len())?;
    Some(payload.split_to(length))
}
