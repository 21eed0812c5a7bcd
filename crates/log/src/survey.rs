//! Reading a whole log that may be damaged, without changing it: what is there, what is not, and where.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use scrinium_assertion::never;

use crate::buffer::BLOCK;
use crate::control::{self, Control, ControlFile};
use crate::extent::{self, ExtentHeader, FIRST_FRAME};
use crate::frame::{FRAME_ALIGNMENT, take_record};
use crate::log::LOCK;
use crate::reader::Record;
use crate::system::{OperatingSystem, System};
use crate::walk::{FrameFinding, Walk};
use crate::{LogError, Sequence};

/// More places are counted but not kept.
const DAMAGE_KEPT: usize = 1000;

/// A place where bytes are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What is wrong there.
    pub problem: &'static str,
}

/// Records that were in the log and cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The first of them.
    pub first: Sequence,
    /// The last of them; `None` where the log's end is damaged, so that nobody can say.
    pub last: Option<Sequence>,
}

/// One group of records that can be read.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The number of its first record.
    pub first: Sequence,
    records: u32,
    payload: Bytes,
}

impl Frame {
    /// The number after its last record.
    #[must_use]
    pub fn next(&self) -> Sequence {
        Sequence(self.first.0 + u64::from(self.records))
    }

    /// Its records in order.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let mut payload = self.payload.clone();
        (self.first.0..self.next().0).map_while(move |number| {
            let bytes = take_record(&mut payload).or_else(|| {
                never!("a frame whose checksum is right holds the records that it counts", "record {number}");
                None
            })?;
            Some(Record { sequence: Sequence(number), bytes })
        })
    }
}

/// What a survey has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surveyed {
    /// Extents that the control file names.
    pub extents: u64,
    /// Their size.
    pub extent_bytes: u64,
    /// Groups of records that can be read.
    pub frames: u64,
    /// Records that can be read.
    pub records: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// The number of the first record that the log should hold.
    pub first: Sequence,
    /// The number after the last record that is known of.
    pub next: Sequence,
    /// Records that are known of and cannot be read.
    pub missing: Vec<Missing>,
    /// Where bytes are damaged; at most a thousand places.
    pub damage: Vec<Damage>,
    /// How many places are damaged.
    pub damaged_places: u64,
}

/// Goes through a log from its first frame to its last, past whatever is damaged.
///
/// It holds the log's lock, so that nobody writes meanwhile.
pub struct Survey {
    system: Arc<dyn System>,
    dir: PathBuf,
    control: Control,
    /// The extent that is read next, or is being read.
    number: u64,
    walk: Option<Walk>,
    offset: u64,
    /// The number that the next frame should begin with.
    expected: u64,
    /// Bytes that may be the last, unfinished write, until something follows them.
    suspect: Option<Damage>,
    /// Where the frames of an extent ended first, behind the last one.
    end: Option<(u64, u64)>,
    /// Behind the last frame the device did not read something that may have been frames.
    unknown_end: bool,
    found: Surveyed,
    _lock: Box<dyn Any + Send + Sync>,
}

impl Survey {
    /// Begins with the log in `dir`.
    ///
    /// # Errors
    /// [`LogError::Locked`]; [`LogError::Missing`] or [`LogError::Damaged`] if there is no control file or both
    /// of its copies are unreadable, for then nothing of the log can be read; [`LogError::NewerFormat`],
    /// [`LogError::Io`].
    pub fn begin(dir: &Path) -> Result<Self, LogError> {
        Self::begin_on(Arc::new(OperatingSystem), dir)
    }

    /// As [`Survey::begin`], on another [`System`].
    ///
    /// # Errors
    /// As [`Survey::begin`].
    pub fn begin_on(system: Arc<dyn System>, dir: &Path) -> Result<Self, LogError> {
        let missing = || LogError::Missing { file: dir.join(control::NAME) };
        // Nothing is made here, not even a lock's file in a folder that lost everything.
        let Some(_) = ControlFile::look(&*system, dir)? else { return Err(missing()) };
        let lock_path = dir.join(LOCK);
        let lock = system.lock(&lock_path).map_err(|error| LogError::io("lock", &lock_path, error))?;
        let Some(lock) = lock else { return Err(LogError::Locked { dir: dir.to_owned() }) };
        let control = ControlFile::look(&*system, dir)?.ok_or_else(missing)?;
        let extents = (control.last_extent + 1).saturating_sub(control.first_extent);
        let (first, next) = (Sequence(control.base), Sequence(control.base));
        let found =
            Surveyed { extents, extent_bytes: control.extent_bytes, first, next, ..Surveyed::default() };
        Ok(Self {
            system,
            dir: dir.to_owned(),
            number: control.first_extent,
            expected: control.base,
            control,
            walk: None,
            offset: FIRST_FRAME,
            suspect: None,
            end: None,
            unknown_end: false,
            found,
            _lock: lock,
        })
    }

    /// The next frame that can be read; `None` after the last one.
    ///
    /// # Errors
    /// [`LogError::Io`] for an error that is not about one place, such as a folder that cannot be read.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, LogError> {
        while self.number <= self.control.last_extent {
            if self.walk.is_none() && !self.open_next()? {
                continue;
            }
            let Some(walk) = &mut self.walk else {
                return Err(never!("an extent that was opened is read").into());
            };
            let found = walk.frame(self.offset)?;
            match found {
                FrameFinding::Frame(header, payload) if header.first >= self.expected => {
                    self.offset += header.frame_bytes();
                    let frame = Frame { first: Sequence(header.first), records: header.records, payload };
                    self.accept(&frame, header.frame_bytes());
                    return Ok(Some(frame));
                }
                FrameFinding::Frame(..) => self.leave_extent(),
                FrameFinding::BrokenPayload(header) => {
                    self.suspect("a frame's content is not what was written");
                    self.offset += header.frame_bytes();
                }
                FrameFinding::Nothing(_) => self.look_further()?,
            }
        }
        self.finish();
        Ok(None)
    }

    /// What was found; whole once [`Survey::next_frame`] has answered with `None`.
    #[must_use]
    pub fn found(&self) -> &Surveyed {
        &self.found
    }

    /// The extent `number`; `false`, and on to the next one, if it is not there.
    fn open_next(&mut self) -> Result<bool, LogError> {
        let Control { key, extent_bytes, .. } = self.control;
        let path = extent::path(&self.dir, self.number);
        let mut walk = match Walk::open(&*self.system, &path, key, self.number, extent_bytes) {
            Ok(walk) => walk,
            Err(LogError::Missing { file }) => {
                self.note(Damage { file, offset: 0, problem: "the file is not there" });
                self.number += 1;
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        // A sector that cannot be read is damage like any other.
        walk.pass_over_unreadable();
        let header = ExtentHeader::decode(key, &walk.bytes(0, BLOCK)?);
        if header != Some(ExtentHeader { number: self.number, extent_bytes }) {
            let problem = "its header is unreadable, or of another extent or log";
            self.note(Damage { file: path, offset: 0, problem });
        } else if walk.len_bytes()? != extent_bytes {
            let offset = walk.len_bytes()?.min(extent_bytes);
            let problem = "it does not have the length that it was made with";
            self.note(Damage { file: path, offset, problem });
        }
        self.offset = FIRST_FRAME;
        self.walk = Some(walk);
        Ok(true)
    }

    fn leave_extent(&mut self) {
        self.end.get_or_insert((self.number, self.offset));
        if let Some(walk) = self.walk.take() {
            self.unknown_end |= walk.unreadable().any(|block| block + BLOCK as u64 > self.offset);
            if let Some(offset) = walk.unreadable().next() {
                let problem = "the device does not read it";
                self.note(Damage { file: walk.path.clone(), offset, problem });
            }
        }
        self.number += 1;
    }

    /// No frame begins here: the end of the extent's frames, unless one comes later.
    fn look_further(&mut self) -> Result<(), LogError> {
        let Some(walk) = &mut self.walk else {
            return Err(never!("an extent that is searched is open").into());
        };
        let after = self.offset + FRAME_ALIGNMENT as u64;
        match walk.find_frame_from(after, self.expected)? {
            Some(place) => {
                self.suspect("a frame is missing or its header is not what was written");
                self.offset = place;
            }
            None => self.leave_extent(),
        }
        Ok(())
    }

    /// What lies here is no frame. If nothing comes after it, it was never acknowledged.
    fn suspect(&mut self, problem: &'static str) {
        let file = extent::path(&self.dir, self.number);
        let former = self.suspect.replace(Damage { file, offset: self.offset, problem });
        former.into_iter().for_each(|damage| self.note(damage));
    }

    fn accept(&mut self, frame: &Frame, bytes: u64) {
        if let Some(damage) = self.suspect.take() {
            self.note(damage);
        }
        if frame.first.0 > self.expected {
            let last = Some(Sequence(frame.first.0 - 1));
            if self.found.damaged_places == 0 {
                let (file, offset) = (extent::path(&self.dir, self.number), self.offset);
                let problem = "records are missing before this place";
                self.note(Damage { file, offset, problem });
            }
            self.found.missing.push(Missing { first: Sequence(self.expected), last });
        }
        (self.end, self.unknown_end) = (None, false);
        self.expected = frame.next().0;
        self.found.next = frame.next();
        self.found.frames += 1;
        self.found.records += u64::from(frame.records);
        self.found.bytes += bytes;
    }

    /// After the last frame: what the log's closing or a damaged last extent tells.
    fn finish(&mut self) {
        let Control { closed_at, .. } = self.control;
        if closed_at > self.expected {
            if let Some(damage) = self.suspect.take() {
                self.note(damage);
            } else if let Some((number, offset)) = self.end {
                let file = extent::path(&self.dir, number);
                self.note(Damage { file, offset, problem: "records are missing at this place" });
            }
            let (first, last) = (Sequence(self.expected), Some(Sequence(closed_at - 1)));
            self.found.missing.push(Missing { first, last });
            self.expected = closed_at;
            self.found.next = Sequence(closed_at);
        }
        // Where the newest extent is damaged as a whole, or not read to its end, records may have been in it.
        let newest = extent::path(&self.dir, self.control.last_extent);
        let gone = |damage: &Damage| damage.file == newest && damage.offset == 0;
        let counted = closed_at == self.expected;
        let already = self.found.missing.iter().any(|missing| missing.last.is_none());
        if !counted && !already && (self.unknown_end || self.found.damage.iter().any(gone)) {
            self.found.missing.push(Missing { first: Sequence(self.expected), last: None });
        }
    }

    fn note(&mut self, damage: Damage) {
        self.found.damaged_places += 1;
        if self.found.damage.len() < DAMAGE_KEPT {
            self.found.damage.push(damage);
        }
    }
}

impl std::fmt::Debug for Survey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Survey")
            .field("dir", &self.dir)
            .field("found", &self.found)
            .finish_non_exhaustive()
    }
}
