//! The control file: which extents there are, and the log's key.
//!
//! It holds two copies of the same content, overwritten in place one after the other. So a crash in
//! the middle of a change leaves one of them whole, one damaged copy does no harm, and a change needs
//! no new space on a full disk.

use std::path::{Path, PathBuf};

use bytes::{Buf, BufMut};
use scrinium_assertion::{Fault, always, never};
use xxhash_rust::xxh3::xxh3_64;

use crate::LogError;
use crate::buffer::{AlignedBuffer, BLOCK, BLOCK_BYTES, read_full, write_all};
use crate::system::{Access, FileHandle, System};

/// The file's name in the log's directory.
pub(crate) const NAME: &str = "log.control";

/// The control file while it is made.
const UNFINISHED: &str = "log.control.new";

/// The format of a whole log that this release writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 2;

/// Its frames tell no time. Opening makes such a log one of the newest format, since frames that do follow.
const FIRST_FORMAT: u32 = 1;

/// Magic, format and checksum keep their places in every later format, so that a newer one can be told
/// from a damaged one.
const MAGIC: [u8; 8] = *b"SCRILOGC";
const ENCODED: usize = 80;

/// What the control file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    /// Grows with every change; of two whole copies the higher counts.
    pub(crate) generation: u64,
    /// Random; seeds every other checksum of this log.
    pub(crate) key: u64,
    /// Size of every extent.
    pub(crate) extent_bytes: u64,
    /// The oldest extent that must be there.
    pub(crate) first_extent: u64,
    /// The newest extent that must be there, used or prepared. Below `first_extent`: none yet.
    pub(crate) last_extent: u64,
    /// Number of the first record of the oldest extent, or the one it will have.
    pub(crate) base: u64,
    /// The next record's number when the log was closed in order; 0 while it is open.
    pub(crate) closed_at: u64,
}

impl Control {
    /// Extents are named and let go of in their order, and nothing of this is taken back.
    fn check_follows(&self, former: &Self) -> Result<(), Fault> {
        always!(
            self.first_extent >= former.first_extent
                && self.last_extent >= former.last_extent
                && self.base >= former.base,
            "the control file moves forward",
            "{self:?} after {former:?}"
        )?;
        always!(
            self.first_extent <= self.last_extent.saturating_add(1),
            "the control file names the extents from the first to the last",
            "{self:?}"
        )?;
        always!(
            (self.key, self.extent_bytes) == (former.key, former.extent_bytes),
            "a log keeps its key and the size of its extents",
            "{self:?} after {former:?}"
        )
    }

    fn encode(&self, block: &mut [u8]) -> Result<(), Fault> {
        block.fill(0);
        let copy = block.first_chunk_mut::<ENCODED>();
        let copy = copy.ok_or_else(|| never!("the content of the control file fits into its block"))?;
        let mut fields = copy.as_mut_slice();
        fields.put_slice(&MAGIC);
        fields.put_u32_le(FORMAT);
        fields.put_u32_le(0);
        for value in [
            self.generation,
            self.key,
            self.extent_bytes,
            self.first_extent,
            self.last_extent,
            self.base,
            self.closed_at,
        ] {
            fields.put_u64_le(value);
        }
        let checksum = copy.split_last_chunk::<8>().map_or(0, |(head, _)| xxh3_64(head));
        if let Some(field) = copy.last_chunk_mut::<8>() {
            *field = checksum.to_le_bytes();
        }
        match Self::decode(block) {
            Some((FORMAT, Some(read))) if read == *self => Ok(()),
            _ => Err(never!("the control file is read as it is written", "{self:?}")),
        }
    }

    /// Reads one copy: `None` if damaged, else its format and, if that is known, its content.
    fn decode(block: &[u8]) -> Option<(u32, Option<Self>)> {
        let copy = block.first_chunk::<ENCODED>()?;
        let (head, checksum) = copy.split_last_chunk::<8>()?;
        let mut fields = head.strip_prefix(&MAGIC)?;
        if xxh3_64(head) != u64::from_le_bytes(*checksum) {
            return None;
        }
        let format = fields.get_u32_le();
        if !(FIRST_FORMAT..=FORMAT).contains(&format) {
            return Some((format, None));
        }
        fields.advance(4);
        let control = Self {
            generation: fields.get_u64_le(),
            key: fields.get_u64_le(),
            extent_bytes: fields.get_u64_le(),
            first_extent: fields.get_u64_le(),
            last_extent: fields.get_u64_le(),
            base: fields.get_u64_le(),
            closed_at: fields.get_u64_le(),
        };
        Some((format, Some(control)))
    }
}

/// The format of the log in a folder, and the one that this release makes of it when it opens it; `None`: there is no
/// log. Nothing is changed, and nothing is locked.
///
/// # Errors
/// [`LogError::Damaged`] or [`LogError::Io`]. A newer format is not damage: it is what was found.
pub fn format_of(dir: &Path) -> Result<Option<(u32, u32)>, LogError> {
    match ControlFile::look_at_format(&crate::system::OperatingSystem, dir) {
        Err(LogError::NewerFormat { found, .. }) => Ok(Some((found, FORMAT))),
        found => Ok(found?.map(|found| (found, FORMAT))),
    }
}

/// The open control file with what it says.
pub(crate) struct ControlFile {
    path: PathBuf,
    file: Box<dyn FileHandle>,
    block: AlignedBuffer,
    content: Control,
    /// As it was read; whatever is written has the newest.
    format: u32,
}

impl ControlFile {
    /// Makes the control file of a new log, durably.
    pub(crate) fn create(system: &dyn System, dir: &Path, content: Control) -> Result<Self, LogError> {
        let unfinished = dir.join(UNFINISHED);
        let file = system
            .open(&unfinished, Access::Create, false)
            .map_err(|error| LogError::io("create", &unfinished, error))?;
        let block = AlignedBuffer::new(BLOCK);
        let mut control = Self { path: unfinished.clone(), file, block, content, format: FORMAT };
        control.write_both()?;
        let path = dir.join(NAME);
        system.rename(&unfinished, &path).map_err(|error| LogError::io("rename", &unfinished, error))?;
        system.sync_dir(dir).map_err(|error| LogError::io("sync", dir, error))?;
        control.path = path;
        Ok(control)
    }

    /// Opens the control file and mends a copy that is damaged or behind; `None` if there is no file.
    pub(crate) fn open(system: &dyn System, dir: &Path) -> Result<Option<Self>, LogError> {
        let Some((mut control, agree)) = Self::open_as(system, dir, Access::Write)? else { return Ok(None) };
        if !agree {
            control.write_both()?;
        }
        Ok(Some(control))
    }

    /// What the control file says, without changing anything; `None` if there is no file.
    pub(crate) fn look(system: &dyn System, dir: &Path) -> Result<Option<Control>, LogError> {
        Ok(Self::open_as(system, dir, Access::Read)?.map(|(control, _)| control.content))
    }

    /// The older of the formats of its copies; `None` if there is no file.
    fn look_at_format(system: &dyn System, dir: &Path) -> Result<Option<u32>, LogError> {
        Ok(Self::open_as(system, dir, Access::Read)?.map(|(control, _)| control.format))
    }

    /// Also tells whether both copies are whole and the same.
    fn open_as(system: &dyn System, dir: &Path, access: Access) -> Result<Option<(Self, bool)>, LogError> {
        let path = dir.join(NAME);
        let file = match system.open(&path, access, false) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| LogError::io("open", &path, error))?,
        };
        let mut block = AlignedBuffer::new(BLOCK);
        let mut copies = Vec::with_capacity(2);
        let mut oldest = FORMAT;
        for offset in [0, BLOCK_BYTES] {
            block.bytes_mut().fill(0);
            read_full(&*file, block.bytes_mut(), offset)
                .map_err(|error| LogError::io("read", &path, error))?;
            let copy = Control::decode(block.bytes());
            if let Some((found, None)) = copy {
                return Err(LogError::NewerFormat { file: path, found, supported: FORMAT });
            }
            oldest = copy.as_ref().map_or(oldest, |(format, _)| oldest.min(*format));
            copies.push(copy.and_then(|(_, content)| content));
        }
        let agree = oldest == FORMAT && copies.iter().all(|copy| Some(copy) == copies.first());
        let Some(content) = copies.into_iter().flatten().max_by_key(|copy| copy.generation) else {
            return Err(LogError::Damaged {
                file: path,
                offset: 0,
                problem: "both of its copies are unreadable",
            });
        };
        Ok(Some((Self { path, file, block, content, format: oldest }, agree)))
    }

    pub(crate) fn content(&self) -> &Control {
        &self.content
    }

    /// Changes the content, durably. After an error the former content still stands in memory, and a
    /// later change supersedes whatever reached the file.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Control)) -> Result<(), LogError> {
        let former = self.content.clone();
        change(&mut self.content);
        self.content.generation = former.generation + 1;
        let written = self.content.check_follows(&former).map_err(LogError::from);
        let written = written.and_then(|()| self.write_both());
        if written.is_err() {
            self.content = Control { generation: self.content.generation, ..former };
        }
        written
    }

    /// The second copy is touched only when the first is durable.
    fn write_both(&mut self) -> Result<(), LogError> {
        self.content.encode(self.block.bytes_mut())?;
        for offset in [0, BLOCK_BYTES] {
            write_all(&*self.file, self.block.bytes(), offset)
                .map_err(|error| LogError::io("write", &self.path, error))?;
            self.file.sync_data().map_err(|error| LogError::io("sync", &self.path, error))?;
        }
        Ok(())
    }
}
