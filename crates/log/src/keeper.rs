//! Extents in stock: the next one made ready ahead of need, released ones kept for reuse.
//!
//! A thread does it in the background, so that no commit waits for an extent's worth of zeros. Where
//! it is behind, or cannot run, the writer does the same work itself when it needs an extent.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex, MutexGuard};
use scrinium_assertion::{always, never};

use crate::LogError;
use crate::buffer::{AlignedBuffer, BLOCK, write_all};
use crate::control::{Control, ControlFile};
use crate::error::lacks_handles;
use crate::extent::{self, ExtentHeader};
use crate::system::{Access, FileHandle, System};

/// Zeros are written in pieces of this size.
const ZEROS_BYTES: usize = 1 << 20;

/// An extent that is durable, named by the control file, and holds no frame yet.
pub(crate) struct Prepared {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn FileHandle>,
}

/// What there is and how to make more.
pub(crate) struct Stock {
    pub(crate) system: Arc<dyn System>,
    pub(crate) dir: PathBuf,
    pub(crate) direct: bool,
    pub(crate) control: ControlFile,
    /// Whole files outside the control file's range: released extents, or one just made.
    pub(crate) spares: Vec<PathBuf>,
    pub(crate) spare_extents: usize,
    pub(crate) ready: VecDeque<Prepared>,
    /// No more files than this are made.
    pub(crate) max_extents: u64,
    /// What that comes from, to be told.
    pub(crate) max_bytes: u64,
    /// How many files there are, for anyone who wants to watch it.
    pub(crate) files: Arc<AtomicU64>,
}

/// The oldest extent that is still wanted, and its first record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) first_extent: u64,
    pub(crate) base: u64,
}

#[derive(Default)]
struct Requests {
    prepare: bool,
    release: Option<Release>,
    stop: bool,
}

struct SharedKeeper {
    requests: Mutex<Requests>,
    wake: Condvar,
    stock: Mutex<Stock>,
}

/// The stock and its thread.
pub(crate) struct Keeper {
    shared: Arc<SharedKeeper>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread and has it prepare an extent if none is ready.
    pub(crate) fn start(stock: Stock) -> Result<Self, LogError> {
        let system = stock.system.clone();
        let dir = stock.dir.clone();
        let requests = Requests { prepare: stock.ready.is_empty(), ..Requests::default() };
        let shared = Arc::new(SharedKeeper {
            requests: Mutex::new(requests),
            wake: Condvar::new(),
            stock: Mutex::new(stock),
        });
        let work = {
            let shared = shared.clone();
            Box::new(move || shared.run())
        };
        let thread = system
            .spawn("log-extents", work)
            .map_err(|error| LogError::io("start a thread for", &dir, error))?;
        Ok(Self { shared, thread })
    }

    /// The next extent: at once if one is ready, else after making it.
    pub(crate) fn take(&self) -> Result<Prepared, LogError> {
        let mut stock = self.stock_after_release()?;
        let prepared = match stock.ready.pop_front() {
            Some(prepared) => prepared,
            None => stock.prepare()?,
        };
        drop(stock);
        self.shared.requests.lock().prepare = true;
        self.shared.wake.notify_one();
        Ok(prepared)
    }

    /// Makes sure that there is a next extent.
    pub(crate) fn ensure(&self) -> Result<(), LogError> {
        self.stock_after_release()?.fill()
    }

    /// What was released and not yet taken care of may be all the space there is.
    fn stock_after_release(&self) -> Result<MutexGuard<'_, Stock>, LogError> {
        let mut stock = self.shared.stock.lock();
        let release = self.shared.requests.lock().release.take();
        release.map_or(Ok(()), |release| stock.release(release))?;
        Ok(stock)
    }

    /// Notes that older extents are free. It is done in the background; after a crash before that, they
    /// are merely held for longer.
    pub(crate) fn release(&self, release: Release) {
        self.shared.requests.lock().release = Some(release);
        self.shared.wake.notify_one();
    }

    /// Ends the thread and notes that the log was closed in order with `next` as the next record.
    pub(crate) fn close(&mut self, next: Option<u64>) -> Result<(), LogError> {
        self.shared.requests.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed, and the stock is as it was before the step.
            drop(thread.join());
        }
        let Some(next) = next else { return Ok(()) };
        self.stock_after_release()?.control.change(|control| control.closed_at = next)
    }
}

impl SharedKeeper {
    fn run(&self) {
        loop {
            let mut requests = self.requests.lock();
            while !requests.stop && !requests.prepare && requests.release.is_none() {
                self.wake.wait(&mut requests);
            }
            if requests.stop {
                return;
            }
            let prepare = std::mem::take(&mut requests.prepare);
            drop(requests);
            let mut stock = self.stock.lock();
            // Taken under the stock's lock, so that releases are done in their order.
            let release = self.requests.lock().release.take();
            // Failures are not lost: anyone who needs an extent next repeats the step and gets the error.
            if let Some(release) = release {
                drop(stock.release(release));
            }
            if prepare {
                drop(stock.fill());
            }
        }
    }
}

impl Stock {
    /// Keeps one extent ready.
    fn fill(&mut self) -> Result<(), LogError> {
        if self.ready.is_empty() {
            let prepared = self.prepare()?;
            self.ready.push_back(prepared);
        }
        Ok(())
    }

    /// Makes the next extent, of a spare file if there is any.
    pub(crate) fn prepare(&mut self) -> Result<Prepared, LogError> {
        let spare = match self.spares.pop() {
            Some(spare) => spare,
            None => self.make()?,
        };
        let content = self.control.content();
        let header = ExtentHeader { number: content.last_extent + 1, extent_bytes: content.extent_bytes };
        let path = extent::path(&self.dir, header.number);
        if let Err(error) = self.system.rename(&spare, &path) {
            let error = self.refused("rename", &spare, error);
            self.spares.push(spare);
            return Err(error);
        }
        // If one of these steps fails, the file stays, in no list, until another one takes its name: its zeros
        // cannot be trusted after a failed sync, and the control file may name it after a failed change.
        let file = match self.system.open(&path, Access::Write, self.direct) {
            Ok(file) => file,
            Err(error) => {
                // Nothing is synced yet: the file is as good a spare as before.
                self.spares.push(path.clone());
                return Err(LogError::opening("open", &path, error));
            }
        };
        self.write_header(&*file, &header).map_err(|error| self.refused("prepare", &path, error))?;
        self.control.change(|control| control.last_extent = header.number)?;
        self.count_files();
        Ok(Prepared { number: header.number, path, file })
    }

    /// Makes a file of zeros, not yet synced.
    fn make(&self) -> Result<PathBuf, LogError> {
        if self.count_files() >= self.max_extents {
            let reason = "what it holds is not yet in the databases' own files".into();
            return Err(LogError::AtLimit { dir: self.dir.clone(), max_bytes: self.max_bytes, reason });
        }
        let path = self.dir.join(extent::UNFINISHED);
        self.write_zeros(&path).map_err(|error| {
            // Half an extent must not keep the space that others wait for.
            drop(self.system.remove(&path));
            match self.refused("create", &path, error) {
                LogError::Io { action, file, source } if lacks_memory(&source) => {
                    LogError::Scarce { action, file, source }
                }
                refused => refused,
            }
        })?;
        Ok(path)
    }

    /// Overwriting written blocks is what makes a sync cheap, so the whole extent is written once. It is
    /// synced with its header.
    fn write_zeros(&self, path: &Path) -> io::Result<()> {
        let extent_bytes = self.control.content().extent_bytes;
        let file = self.system.open(path, Access::Create, self.direct)?;
        file.reserve(extent_bytes)?;
        let zeros = AlignedBuffer::new(ZEROS_BYTES);
        let mut offset = 0;
        while offset < extent_bytes {
            let left = usize::try_from(extent_bytes - offset).unwrap_or(ZEROS_BYTES);
            let piece = zeros.bytes().get(..left.min(ZEROS_BYTES));
            let piece =
                piece.ok_or_else(|| io::Error::other(never!("the zeros are as many as were made")))?;
            write_all(&*file, piece, offset)?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    fn write_header(&self, file: &dyn FileHandle, header: &ExtentHeader) -> io::Result<()> {
        let mut block = AlignedBuffer::new(BLOCK);
        header.encode(self.control.content().key, block.bytes_mut()).map_err(io::Error::other)?;
        write_all(file, block.bytes(), 0)?;
        file.sync_data()?;
        self.system.sync_dir(&self.dir)
    }

    /// Takes extents out of the log, then keeps or deletes their files.
    fn release(&mut self, release: Release) -> Result<(), LogError> {
        let former = self.control.content().first_extent;
        if release.first_extent <= former {
            return Ok(());
        }
        always!(
            release.first_extent <= self.control.content().last_extent,
            "the extent that is written is never let go of",
            "{release:?}, {:?}",
            self.control.content()
        )?;
        self.control.change(|control| {
            control.first_extent = release.first_extent;
            control.base = release.base;
        })?;
        for number in former..release.first_extent {
            self.keep_or_delete(extent::path(&self.dir, number))?;
        }
        self.count_files();
        Ok(())
    }

    /// Extents that the control file names and spare files.
    pub(crate) fn count_files(&self) -> u64 {
        let Control { first_extent, last_extent, .. } = *self.control.content();
        let files = (last_extent + 1).saturating_sub(first_extent) + self.spares.len() as u64;
        self.files.store(files, Ordering::Relaxed);
        files
    }

    /// Keeps a file that nothing names any more, unless there are enough.
    pub(crate) fn keep_or_delete(&mut self, path: PathBuf) -> Result<(), LogError> {
        if self.spares.len() < self.spare_extents && self.count_files() < self.max_extents {
            self.spares.push(path);
            return Ok(());
        }
        match self.system.remove(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(LogError::io("delete", &path, error)),
            _ => Ok(()),
        }
    }

    fn full(&self) -> LogError {
        LogError::Full { dir: self.dir.clone(), needed_bytes: self.control.content().extent_bytes }
    }

    fn refused(&self, action: &'static str, file: &Path, error: io::Error) -> LogError {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => self.full(),
            _ if lacks_handles(&error) => LogError::opening(action, file, error),
            _ => LogError::io(action, file, error),
        }
    }
}

/// Of a step that syncs nothing: a sync that failed for want of memory has failed all the same.
fn lacks_memory(error: &io::Error) -> bool {
    error.kind() == ErrorKind::OutOfMemory
}
