//! Building a view with unique keys: of each key the first entry, and behind all of these the candidates.

use std::io::{BufReader, Cursor};
use std::path::Path;

use scrinium_database::{DatabaseError, Result};

use super::run::{Merge, Spill, put_record, read_entry, spilled};
use crate::entries::Entry;
use crate::unique::{candidate, group_of};

/// Candidates wait in memory up to this many bytes, and then in a file.
const HELD_BYTES_MAX: usize = 8 << 20;

/// Sorted entries of a view in the order in which they lie in an index with unique keys.
pub(super) struct Shown<'a> {
    merged: Merge,
    /// What all entries of the last key begin with.
    group: Vec<u8>,
    aside: Option<Aside<'a>>,
    candidates: Box<dyn Iterator<Item = Result<Entry>>>,
}

impl<'a> Shown<'a> {
    /// What does not fit into `limit_bytes` of memory waits at `path`.
    pub(super) fn new(merged: Merge, path: &'a Path, limit_bytes: usize) -> Self {
        let aside =
            Aside { path, held: Vec::new(), file: None, limit_bytes: limit_bytes.min(HELD_BYTES_MAX) };
        Self { merged, group: Vec::new(), aside: Some(aside), candidates: Box::new(std::iter::empty()) }
    }

    /// The next entry that is the first of its key; those that are not are put aside.
    fn next_shown(&mut self) -> Result<Option<Entry>> {
        for entry in self.merged.by_ref() {
            let entry = entry?;
            let damaged = || DatabaseError::damaged("entry", "a view that is built");
            let group = group_of(&entry).ok_or_else(damaged)?;
            if group != self.group {
                self.group = group.to_vec();
                return Ok(Some(entry));
            }
            if let Some(aside) = &mut self.aside {
                aside.put(&candidate(&entry))?;
            }
        }
        if let Some(aside) = self.aside.take() {
            self.candidates = aside.entries()?;
        }
        Ok(None)
    }
}

impl Iterator for Shown<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.aside.is_some()
            && let Some(shown) = self.next_shown().transpose()
        {
            return Some(shown);
        }
        self.candidates.next()
    }
}

/// Candidates in their order, while what is shown comes first.
struct Aside<'a> {
    path: &'a Path,
    held: Vec<u8>,
    file: Option<Spill<'a>>,
    limit_bytes: usize,
}

impl Aside<'_> {
    fn put(&mut self, candidate: &Entry) -> Result<()> {
        put_record(&mut self.held, candidate);
        if self.held.len() > self.limit_bytes {
            if self.file.is_none() {
                self.file = Some(Spill::create(self.path)?);
            }
            if let Some(file) = &mut self.file {
                file.write(&self.held)?;
            }
            self.held.clear();
        }
        Ok(())
    }

    /// Those in the file, then those in memory.
    fn entries(self) -> Result<Box<dyn Iterator<Item = Result<Entry>>>> {
        let mut held = BufReader::new(Cursor::new(self.held));
        let broken = |error: std::io::Error| DatabaseError::Internal {
            reason: format!("a candidate in memory cannot be read: {error}"),
        };
        // Candidates have no totals of their own.
        let held = std::iter::from_fn(move || read_entry(&mut held, 0).map_err(broken).transpose());
        Ok(match self.file {
            None => Box::new(held),
            Some(file) => {
                file.finish()?;
                Box::new(spilled(self.path.to_path_buf(), |input| read_entry(input, 0))?.chain(held))
            }
        })
    }
}
