//! An open log with its single writer.

use std::any::Any;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use scrinium_assertion::{always, never};

use crate::archive::segment::{Job, Source};
use crate::archive::{Archive, Archiver};
use crate::frame;
use crate::keeper::{Keeper, Release};
use crate::recovery::{self, Live, Opened};
use crate::system::{OperatingSystem, System};
use crate::writer::Writer;
use crate::{Cause, Chain, LogError, LogOptions, Reader};

/// Its lock keeps a second process out of the directory.
pub(crate) const LOCK: &str = "log.lock";

/// The number of a record in the log; the first ever written is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// What opening found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The oldest record held (equal to `next` if there is none).
    pub first: Sequence,
    /// The number that the next record will get.
    pub next: Sequence,
    /// An unfinished, never acknowledged write that was cut off. Only a write of which the beginning had
    /// reached the disk can be told from nothing at all.
    pub cut: Option<TornTail>,
}

/// A write that a crash interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The extent in which it began.
    pub file: PathBuf,
    /// Where.
    pub offset: u64,
    /// How many bytes of it are known to be dropped: the whole frame's, if its header can be read.
    pub bytes: u64,
}

/// An open log directory with its single writer.
///
/// Dropping it closes it; [`Log::close`] does the same and says whether it succeeded.
pub struct Log {
    options: LogOptions,
    system: Arc<dyn System>,
    key: u64,
    extent_bytes: u64,
    live: VecDeque<Live>,
    writer: Writer,
    next: u64,
    keeper: Keeper,
    archiver: Option<Archiver>,
    /// What was to be let go of, whether or not the archive had it.
    released: u64,
    /// The last attempt to go on in a new extent found no space.
    full: bool,
    failure: Option<Cause>,
    closed: bool,
    extents: Arc<AtomicU64>,
    files: Arc<AtomicU64>,
    /// The last to go, so that the next process finds everything written.
    _lock: Box<dyn Any + Send + Sync>,
}

impl Log {
    /// Opens the log of `options.dir`, or makes one.
    ///
    /// The last whole frame is written and synced once more, so that everything that [`Log::read_from`]
    /// gives is durable, also after a sync that failed. A log that exists keeps its size of extents.
    ///
    /// # Errors
    /// [`LogError::Locked`], [`LogError::NewerFormat`], [`LogError::Damaged`], [`LogError::Missing`],
    /// [`LogError::Options`], [`LogError::Full`] if there is no space for a new log, [`LogError::Io`].
    pub fn open(options: LogOptions) -> Result<(Self, Recovery), LogError> {
        Self::open_on(Arc::new(OperatingSystem), options)
    }

    /// As [`Log::open`], on another [`System`].
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_on(system: Arc<dyn System>, mut options: LogOptions) -> Result<(Self, Recovery), LogError> {
        options.check()?;
        let dir = options.dir.clone();
        system.create_dir(&dir).map_err(|error| LogError::io("create", &dir, error))?;
        let lock_path = dir.join(LOCK);
        let lock = system.lock(&lock_path).map_err(|error| LogError::io("lock", &lock_path, error))?;
        let Some(lock) = lock else { return Err(LogError::Locked { dir }) };
        let Opened { mut stock, live, active, offset, unfinished, recovery } =
            recovery::open(system.clone(), &options)?;
        let (key, extent_bytes) = (stock.control.content().key, stock.control.content().extent_bytes);
        options.extent_bytes = extent_bytes;
        options.max_record_bytes = options.max_record_bytes.min(options.largest_record_bytes());
        let writer = Writer::new(&options, key, active, offset, &unfinished)?;
        stock.count_files();
        let files = stock.files.clone();
        if stock.control.content().closed_at != 0 {
            stock.control.change(|control| control.closed_at = 0)?;
        }
        let archiver = start_archiver(&system, &options, (key, extent_bytes), &live)?;
        let log = Self {
            options,
            system,
            archiver,
            released: 0,
            key,
            extent_bytes,
            extents: Arc::new(AtomicU64::new(live.len() as u64)),
            live,
            writer,
            next: recovery.next.0,
            keeper: Keeper::start(stock)?,
            full: false,
            failure: None,
            closed: false,
            files,
            _lock: lock,
        };
        Ok((log, recovery))
    }

    /// Reads records from `from` on, up to the last one that is there now.
    ///
    /// # Errors
    /// [`LogError::NotHeld`] if that record was released or is more than one past the last. Reading gives
    /// [`LogError::Damaged`] with the place, and [`LogError::Io`].
    pub fn read_from(&self, from: Sequence) -> Result<Reader<'_>, LogError> {
        let first = self.live.front().ok_or_else(|| never!("an extent is always written"))?.first;
        if from.0 < first || from.0 > self.next {
            let (first, next) = (Sequence(first), Sequence(self.next));
            return Err(LogError::NotHeld { sequence: from, first, next });
        }
        let before = self.live.partition_point(|live| live.first <= from.0).saturating_sub(1);
        let extents = self.live.iter().skip(before).copied().collect();
        let dir = self.options.dir.clone();
        let format = (self.key, self.extent_bytes);
        Ok(Reader::new(self.system.clone(), dir, format, extents, from.0, self.next))
    }

    /// The chain, which ends somewhere, brought forward over all records that are here after it.
    ///
    /// # Errors
    /// As [`Log::read_from`]: the record after the chain's last must be here, or be the next.
    pub fn extend_chain(&self, chain: Chain) -> Result<Chain, LogError> {
        let records = self.read_from(chain.next())?;
        records.into_iter().try_fold(chain, |chain, record| Ok(chain.with(&record?.bytes)))
    }

    /// Makes room for a group, so that appending it next cannot fail for want of space. Answers the number of the last record
    /// there is.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub(crate) fn prepare(&mut self, records: &[Bytes]) -> Result<Sequence, LogError> {
        self.check_failure()?;
        self.check_size(records)?;
        let frame_bytes = frame::frame_bytes(frame::payload_bytes(records) as u64);
        let room = self.make_room(frame_bytes);
        self.full = matches!(room, Err(LogError::Full { .. } | LogError::AtLimit { .. }));
        room.map(|()| self.last())
    }

    /// Appends records as one group: one frame, one sync. Answers the number of the last. No records: nothing
    /// is written, and the answer is that of the last record there is.
    ///
    /// # Errors
    /// [`LogError::TooLarge`], [`LogError::Full`] and [`LogError::Scarce`] leave the log as it was; [`LogError::Io`] is final: the
    /// group may or may not be there when the log is reopened, and until then appends are
    /// [`LogError::Failed`].
    pub fn append(&mut self, records: &[Bytes]) -> Result<Sequence, LogError> {
        self.check_failure()?;
        self.check_size(records)?;
        if records.is_empty() {
            return Ok(self.last());
        }
        let frame_bytes = frame::frame_bytes(frame::payload_bytes(records) as u64);
        let written = self
            .make_room(frame_bytes)
            .and_then(|()| self.writer.append(self.next, records, self.options.clock.now_ms()));
        self.full = matches!(written, Err(LogError::Full { .. } | LogError::AtLimit { .. }));
        match written {
            Ok(()) => self.next += records.len() as u64,
            Err(passing) if passing.may_pass() => return Err(passing),
            Err(error) => {
                // What the disk holds now is unknown; only reading it again can tell.
                self.failure = Some(Arc::new(error.clone()));
                return Err(error);
            }
        }
        Ok(self.last())
    }

    /// Lets go of extents that hold only records before `sequence`; they are reused or deleted in the
    /// background. The extent being written always stays, and so do those that are not archived yet.
    ///
    /// # Errors
    /// [`LogError::Failed`] after a failed write.
    pub fn release_before(&mut self, sequence: Sequence) -> Result<(), LogError> {
        self.check_failure()?;
        self.released = self.released.max(sequence.0);
        self.release();
        Ok(())
    }

    /// Copies what is written of the last extent into the archive. Returns the record before which all
    /// will then be in it; `None` without an archive.
    pub fn archive_tail(&mut self) -> Option<Sequence> {
        // The archive may have caught up since something was to be let go of.
        self.release();
        let archiver = self.archiver.as_ref()?;
        let live = self.live.back().copied().filter(|live| live.first < self.next);
        if let Some(live) = live {
            archiver.copy(Job { live, next: self.next });
        }
        Some(Sequence(self.next))
    }

    /// The archive, if there is one.
    #[must_use]
    pub fn archive(&self) -> Option<Archive> {
        self.archiver.as_ref().map(Archiver::archive)
    }

    /// What tells this log from every other one, also from those of the same store before it was restored.
    #[must_use]
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Waits until the extents that hold only records before `sequence` are archived, if they are to be.
    pub(crate) fn wait_for_archive(&self, sequence: Sequence, limit: Duration) {
        let Some(archive) = self.archive() else { return };
        let complete = self.live.back().map_or(0, |live| live.first);
        // Where it fails, going on says so.
        drop(archive.wait(Sequence(sequence.0.min(complete)), limit));
    }

    /// Where the log could be emptied but for the archive, that is what is wrong.
    fn or_archive(&self, error: LogError) -> LogError {
        let LogError::AtLimit { dir, max_bytes, .. } = error else { return error };
        let status = self.archive().map(|archive| archive.status());
        let Some(status) = status.filter(|status| status.next.0 < self.released) else {
            let reason = "what it holds is not yet in the databases' own files".into();
            return LogError::AtLimit { dir, max_bytes, reason };
        };
        let why = status.failure.map_or_else(|| "it is behind".to_owned(), |failure| failure.to_string());
        let reason =
            format!("what it holds is not yet in its archive {}: {why}", status.dir.display()).into();
        LogError::AtLimit { dir, max_bytes, reason }
    }

    fn release(&mut self) {
        let archived = self.archiver.as_ref().map_or(u64::MAX, Archiver::next);
        let before = self.released.min(archived);
        let former = self.live.len();
        while self.live.get(1).is_some_and(|second| second.first <= before) {
            self.live.pop_front();
        }
        let first = self.live.front().filter(|_| self.live.len() < former);
        if let Some(first) = first {
            self.keeper.release(Release { first_extent: first.number, base: first.first });
            self.extents.store(self.live.len() as u64, Ordering::Relaxed);
        }
    }

    /// Makes sure that what is written goes where it will be looked for. If not, nothing is taken any more.
    ///
    /// # Errors
    /// [`LogError::Io`] if the directory or the extent that is written was deleted, moved or hidden;
    /// [`LogError::Failed`] after a failed write.
    pub fn check_there(&mut self) -> Result<(), LogError> {
        self.check_failure()?;
        let there = self.writer.check_there(&*self.system);
        if let Err(error) = &there {
            self.failure = Some(Arc::new(error.clone()));
        }
        there
    }

    /// Closes the log in order, so that the next opening can tell if its end was lost since.
    ///
    /// # Errors
    /// [`LogError::Io`]; every record is there all the same.
    pub fn close(mut self) -> Result<(), LogError> {
        self.end()
    }

    /// The number of the last record, 0 if there was none ever.
    pub(crate) fn last(&self) -> Sequence {
        Sequence(self.next.saturating_sub(1))
    }

    pub(crate) fn options(&self) -> &LogOptions {
        &self.options
    }

    /// How many extents hold records, for anyone who wants to watch it.
    pub(crate) fn extents(&self) -> Arc<AtomicU64> {
        self.extents.clone()
    }

    /// How many files of extents there are, spare ones with them.
    pub(crate) fn files(&self) -> Arc<AtomicU64> {
        self.files.clone()
    }

    fn check_failure(&self) -> Result<(), LogError> {
        self.failure.as_ref().map_or(Ok(()), |cause| Err(LogError::Failed { cause: cause.clone() }))
    }

    fn check_size(&self, records: &[Bytes]) -> Result<(), LogError> {
        let limit_bytes = self.options.max_record_bytes;
        if let Some(record) = records.iter().find(|record| record.len() > limit_bytes) {
            return Err(LogError::TooLarge { bytes: record.len(), limit_bytes });
        }
        let (bytes, limit_bytes) =
            (frame::payload_bytes(records), frame::RECORD_OVERHEAD + self.options.largest_record_bytes());
        if bytes > limit_bytes {
            return Err(LogError::TooLarge { bytes, limit_bytes });
        }
        Ok(())
    }

    /// Goes on in the next extent if this one has no room for the frame. After a full disk even a frame that
    /// fits waits until there is a next extent: what came before it was refused, and it may build on that.
    fn make_room(&mut self, frame_bytes: u64) -> Result<(), LogError> {
        if self.writer.takes(frame_bytes) {
            return if self.full { self.keeper.ensure() } else { Ok(()) };
        }
        self.release();
        let prepared = self.keeper.take().map_err(|error| self.or_archive(error))?;
        let complete = *self.live.back().ok_or_else(|| never!("an extent is always written"))?;
        always!(
            prepared.number == complete.number + 1 && complete.first < self.next,
            "extents are written one after the other, and none is left without a record",
            "{complete:?}, then {} at record {}",
            prepared.number,
            self.next
        )?;
        if let Some(archiver) = &self.archiver {
            archiver.copy(Job { live: complete, next: self.next });
        }
        self.live.push_back(Live { number: prepared.number, first: self.next });
        self.extents.store(self.live.len() as u64, Ordering::Relaxed);
        self.writer.go_on_in(prepared);
        Ok(())
    }

    fn end(&mut self) -> Result<(), LogError> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        if let Some(archiver) = &mut self.archiver {
            archiver.stop();
        }
        self.keeper.close(self.failure.is_none().then_some(self.next))
    }
}

fn start_archiver(
    system: &Arc<dyn System>,
    options: &LogOptions,
    (key, extent_bytes): (u64, u64),
    live: &VecDeque<Live>,
) -> Result<Option<Archiver>, LogError> {
    let Some(archive_dir) = options.archive_dir.clone() else { return Ok(None) };
    let source = Source { dir: options.dir.clone(), key, extent_bytes };
    let complete = live.iter().zip(live.iter().skip(1));
    let complete = complete.map(|(live, after)| Job { live: *live, next: after.first }).collect();
    let active = live.back().ok_or_else(|| never!("an extent is always written"))?.first;
    Archiver::start(system.clone(), source, archive_dir, complete, active).map(Some)
}

impl Drop for Log {
    fn drop(&mut self) {
        // Anyone who wants to know calls `close`; without the mark the next opening looks closer.
        drop(self.end());
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Log")
            .field("dir", &self.options.dir)
            .field("next", &self.next)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}
