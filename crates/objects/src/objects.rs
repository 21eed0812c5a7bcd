//! The stores of objects that a server uses, with what they share: the cache, the limits, the figures.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};
use scrinium_assertion::always;
use scrinium_clock::Clock;
use scrinium_statistics::Registry;

use crate::bucket::Bucket;
use crate::cache::Cache;
use crate::error::ObjectError;
use crate::figures::Figures;
use crate::format::{PIECE_BYTES, Table, encode};
use crate::gate::{Gate, GateLimits, Inside};
use crate::guarded::Guarded;
use crate::name::ObjectName;
use crate::reader::{BLOCK_PIECES, ObjectReader, block_name};
use crate::spool::Spool;

/// Uploads at once, each with some 15 MB in memory, and how many more may wait for how long.
const UPLOADS: GateLimits = GateLimits { at_once: 4, waiting_max: 32, within: Duration::from_secs(30) };

/// Reads at once, each with some 4 MB in memory.
const READS: GateLimits = GateLimits { at_once: 8, waiting_max: 16, within: Duration::from_secs(10) };

/// Opens the store of objects at an address.
pub type Opener = Arc<dyn Fn(&str) -> Result<Box<dyn Bucket>, String> + Send + Sync>;

/// The stores of objects that a server uses. Clones share them.
#[derive(Clone)]
pub struct Objects {
    pub(crate) shared: Arc<SharedBucket>,
}

pub(crate) struct SharedBucket {
    opener: Opener,
    clock: Clock,
    dir: PathBuf,
    buckets: Mutex<HashMap<String, Arc<Guarded>>>,
    pub(crate) cache: Cache,
    pub(crate) fetching: Fetching,
    figures: RwLock<Figures>,
    uploads: Gate,
    reads: Gate,
}

/// An object as those who refer to it know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name.
    pub name: ObjectName,
    /// Bytes of the content.
    pub length: u64,
    /// Bytes of the object.
    pub stored_bytes: u64,
}

/// This many may wait for blocks that others fetch.
const FETCHES_WAITING_MAX: usize = 32;

/// As long as this.
const FETCHES_WITHIN: Duration = Duration::from_secs(30);

/// How an object is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Its content may become shorter by compression.
    pub compressible: bool,
    /// The cache has it too.
    pub keep: bool,
}

/// Which blocks are being fetched, so that many who want the same wait for one of them.
#[derive(Default)]
pub(crate) struct Fetching {
    state: Mutex<FetchingState>,
    ended: Condvar,
}

#[derive(Default)]
struct FetchingState {
    names: HashSet<String>,
    waiting: usize,
}

impl Fetching {
    /// Waits until nobody else fetches this; then it is for the caller to do, unless it is there by now. `None`: too
    /// many wait.
    pub(crate) fn begin(&self, name: &str) -> Option<Fetch<'_>> {
        let until = Instant::now() + FETCHES_WITHIN;
        let mut state = self.state.lock();
        if state.names.contains(name) {
            if state.waiting >= FETCHES_WAITING_MAX {
                return None;
            }
            state.waiting += 1;
            while state.names.contains(name) && !self.ended.wait_until(&mut state, until).timed_out() {}
            state.waiting -= 1;
        }
        state.names.insert(name.to_owned());
        Some(Fetch { fetching: self, name: name.to_owned() })
    }
}

/// Somebody fetches a block until this is dropped.
pub(crate) struct Fetch<'a> {
    fetching: &'a Fetching,
    name: String,
}

impl Drop for Fetch<'_> {
    fn drop(&mut self) {
        self.fetching.state.lock().names.remove(&self.name);
        self.fetching.ended.notify_all();
    }
}

impl Objects {
    /// Keeps its cache and what is on its way out in `dir`, and opens stores of objects by `opener` when they are used.
    #[must_use]
    pub fn new(dir: &Path, opener: Opener) -> Self {
        Self::with_clock(dir, opener, &Clock::default())
    }

    /// As [`Objects::new`], with the clock that says when a store that did not answer is asked again.
    #[must_use]
    pub fn with_clock(dir: &Path, opener: Opener, clock: &Clock) -> Self {
        Spool::clear(dir);
        let shared = SharedBucket {
            opener,
            clock: clock.clone(),
            dir: dir.to_owned(),
            buckets: Mutex::default(),
            cache: Cache::new(dir.join("cache")),
            fetching: Fetching::default(),
            figures: RwLock::default(),
            uploads: Gate::new(UPLOADS),
            reads: Gate::new(READS),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Counts from now on in `statistics`.
    pub fn register_statistics(&self, statistics: &Registry) {
        *self.shared.figures.write() = Figures::register(statistics);
        let shared = Arc::downgrade(&self.shared);
        #[allow(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
        statistics.gauge("Attachment.Store.CacheBytes", move || {
            shared.upgrade().map_or(0.0, |shared| shared.cache.bytes() as f64)
        });
    }

    /// The cache keeps at most so much; 0: nothing.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.shared.cache.set_limit(bytes);
    }

    /// A file for a content that is on its way out.
    ///
    /// # Errors
    /// [`ObjectError::Io`]
    pub fn spool(&self) -> Result<Spool, ObjectError> {
        Spool::create(&self.shared.dir)
    }

    /// Whether the store at this address can be opened; that it answers is not looked at.
    ///
    /// # Errors
    /// [`ObjectError::Away`] with the reason.
    pub fn open(&self, address: &str) -> Result<(), ObjectError> {
        self.shared.bucket(address).map(drop)
    }

    /// Writes an object of `length` bytes, which `content` gives, and which are those of its name. Returns the bytes
    /// of the object, which is there durably.
    ///
    /// # Errors
    /// [`ObjectError`]; there is no object then, or one that nobody knows of.
    pub fn write(
        &self,
        address: &str,
        name: &ObjectName,
        length: u64,
        content: &mut dyn Read,
        options: WriteOptions,
    ) -> Result<u64, ObjectError> {
        let WriteOptions { compressible, keep } = options;
        let bucket = self.shared.bucket(address)?;
        let _inside = SharedBucket::enter(&self.shared.uploads, &bucket)?;
        let figures = self.shared.figures();
        let _timer = figures.upload_time.start();
        let mut writer = bucket.begin(name, &figures)?;
        let mut table = Table::default();
        let mut block = Vec::new();
        let keep = keep && self.shared.cache.is_used();
        let mut left = length;
        while left > 0 {
            let mut piece = vec![0; left.min(PIECE_BYTES) as usize];
            content.read_exact(&mut piece).map_err(|error| ObjectError::Source(error.to_string()))?;
            left -= piece.len() as u64;
            let stored = encode(&piece, compressible);
            table.push(&piece, stored.len());
            writer.put(&stored)?;
            if keep {
                block.extend_from_slice(&stored);
                let number = (length - left).div_ceil(PIECE_BYTES);
                if number.is_multiple_of(BLOCK_PIECES) || left == 0 {
                    self.shared.cache.put(&block_name(name, (number - 1) / BLOCK_PIECES), &block);
                    block.clear();
                }
            }
        }
        if table.digest() != Some(name.digest) {
            return Err(ObjectError::Source(format!("it is not content {name}")));
        }
        let tail = table.encode(length);
        let stored_bytes = table.end() + tail.len() as u64;
        always!(
            Table::decode(&tail, &name.digest, length, stored_bytes).is_some(),
            "the table of an object is read as it is written",
            "{name} of {length} bytes"
        )?;
        writer.put(&tail)?;
        writer.finish()?;
        figures.uploads.add(1);
        figures.upload_bytes.add(stored_bytes);
        Ok(stored_bytes)
    }

    /// What reads an object.
    #[must_use]
    pub fn reader(&self, address: &str, stored: Stored) -> ObjectReader {
        ObjectReader::new(self.clone(), address, stored)
    }

    /// Whether an object is there, with the length that it should have.
    ///
    /// # Errors
    /// [`ObjectError::Missing`], [`ObjectError::Damaged`], and that the store cannot be asked.
    pub fn check(&self, address: &str, stored: &Stored) -> Result<(), ObjectError> {
        let bucket = self.shared.bucket(address)?;
        let object = || format!("{address}/{}", stored.name);
        match bucket.size(&stored.name, &self.shared.figures())? {
            Some(size) if size == stored.stored_bytes => Ok(()),
            Some(size) => {
                let problem = format!("it has {size} bytes instead of {}", stored.stored_bytes);
                Err(ObjectError::Damaged { object: object(), problem })
            }
            None => Err(ObjectError::Missing { object: object() }),
        }
    }

    /// Removes an object, durably; that it is not there is no error.
    ///
    /// # Errors
    /// [`ObjectError`]
    pub fn remove(&self, address: &str, name: &ObjectName) -> Result<(), ObjectError> {
        let figures = self.shared.figures();
        self.shared.bucket(address)?.remove(name, &figures)?;
        figures.removed.add(1);
        Ok(())
    }

    /// The names and lengths of the objects in a folder of names.
    ///
    /// # Errors
    /// [`ObjectError`]
    pub fn list(&self, address: &str, folder: &str) -> Result<Vec<(String, u64)>, ObjectError> {
        self.shared.bucket(address)?.list(folder, &self.shared.figures())
    }
}

impl SharedBucket {
    pub(crate) fn figures(&self) -> Figures {
        self.figures.read().clone()
    }

    /// A store that could not be opened is tried again the next time.
    pub(crate) fn bucket(&self, address: &str) -> Result<Arc<Guarded>, ObjectError> {
        let mut buckets = self.buckets.lock();
        if let Some(bucket) = buckets.get(address) {
            return Ok(Arc::clone(bucket));
        }
        let opened = (self.opener)(address)
            .map_err(|reason| ObjectError::Away { address: address.to_owned(), reason })?;
        let bucket = Arc::new(Guarded::new(address, opened, self.clock.clone()));
        buckets.insert(address.to_owned(), Arc::clone(&bucket));
        Ok(bucket)
    }

    fn enter<'a>(gate: &'a Gate, bucket: &Guarded) -> Result<Inside<'a>, ObjectError> {
        gate.enter().ok_or_else(|| ObjectError::Busy { address: bucket.address().to_owned() })
    }

    pub(crate) fn enter_to_read(&self, bucket: &Guarded) -> Result<Inside<'_>, ObjectError> {
        Self::enter(&self.reads, bucket)
    }
}
