//! What a backup is made of: a checkpoint of the tree's files, held while they are copied.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rocksdb::checkpoint::Checkpoint;
use rocksdb::{DB, Options};
use scrinium_clock::Clock;

use crate::StoreError;
use crate::keeper::Core;
use crate::tree::{OWN_FAMILY, POSITION_KEY};

/// The log's archive is waited for so long.
const ARCHIVE_WITHIN: Duration = Duration::from_secs(600);

/// A checkpoint of the tree's files. The folder goes when this is dropped.
#[derive(Debug)]
pub struct BackupPoint {
    dir: PathBuf,
    identity: String,
    log_key: u64,
    sequence: u64,
    taken: SystemTime,
}

impl BackupPoint {
    pub(crate) fn take(core: &Core, clock: &Clock) -> Result<Self, StoreError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let log_key = core.committer.read().as_ref().ok_or(StoreError::Closed)?.log_key();
        let folder = &core.tree.folder;
        let mut this = Self {
            dir: folder.backup.join(NEXT.fetch_add(1, Ordering::Relaxed).to_string()),
            identity: folder.identity()?,
            log_key,
            sequence: 0,
            taken: clock.now(),
        };
        core.checkpoint()?;
        let failed = |error| core.tree.error("make a checkpoint of", &error);
        let checkpoint = Checkpoint::new(core.tree.db()).map_err(failed)?;
        checkpoint.create_checkpoint(&this.dir).map_err(failed)?;
        drop(checkpoint);
        // Whatever it holds was written before now.
        this.taken = clock.now();
        this.sequence = read_position(&this.dir)?;
        core.archive_log(ARCHIVE_WITHIN)?;
        Ok(this)
    }

    /// The folder that holds the files, which nobody changes.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The store that they are of.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The log that continues after them; a store that was restored has another.
    #[must_use]
    pub const fn log_key(&self) -> u64 {
        self.log_key
    }

    /// The last record of the log whose effect they hold.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// All of it was written before this time.
    #[must_use]
    pub const fn taken(&self) -> SystemTime {
        self.taken
    }
}

impl Drop for BackupPoint {
    fn drop(&mut self) {
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(path = %self.dir.display(), %error, "a checkpoint stays until the next start");
            }
            _ => {}
        }
    }
}

/// What the files of a checkpoint say of the log. Opening them is also the proof that they belong together.
fn read_position(dir: &Path) -> Result<u64, StoreError> {
    let failed = |error: rocksdb::Error| StoreError::tree("open a checkpoint of", dir, &error);
    let mut options = Options::default();
    options.set_max_open_files(64);
    options.set_skip_stats_update_on_db_open(true);
    // Where nothing else is, its messages are no file of the backup.
    let messages = dir.with_extension("messages");
    options.set_db_log_dir(&messages);
    let read = || -> Result<Option<Vec<u8>>, rocksdb::Error> {
        let db = DB::open_cf_for_read_only(&options, dir, [OWN_FAMILY], false)?;
        db.get(POSITION_KEY)
    };
    let found = read().map_err(failed);
    drop(fs::remove_dir_all(&messages));
    let Some(value) = found? else { return Ok(0) };
    let bytes: [u8; 8] = value.try_into().map_err(|_| StoreError::Corrupt {
        path: dir.to_path_buf(),
        what: "its log position is not a number".to_owned(),
    })?;
    Ok(u64::from_be_bytes(bytes))
}
