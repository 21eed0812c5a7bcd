//! The text of a message while it comes: in memory while there is room for it, else in a file.

use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is taken from the budget in pieces of this size.
const GRAIN_BYTES: usize = 4 << 10;

/// Memory for the texts of all messages that are coming in. Clones share it.
#[derive(Clone)]
pub struct SpoolBudget {
    grains: Arc<Semaphore>,
    /// A longer text goes into a file, whatever room there is.
    message_bytes: usize,
}

impl SpoolBudget {
    /// `bytes` for all messages together, of which one takes `message_bytes` at most.
    #[must_use]
    pub fn new(bytes: usize, message_bytes: usize) -> Self {
        let grains = (bytes / GRAIN_BYTES).min(Semaphore::MAX_PERMITS);
        Self { grains: Arc::new(Semaphore::new(grains)), message_bytes }
    }

    /// A text of which nothing has come.
    #[must_use]
    pub(crate) fn begin(&self) -> Spool {
        Spool { budget: self.clone(), kept: Kept::Memory { bytes: Vec::new(), permit: None } }
    }
}

/// The text of one message.
pub(crate) struct Spool {
    budget: SpoolBudget,
    kept: Kept,
}

enum Kept {
    Memory { bytes: Vec<u8>, permit: Option<OwnedSemaphorePermit> },
    File { file: File, length: u64 },
}

impl Spool {
    /// Keeps `piece` if there is memory for it.
    pub(crate) fn keep(&mut self, piece: &[u8]) -> bool {
        let Kept::Memory { bytes, permit } = &mut self.kept else { return false };
        let length = bytes.len() + piece.len();
        if length > self.budget.message_bytes {
            return false;
        }
        let held = permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = length.div_ceil(GRAIN_BYTES);
        if let Some(more) = wanted.checked_sub(held).filter(|more| *more > 0) {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let Ok(taken) = Arc::clone(&self.budget.grains).try_acquire_many_owned(more) else {
                return false;
            };
            match permit {
                Some(permit) => permit.merge(taken),
                None => *permit = Some(taken),
            }
        }
        bytes.extend_from_slice(piece);
        true
    }

    /// Writes `piece` into the file, with what was in memory before it. It blocks for as long as the disk does.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        if let Kept::Memory { bytes, .. } = &self.kept {
            let mut file = tempfile::tempfile()?;
            file.write_all(bytes)?;
            self.kept = Kept::File { file, length: bytes.len() as u64 };
        }
        if let Kept::File { file, length } = &mut self.kept {
            file.write_all(piece)?;
            *length += piece.len() as u64;
        }
        Ok(())
    }

    /// Its bytes.
    pub(crate) fn length(&self) -> u64 {
        match &self.kept {
            Kept::Memory { bytes, .. } => bytes.len() as u64,
            Kept::File { length, .. } => *length,
        }
    }

    /// All of it from the beginning, as often as it is asked.
    pub(crate) fn reader(&self) -> SpoolReader<'_> {
        match &self.kept {
            Kept::Memory { bytes, .. } => SpoolReader::Memory(Cursor::new(bytes)),
            Kept::File { file, length } => SpoolReader::File { file, position: 0, length: *length },
        }
    }
}

/// Reads a text from its beginning.
pub(crate) enum SpoolReader<'a> {
    Memory(Cursor<&'a Vec<u8>>),
    File { file: &'a File, position: u64, length: u64 },
}

impl Read for SpoolReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Memory(bytes) => bytes.read(buffer),
            Self::File { file, position, length } => {
                let left = usize::try_from(*length - (*position).min(*length)).unwrap_or(usize::MAX);
                let wanted = left.min(buffer.len());
                let read = file.read_at(buffer.get_mut(..wanted).unwrap_or_default(), *position)?;
                *position += read as u64;
                Ok(read)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn all(spool: &Spool) -> Vec<u8> {
        let mut bytes = Vec::new();
        spool.reader().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, spool.length());
        bytes
    }

    #[test]
    fn a_text_goes_into_a_file_where_there_is_no_memory_for_it() {
        let budget = SpoolBudget::new(12 << 10, 8 << 10);
        let piece = vec![b'a'; 5000];
        let mut first = budget.begin();
        assert!(first.keep(&piece));
        assert!(!first.keep(&piece), "longer than one message may be");
        first.write(&piece).unwrap();
        assert_eq!(all(&first), [&piece[..], &piece].concat());
        let (mut second, mut third) = (budget.begin(), budget.begin());
        assert!(second.keep(&piece), "the first has given its memory back");
        assert!(!third.keep(&piece));
        assert!(third.keep(b"short"));
        drop(second);
        assert!(third.keep(&piece));
        assert_eq!(all(&third), [b"short".as_slice(), &piece].concat());
    }
}
