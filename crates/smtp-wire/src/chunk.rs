//! Texts whose length is announced (BDAT, RFC 3030).

/// Counts the bytes of one chunk. A chunk that is refused is read as well, so that it is not taken for commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkReader {
    missing: u64,
}

impl ChunkReader {
    /// A chunk of this length.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self { missing: bytes }
    }

    /// The part of `bytes` that belongs to the chunk; what follows is a command.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let count = usize::try_from(self.missing).unwrap_or(usize::MAX).min(bytes.len());
        self.missing -= count as u64;
        bytes.get(..count).unwrap_or_default()
    }

    /// Bytes that have not come.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing
    }
}
