//! How fast it may go, how far it is, and whether it is to stop.

use std::thread;
use std::time::{Duration, Instant};

use scrinium_store::{IoClass, IoLimits};

use crate::BackupError;

/// A longer sleep would make stopping slow.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Learns the progress of work.
pub trait Progress: Sync {
    /// This many bytes are to be gone through.
    fn total(&self, bytes: u64);
    /// This many more are done.
    fn advance(&self, bytes: u64);
    /// What is being done now.
    fn step(&self, what: &str);
    /// Whether to stop.
    fn is_cancelled(&self) -> bool;
}

/// Reports to nobody, and nobody stops it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn total(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn step(&self, _what: &str) {}
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Keeps to a rate.
pub(crate) struct Pace<'a> {
    progress: &'a dyn Progress,
    bytes_per_second: Option<u64>,
    limits: IoLimits,
    started: Instant,
    /// When the last piece was done.
    last: Instant,
    done: u64,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(progress: &'a dyn Progress, bytes_per_second: Option<u64>) -> Self {
        let (limits, started) = (IoLimits::default(), Instant::now());
        Self { progress, bytes_per_second, limits, started, last: started, done: 0 }
    }

    /// Keeps to what all backups of a server share, too, and gives way to its requests.
    pub(crate) fn within(self, limits: IoLimits) -> Self {
        Self { limits, ..self }
    }

    /// This many bytes are to be gone through.
    pub(crate) fn total(&self, bytes: u64) {
        self.progress.total(bytes);
    }

    /// This many more bytes are done; waits until as many more may follow.
    pub(crate) fn advance(&mut self, bytes: u64) -> Result<(), BackupError> {
        self.progress.advance(bytes);
        self.done += bytes;
        loop {
            if self.progress.is_cancelled() {
                return Err(BackupError::Cancelled);
            }
            let Some(left) = self.ahead() else { break };
            thread::sleep(left.min(LONGEST_SLEEP));
        }
        let took = self.last.elapsed();
        let goes_on = self.limits.pace(IoClass::Backup, bytes, took, || !self.progress.is_cancelled());
        self.last = Instant::now();
        if goes_on { Ok(()) } else { Err(BackupError::Cancelled) }
    }

    /// How much too early it is.
    #[allow(clippy::cast_precision_loss, reason = "a rate needs no more than 53 bits")]
    fn ahead(&self) -> Option<Duration> {
        let rate = self.bytes_per_second.filter(|rate| *rate > 0)?;
        let due = Duration::try_from_secs_f64(self.done as f64 / rate as f64).ok()?;
        due.checked_sub(self.started.elapsed()).filter(|left| !left.is_zero())
    }
}
