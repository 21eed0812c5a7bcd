//! Compressed input (RFC 4978): it is inflated as far as there is room, so that no bomb takes memory.

use flate2::{Decompress, FlushDecompress, Status};

/// The input is not compressed as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InflateError;

pub(crate) struct Inflater {
    decompress: Decompress,
}

impl Inflater {
    pub(crate) fn new() -> Self {
        Self { decompress: Decompress::new(false) }
    }

    /// Adds at most `room` bytes to `out`; how much of the input was taken. Nothing is taken where there is no room.
    pub(crate) fn inflate(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        room: usize,
    ) -> Result<usize, InflateError> {
        if room == 0 {
            return Ok(0);
        }
        let (before_in, before_out) = (self.decompress.total_in(), self.decompress.total_out());
        let mut buffer = vec![0; room];
        let status = self
            .decompress
            .decompress(bytes, &mut buffer, FlushDecompress::Sync)
            .map_err(|_| InflateError)?;
        let made = usize::try_from(self.decompress.total_out() - before_out).unwrap_or(room);
        let taken = usize::try_from(self.decompress.total_in() - before_in).unwrap_or(bytes.len());
        out.extend_from_slice(buffer.get(..made).unwrap_or_default());
        match status {
            // Nothing may follow the end of a stream.
            Status::StreamEnd if taken < bytes.len() => Err(InflateError),
            _ => Ok(taken),
        }
    }
}
