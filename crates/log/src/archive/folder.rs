//! Reading an archive: its segments in order, and the groups in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::segment::{self, SegmentHeader};
use crate::extent::FIRST_FRAME;
use crate::frame::take_record;
use crate::system::{OperatingSystem, System};
use crate::walk::{Found, Walk};
use crate::{LogError, Sequence};

/// The archived part of one log.
#[derive(Clone)]
pub struct ArchivedLog {
    system: Arc<dyn System>,
    dir: PathBuf,
    /// In order of their first records.
    segments: Vec<Segment>,
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
        Ok(Self { system, dir: dir.to_owned(), segments })
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
                Found::Frame(frame, payload) if frame.first == *next => (frame, payload),
                _ => return Err(damaged("a frame is missing or is not what was written")),
            };
            let mut records = Vec::new();
            for _ in 0..frame.records {
                let record = take_record(&mut payload);
                records.push(record.ok_or_else(|| damaged("the lengths of a frame's records exceed it"))?);
            }
            *offset += frame.frame_bytes();
            *next = frame.next();
            // Segments may overlap where an extent was archived in part and its log begun anew.
            if frame.next() <= self.expected {
                continue;
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
