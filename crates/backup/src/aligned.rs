//! Memory that direct I/O accepts.

/// Direct I/O begins and ends on multiples of this, in the file and in memory.
pub(crate) const BLOCK: usize = 4096;

/// How much is read and written at once. Anyone who syncs meanwhile waits for a piece or two: with 2 MB a backup is no faster on
/// a server at rest, faster with people at work, and holds them up for longer (`make bench NAME=backup`).
pub(crate) const PIECE_BYTES: usize = 512 << 10;

/// One piece of a file.
pub(crate) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    /// How much of it is filled.
    pub(crate) filled: usize,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        let memory = vec![0; PIECE_BYTES + BLOCK];
        // Without an answer the start stays unaligned, and direct I/O is refused and done without.
        let start = memory.as_ptr().align_offset(BLOCK);
        let start = if start < BLOCK { start } else { 0 };
        Self { memory, start, filled: 0 }
    }

    /// What was filled in.
    pub(crate) fn content(&self) -> &[u8] {
        self.memory.get(self.start..self.start + self.filled).unwrap_or_default()
    }

    /// Takes `content`, as far as there is room.
    pub(crate) fn fill(&mut self, content: &[u8]) {
        let length = content.len().min(PIECE_BYTES);
        if let (Some(to), Some(from)) = (self.whole().get_mut(..length), content.get(..length)) {
            to.copy_from_slice(from);
        }
        self.filled = length;
    }

    /// All of it, to be filled.
    pub(crate) fn whole(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.start..self.start + PIECE_BYTES).unwrap_or_default()
    }

    /// The content with zeros after it, up to the end of a block.
    pub(crate) fn padded(&mut self) -> &[u8] {
        let end = self.filled.next_multiple_of(BLOCK);
        let (start, filled) = (self.start, self.filled);
        if let Some(padding) = self.memory.get_mut(start + filled..start + end) {
            padding.fill(0);
        }
        self.memory.get(start..start + end).unwrap_or_default()
    }
}
