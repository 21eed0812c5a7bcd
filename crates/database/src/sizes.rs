//! How large a database is, and how much of it is garbage.
//!
//! Bytes of records that are there are counted with every update, before compression. What a byte of them takes on disk
//! is measured when a database was compacted, and else taken from what all databases of the server take. The rest of what
//! a database's range takes is garbage: superseded and deleted records that lie in files still. So telling it costs
//! a look at two records, and one at the indexes of the files.

use std::time::Duration;

use crate::database::{Database, size_in};
use crate::error::Result;
use crate::header::Header;
use crate::keys;

/// What all databases take is looked at again after this time.
const SHARE_FOR: Duration = Duration::from_secs(300);

/// Nothing is measured at databases with less in files than this, in which the last blocks of files weigh too much.
const MEASURED_FROM_BYTES: u64 = 4 << 20;

const MILLION: f64 = 1e6;

/// How large a database is, as CouchDB tells it; without indexes, and without contents, which may belong to several
/// databases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseSizes {
    /// Bytes on disk, about.
    pub file_bytes: u64,
    /// Bytes on disk that would be left if it were compacted, about.
    pub active_bytes: u64,
    /// Bytes of all fields and attachments, before compression and sharing.
    pub external_bytes: u64,
}

impl DatabaseSizes {
    /// Bytes on disk that a compaction would give back, about.
    #[must_use]
    pub const fn garbage_bytes(&self) -> u64 {
        self.file_bytes.saturating_sub(self.active_bytes)
    }

    /// The same in percent of all bytes on disk.
    #[must_use]
    pub fn garbage_percent(&self) -> u64 {
        self.garbage_bytes().saturating_mul(100).checked_div(self.file_bytes).unwrap_or(0)
    }
}

impl Database {
    /// How large the database is.
    ///
    /// # Errors
    /// The database is gone, and what the store reports.
    pub fn sizes(&self) -> Result<DatabaseSizes> {
        self.check_there()?;
        self.sizes_of(&crate::database::read_header(self.store(), self.number())?)
    }

    /// How large the database of this header is.
    ///
    /// # Errors
    /// What the store reports.
    pub fn sizes_of(&self, header: &Header) -> Result<DatabaseSizes> {
        let record = self.compaction_record()?;
        #[allow(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
        let share = match record.share_ppm {
            0 => self.share_of_all(),
            known => known as f64 / MILLION,
        };
        let active_bytes = part(header.live_bytes(), share);
        // What is in memory only has no place in a file yet, and is no garbage.
        let in_files = size_in(self.store(), self.number(), keys::FAMILIES);
        let file_bytes = in_files.max(active_bytes);
        Ok(DatabaseSizes { file_bytes, active_bytes, external_bytes: header.external_bytes })
    }

    /// What a million bytes of the database's records take on disk, right after it was compacted, which wrote so much;
    /// `None` if there are too few to tell. Files that were moved and not merged keep a quicker compression, and tell
    /// nothing.
    pub fn measured_share(&self, written_bytes: u64) -> Result<Option<u64>> {
        let live_bytes = crate::database::read_header(self.store(), self.number())?.live_bytes();
        let file_bytes = size_in(self.store(), self.number(), keys::FAMILIES);
        if file_bytes < MEASURED_FROM_BYTES || written_bytes < file_bytes / 2 {
            return Ok(None);
        }
        let ppm = u128::from(file_bytes) * 1_000_000 / u128::from(live_bytes.max(1));
        Ok(u64::try_from(ppm).ok().filter(|ppm| (1..4_000_000).contains(ppm)))
    }

    /// What a byte of records takes on disk in the databases of this server.
    fn share_of_all(&self) -> f64 {
        let mut kept = self.context.share.lock();
        if let Some((found, share)) = *kept
            && self.store().clock().elapsed(found) < SHARE_FOR
        {
            return share;
        }
        let found = self.store().admin().compression(&keys::FAMILIES);
        #[allow(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
        let share =
            if found.raw_bytes == 0 { 1.0 } else { found.stored_bytes as f64 / found.raw_bytes as f64 };
        // While there is nothing in files, the next one to ask may find something.
        *kept = (found.raw_bytes > 0).then(|| (self.store().clock().instant(), share));
        share
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate of bytes, which are no more than 2^53"
)]
fn part(bytes: u64, share: f64) -> u64 {
    (bytes as f64 * share) as u64
}
