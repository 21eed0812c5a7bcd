//! Reading an archive: its segments in order, and the groups in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::segment::{self, SegmentHeader};
use crate::extent::FIRST_FRAME;
use crate::frame::take_record;
use crate::system::{Access, OperatingSystem, System};
use crate::walk::{FrameFinding, Walk};
use crate::{LogError, Sequence};

/// The archived part of one log.
#[derive(Clone)]
pub struct ArchivedLog {
    system: Arc<dyn System>,
    dir: PathBuf,
    /// In order of their first records.
    segments: Vec<Segment>,
    /// Records that nothing from before is brought past.
    breaks: Vec<u64>,
}

/// Notes, durably, that what follows the record `barrier` must not be applied to anything from before it, since
/// changes were made between the two that are in no log.
///
/// # Errors
/// [`LogError::Io`].
pub fn mark_break(dir: &Path, key: u64, barrier: Sequence) -> Result<(), LogError> {
    let system = OperatingSystem;
    system.list(dir).map_err(|error| LogError::io("list", dir, error))?;
    let folder = segment::folder(dir, key);
    system.create_dir(&folder).map_err(|error| LogError::io("create", &folder, error))?;
    let path = folder.join(format!("{:020}{BREAK}", barrier.0));
    let file = system.open(&path, Access::Create, false);
    let synced = file.and_then(|file| file.sync_data()).and_then(|()| system.sync_dir(&folder));
    synced.map_err(|error| LogError::io("create", &path, error))
}

/// The end of the name of such a mark.
const BREAK: &str = ".BREAK";

fn break_of(name: &str) -> Option<u64> {
    name.strip_suffix(BREAK)?.parse().ok()
}

/// A file of the archive.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Where it lies.
    pub path: PathBuf,
    /// Its first record.
    pub first: Sequence,
    /// The record after its last.
    pub next: Sequence,
    /// When its last group was written, in milliseconds since 1970; `None` in a log of the first format.
    pub last_ms: Option<u64>,
    header: SegmentHeader,
}

/// Records that were written together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedGroup {
    /// The number of the first.
    pub first: Sequence,
    /// When they were written, in milliseconds since 1970; `None` in a log of the first format.
    pub time_ms: Option<u64>,
    /// What was appended.
    pub records: Vec<Bytes>,
}

impl ArchivedLog {
    /// What the archive in `dir` holds of the log with this key. None of it is no error.
    ///
    /// # Errors
    /// [`LogError::Io`] if the archive cannot be read, [`LogError::Damaged`] for a segment without a header.
    pub fn open(dir: &Path, key: u64) -> Result<Self, LogError> {
        Self::open_on(Arc::new(OperatingSystem), dir, key)
    }

    /// As [`ArchivedLog::open`], on another [`System`].
    ///
    /// # Errors
    /// As [`ArchivedLog::open`].
    pub fn open_on(system: Arc<dyn System>, dir: &Path, key: u64) -> Result<Self, LogError> {
        system.list(dir).map_err(|error| LogError::io("list", dir, error))?;
        let folder = segment::folder(dir, key);
        let names = match system.list(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            names => names.map_err(|error| LogError::io("list", &folder, error))?,
        };
        let mut segments = Vec::new();
        for first in names.iter().filter_map(|name| segment::first_of(name)) {
            let path = segment::path(&folder, first);
            let header = SegmentHeader::read(&*system, &path)?;
            if (header.key, header.first) != (key, first) {
                let problem = "its header is that of another segment";
                return Err(LogError::Damaged { file: path, offset: 0, problem });
            }
            segments.push(Segment {
                path,
                first: Sequence(first),
                next: Sequence(header.next),
                last_ms: (header.last_ms > 0).then_some(header.last_ms),
                header,
            });
        }
        segments.sort_by_key(|segment| segment.first);
        let mut breaks: Vec<u64> = names.iter().filter_map(|name| break_of(name)).collect();
        breaks.sort_unstable();
        Ok(Self { system, dir: dir.to_owned(), segments, breaks })
    }

    /// Its files, in the order of their records.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Reads a segment from end to end.
    ///
    /// # Errors
    /// [`LogError::Damaged`] with the place, [`LogError::Io`].
    pub fn check(&self, segment: &Segment) -> Result<(), LogError> {
        segment::check(&*self.system, &segment.path, &segment.header)
    }

    /// The groups from record `from` on, as far as the archive goes. The first may begin before it.
    #[must_use]
    pub fn groups_from(&self, from: Sequence) -> ArchivedGroups {
        let segments = self.segments.iter().filter(|segment| segment.next > from).cloned();
        ArchivedGroups {
            system: self.system.clone(),
            dir: self.dir.clone(),
            segments: segments.collect::<Vec<_>>().into_iter(),
            walk: None,
            expected: from.0,
            barrier: self.breaks.iter().copied().find(|barrier| *barrier >= from.0),
        }
    }
}

impl std::fmt::Debug for ArchivedLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let segments = self.segments.len();
        formatter.debug_struct("ArchivedLog").field("dir", &self.dir).field("segments", &segments).finish()
    }
}

/// Groups in order. It ends after an error: a record that is missing is one.
pub struct ArchivedGroups {
    system: Arc<dyn System>,
    dir: PathBuf,
    segments: std::vec::IntoIter<Segment>,
    /// The segment that is read, where the next frame begins, and the number of its first record.
    walk: Option<(Walk, SegmentHeader, u64, u64)>,
    expected: u64,
    /// The first record that is not given out, if there is one.
    barrier: Option<u64>,
}

impl ArchivedGroups {
    fn read(&mut self) -> Result<Option<ArchivedGroup>, LogError> {
        loop {
            let Some((walk, header, offset, next)) = &mut self.walk else {
                let Some(segment) = self.segments.next() else { return Ok(None) };
                let header = segment.header;
                if header.first > self.expected {
                    let reason = format!("records {} to {} are missing", self.expected, header.first - 1);
                    return Err(LogError::Archive { dir: self.dir.clone(), reason });
                }
                let walk = Walk::open(&*self.system, &segment.path, header.key, header.extent, header.end)?;
                self.walk = Some((walk, header, FIRST_FRAME, header.first));
                continue;
            };
            if *next >= header.next {
                self.walk = None;
                continue;
            }
            let found = walk.frame(*offset)?;
            let damaged = |problem| LogError::Damaged { file: walk.path.clone(), offset: *offset, problem };
            let (frame, mut payload) = match found {
                FrameFinding::Frame(frame, payload) if frame.first == *next => (frame, payload),
                _ => return Err(damaged("a frame is missing or is not what was written")),
            };
            let mut records = Vec::new();
            for _ in 0..frame.records {
                let record = take_record(&mut payload);
                records.push(record.ok_or_else(|| damaged("the lengths of a frame's records exceed it"))?);
            }
            *offset += frame.frame_bytes();
            *next = frame.next();
            // Segments may overlap where an extent was archived in part and its log started over.
            if frame.next() <= self.expected {
                continue;
            }
            if let Some(barrier) = self.barrier.filter(|barrier| frame.next() > *barrier) {
                let reason = format!(
                    "before record {barrier} changes were made that are in no log; begin with a backup made after them, \
                     or end before that record"
                );
                return Err(LogError::Archive { dir: self.dir.clone(), reason });
            }
            self.expected = frame.next();
            return Ok(Some(ArchivedGroup { first: Sequence(frame.first), time_ms: frame.time_ms, records }));
        }
    }
}

impl Iterator for ArchivedGroups {
    type Item = Result<ArchivedGroup, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.read();
        if group.is_err() {
            self.segments = Vec::new().into_iter();
            self.walk = None;
        }
        group.transpose()
    }
}
