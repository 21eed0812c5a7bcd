//! How long the disk takes to make things durable: what is slow is logged, with its file.
//!
//! Watched are the files of the log, which every commit waits for. RocksDB syncs its files from threads of its own and
//! does not tell; nobody waits for these but a checkpoint, and a disk that is slow for them is slow for the log, if it lies
//! there too.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use scrinium_log::system::{Access, FileHandle, OperatingSystem, System};
use scrinium_statistics::{Counter, Registry};

/// Measures, and reports what takes longer than it may.
pub(crate) struct Syncs {
    /// 0: nothing is reported.
    report_above_us: AtomicU64,
    longest_us: Arc<AtomicU64>,
    slow: Counter,
}

impl Syncs {
    pub(crate) fn register(statistics: &Registry, report_above: Duration) -> Arc<Self> {
        let longest_us = Arc::new(AtomicU64::new(0));
        let longest = Arc::clone(&longest_us);
        #[allow(clippy::cast_precision_loss, reason = "a time needs no more than 53 bits")]
        statistics.gauge("FileCache.Sync.Longest.Milliseconds", move || {
            longest.load(Ordering::Relaxed) as f64 / 1000.0
        });
        let slow = statistics.counter("FileCache.Sync.Slow");
        let this = Self { report_above_us: AtomicU64::new(0), longest_us, slow };
        this.report_above(report_above);
        Arc::new(this)
    }

    /// Reports what takes so long or longer from now on; zero: nothing.
    pub(crate) fn report_above(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.report_above_us.store(micros, Ordering::Relaxed);
    }

    /// Does what makes the file, or folder, durable.
    pub(crate) fn watch<T>(&self, path: &Path, sync: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = sync();
        self.note(path, began.elapsed());
        done
    }

    fn note(&self, path: &Path, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.longest_us.fetch_max(micros, Ordering::Relaxed);
        let report_above_us = self.report_above_us.load(Ordering::Relaxed);
        if report_above_us > 0 && micros >= report_above_us {
            self.slow.add(1);
            let milliseconds = micros / 1000;
            tracing::warn!(file = %path.display(), milliseconds, "the disk was slow to make a file durable");
        }
    }
}

/// The operating system, whose syncs are watched.
pub(crate) struct WatchedSystem(pub(crate) Arc<Syncs>);

struct WatchedFile {
    file: Box<dyn FileHandle>,
    path: PathBuf,
    syncs: Arc<Syncs>,
}

impl System for WatchedSystem {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        OperatingSystem.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        OperatingSystem.list(dir)
    }

    fn open(&self, path: &Path, access: Access, direct: bool) -> io::Result<Box<dyn FileHandle>> {
        let file = OperatingSystem.open(path, access, direct)?;
        Ok(Box::new(WatchedFile { file, path: path.to_path_buf(), syncs: Arc::clone(&self.0) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OperatingSystem.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OperatingSystem.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.watch(dir, || OperatingSystem.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        OperatingSystem.lock(path)
    }

    fn random(&self) -> io::Result<u64> {
        OperatingSystem.random()
    }

    fn leads_to(&self, path: &Path, file: &dyn FileHandle) -> io::Result<bool> {
        OperatingSystem.leads_to(path, file)
    }

    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<Option<JoinHandle<()>>> {
        OperatingSystem.spawn(name, work)
    }
}

impl FileHandle for WatchedFile {
    fn len_bytes(&self) -> io::Result<u64> {
        self.file.len_bytes()
    }

    fn identity(&self) -> io::Result<Option<(u64, u64)>> {
        self.file.identity()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.file.reserve(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.syncs.watch(&self.path, || self.file.sync_data())
    }
}
