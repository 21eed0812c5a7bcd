//! A reader that can be looked into far ahead of where it is read, with what lies between in a temporary file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use crate::source::{SpoolError, temporary_file};

/// Read at a time.
const PIECE_BYTES: usize = 256 * 1024;

pub(super) struct ReadAhead<R> {
    reader: R,
    ahead: Option<Ahead>,
}

/// What was read and not given yet: bytes `start..end` of a file.
struct Ahead {
    file: File,
    start: u64,
    end: u64,
}

impl<R: Read> ReadAhead<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, ahead: None }
    }

    /// The bytes that come after the next `distance_bytes`, at most the number asked for; fewer at the end.
    ///
    /// # Errors
    /// What reading says, and [`SpoolError`].
    pub(super) fn look_at(&mut self, distance_bytes: u64, most_bytes: usize) -> io::Result<Vec<u8>> {
        let wanted = distance_bytes.saturating_add(most_bytes as u64);
        let ahead = match &mut self.ahead {
            Some(ahead) => ahead,
            none => none.insert(Ahead { file: temporary_file()?, start: 0, end: 0 }),
        };
        let mut piece = vec![0; PIECE_BYTES];
        while ahead.end - ahead.start < wanted {
            let read = match self.reader.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let written = ahead.file.write_all(piece.get(..read).unwrap_or_default());
            written.map_err(SpoolError::of)?;
            ahead.end += read as u64;
        }
        let start = ahead.start.saturating_add(distance_bytes).min(ahead.end);
        let length = usize::try_from(ahead.end - start).unwrap_or(usize::MAX).min(most_bytes);
        let mut found = vec![0; length];
        ahead.file.read_exact_at(&mut found, start).map_err(SpoolError::of)?;
        Ok(found)
    }
}

impl<R: Read> Read for ReadAhead<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(ahead) = self.ahead.as_mut() else { return self.reader.read(into) };
        let left = usize::try_from(ahead.end - ahead.start).unwrap_or(usize::MAX);
        if left == 0 {
            self.ahead = None;
            return self.reader.read(into);
        }
        let most = left.min(into.len());
        let read = ahead.file.read_at(into.get_mut(..most).unwrap_or_default(), ahead.start);
        let read = read.map_err(SpoolError::of)?;
        ahead.start += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_at_is_read_all_the_same() {
        let bytes: Vec<u8> = (0..=250).cycle().take(900_000).collect();
        let mut reader = ReadAhead::new(&bytes[..]);
        let mut read = Vec::new();
        for (step, distance) in [(10, 300_000), (400_000, 5), (1, 499_980), (300_000, 900_000), (300_000, 1)]
        {
            (&mut reader).take(step).read_to_end(&mut read).unwrap();
            let from = (read.len() + distance).min(bytes.len());
            let found = reader.look_at(distance as u64, 30).unwrap();
            assert!(found == bytes[from..].chunks(30).next().unwrap_or_default(), "{step}");
        }
        reader.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
    }
}
