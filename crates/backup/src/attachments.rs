//! Attachments that lie in a store of objects: a backup does not copy them, it says which it needs.
//!
//! The list is a file of the backup, one object a line, those of each store in the order of the digests:
//!
//! ```text
//! HOME DIGEST UPLOAD LENGTH BYTES ADDRESS        numbers of the name in hexadecimal, lengths in decimal digits
//! ```

use std::fmt;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use scrinium_objects::{Needed, ObjectName, Stored};
use scrinium_store::BackupPoint;

use crate::aligned::Buffer;
use crate::digests::Digests;
use crate::manifest::ObjectsEntry;
use crate::place::Pieces;
use crate::plan::{Planned, plan_file};
use crate::{BackupError, Repository};

/// Where the list is said to belong; it is not restored.
const LIST: &str = "attachments.objects";

/// A longer line was not written by a server.
const LINE_MAX_BYTES: usize = 8 << 10;

type Give<'a> = &'a mut dyn FnMut(&Needed) -> Result<(), String>;

type List = dyn Fn(Moment<'_>, Give<'_>) -> Result<(), String> + Send + Sync;

/// When one of the stores was taken.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The name of the volume; `None` is the first store.
    pub volume: Option<&'a str>,
    /// When.
    pub taken: SystemTime,
}

/// Gives the objects that documents of a store referred to when it was taken.
#[derive(Clone)]
pub struct ObjectLister(Arc<List>);

impl ObjectLister {
    /// `list` calls what it is given for each object of one store, in the order of the digests.
    #[must_use]
    pub fn new(list: impl Fn(Moment<'_>, Give<'_>) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(list))
    }
}

impl fmt::Debug for ObjectLister {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ObjectLister")
    }
}

/// A list that was written next to the checkpoint; it goes when this is dropped.
pub(crate) struct Listed {
    path: PathBuf,
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// Writes the list of what checkpoints need, that of the first store and those of the volumes; `None` if that is nothing.
pub(crate) fn list(
    lister: &ObjectLister,
    point: &BackupPoint,
    volumes: &[(String, BackupPoint)],
) -> Result<Option<Listed>, BackupError> {
    let path = point.dir().with_extension("objects");
    let failed = BackupError::io("write", &path);
    let mut file = BufWriter::new(File::create(&path).map_err(&failed)?);
    let mut listed = Listed { path: path.clone(), objects: 0, bytes: 0 };
    let first = Moment { volume: None, taken: point.taken() };
    let others = volumes.iter().map(|(name, point)| Moment { volume: Some(name), taken: point.taken() });
    for moment in std::iter::once(first).chain(others) {
        (lister.0)(moment, &mut |needed| {
            listed.objects += 1;
            listed.bytes += needed.stored.stored_bytes;
            file.write_all(line(needed).as_bytes()).map_err(|error| error.to_string())
        })
        .map_err(BackupError::OutOfReach)?;
    }
    file.flush().map_err(&failed)?;
    Ok(Some(listed).filter(|listed| listed.objects > 0))
}

impl Listed {
    pub(crate) fn plan(&self, digests: Digests) -> Result<Planned, BackupError> {
        plan_file(self.path.clone(), LIST.to_owned(), digests)
    }
}

pub(crate) fn line(Needed { address, stored }: &Needed) -> String {
    let ObjectName { home, digest, upload } = &stored.name;
    let digest = blake3::Hash::from_bytes(*digest).to_hex();
    format!("{home:016x} {digest} {upload:016x} {} {} {address}\n", stored.length, stored.stored_bytes)
}

fn parse(line: &str) -> Option<Needed> {
    let mut words = line.splitn(6, ' ');
    let mut number = |radix| u64::from_str_radix(words.next()?, radix).ok();
    let home = number(16)?;
    let digest = *blake3::Hash::from_hex(words.next()?).ok()?.as_bytes();
    let mut number = |radix| u64::from_str_radix(words.next()?, radix).ok();
    let name = ObjectName { home, digest, upload: number(16)? };
    let (length, stored_bytes) = (number(10)?, number(10)?);
    Some(Needed { address: words.next()?.to_owned(), stored: Stored { name, length, stored_bytes } })
}

/// The lines of a list, one after the other.
pub(crate) struct Lines {
    pieces: Box<dyn Pieces>,
    buffer: Buffer,
    rest: Vec<u8>,
    /// So much of `rest` was given.
    given: usize,
    ended: bool,
}

impl Lines {
    pub(crate) fn open(repository: &Repository, needs: &ObjectsEntry) -> Result<Self, BackupError> {
        let pieces = repository.open_file(&needs.list)?;
        Ok(Self { pieces, buffer: Buffer::new(), rest: Vec::new(), given: 0, ended: false })
    }

    /// `None`: it has ended.
    pub(crate) fn next_line(&mut self) -> Result<Option<Needed>, BackupError> {
        loop {
            let open = self.rest.get(self.given..).unwrap_or_default();
            if let Some(end) = open.iter().position(|byte| *byte == b'\n') {
                let line = open.get(..end).unwrap_or_default();
                let needed = std::str::from_utf8(line).ok().and_then(parse);
                self.given += end + 1;
                let damaged = || BackupError::damaged(LIST, "a line of it is not as it should be");
                return needed.map(Some).ok_or_else(damaged);
            }
            if self.ended {
                return Ok(None);
            }
            self.rest.drain(..self.given);
            self.given = 0;
            if self.rest.len() > LINE_MAX_BYTES {
                return Err(BackupError::damaged(LIST, "a line of it is too long"));
            }
            self.pieces.next(&mut self.buffer)?;
            self.ended = self.buffer.content().is_empty();
            self.rest.extend_from_slice(self.buffer.content());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        let name = ObjectName { home: 7, digest: [0xab; 32], upload: u64::MAX };
        let stored = Stored { name, length: 1 << 30, stored_bytes: 1 << 29 };
        let needed = Needed { address: "file:///a folder/with blanks".to_owned(), stored };
        assert_eq!(parse(line(&needed).trim_end_matches('\n')), Some(needed));
        assert_eq!(parse("7 ab"), None);
    }
}
