//! A program with the library before its C library.

use std::io;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rand::Rng;

const LIBRARY: &str = concat!(env!("OUT_DIR"), "/libscrinium_fault.so");

/// A set of calls that fail. Sets are joined with `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls(u32);

impl Calls {
    /// Opening a file to write.
    pub const OPEN: Self = Self(1);
    /// Writing.
    pub const WRITE: Self = Self(2);
    /// `fsync` and `fdatasync`.
    pub const SYNC: Self = Self(4);
    /// Changing a file's length, and reserving space for it.
    pub const SIZE: Self = Self(8);
    /// Making, renaming and removing names.
    pub const NAME: Self = Self(16);
}

impl std::ops::BitOr for Calls {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Calls that fail, between the lines `@fail` and `@mend` that the program writes to the file `marks`.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The number of the error, as in `errno.h`.
    pub error: i32,
    /// Which calls.
    pub calls: Calls,
    /// How many of them go well before the first that fails.
    pub first: u64,
    /// How many fail in sequence.
    pub count: u64,
    /// Only files whose path below the folder contains this; empty for all. Without spaces.
    pub part: String,
}

impl Failure {
    /// The error of a full disk.
    pub const NO_SPACE: i32 = 28;
    /// The error of a failing device.
    pub const FAILING: i32 = 5;
    /// The error of a file system that takes no writes.
    pub const READ_ONLY: i32 = 30;

    /// Any error of any calls, once or for long, of files with one of these in their path.
    ///
    /// # Panics
    /// Without parts.
    #[must_use]
    #[allow(clippy::indexing_slicing, reason = "within the lengths; without parts there is nothing to test")]
    pub fn some(random: &mut impl Rng, parts: &[&str]) -> Self {
        let kinds = [Calls::OPEN, Calls::WRITE, Calls::SYNC, Calls::SIZE, Calls::NAME];
        let all = kinds.into_iter().reduce(|all, kind| all | kind).unwrap_or(Calls::WRITE);
        let latest = [1, 5, 60][random.random_range(0..3)];
        Self {
            error: [Self::NO_SPACE, Self::FAILING, Self::READ_ONLY][random.random_range(0..3)],
            calls: if random.random_ratio(1, 3) { all } else { kinds[random.random_range(0..kinds.len())] },
            first: random.random_range(0..latest),
            count: [1, 4, u64::MAX][random.random_range(0..3)],
            part: parts[random.random_range(0..parts.len())].to_owned(),
        }
    }
}

/// Writes and syncs that take long.
#[derive(Clone, Copy, Debug)]
pub struct Slowness {
    /// Which calls they are depends on it.
    pub seed: u64,
    /// One in this many.
    pub one_in: u64,
    /// Takes up to so long.
    pub max_us: u64,
}

/// A clock of the day that is set to another time, by up to 40 days in both directions. Clocks that only measure how much
/// time passes go on as they should.
#[derive(Clone, Copy, Debug)]
pub struct ClockJumps {
    /// The times depend on it.
    pub seed: u64,
    /// How often; at least a millisecond.
    pub every: Duration,
}

/// What is wrong with the devices and the clock of a program; by default nothing.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Calls that fail.
    pub failure: Option<Failure>,
    /// Calls that take long.
    pub slowness: Option<Slowness>,
    /// Syncs of files whose path contains this do nothing, and say that they did.
    pub lying_syncs: Option<String>,
    /// A clock that jumps.
    pub clock: Option<ClockJumps>,
}

impl Faults {
    /// Sets `command` up to run with these faults, with what it changes below `root` recorded in `journal`, which lies
    /// outside of it. `root` is absolute and leads over no link. A journal that is there is continued.
    pub fn interpose(&self, command: &mut Command, root: &Path, journal: &Path) {
        command.env("LD_PRELOAD", LIBRARY);
        command.env("SCRINIUM_FAULT_ROOT", root).env("SCRINIUM_FAULT_JOURNAL", journal);
        if let Some(Failure { error, calls, first, count, part }) = &self.failure {
            command.env("SCRINIUM_FAULT_FAIL", format!("{error} {first} {count} {} {part}", calls.0));
        }
        if let Some(Slowness { seed, one_in, max_us }) = self.slowness {
            command.env("SCRINIUM_FAULT_SLOW", format!("{seed} {one_in} {max_us}"));
        }
        if let Some(part) = &self.lying_syncs {
            command.env("SCRINIUM_FAULT_LIE", part);
        }
        self.interpose_clock(command);
    }

    /// Sets up the clock alone: nothing is recorded, and no call fails.
    pub fn interpose_clock(&self, command: &mut Command) {
        if let Some(ClockJumps { seed, every }) = self.clock {
            command.env("LD_PRELOAD", LIBRARY);
            command.env("SCRINIUM_FAULT_CLOCK", format!("{seed} {}", every.as_millis().max(1)));
        }
    }
}

/// Runs a program to its end; after `limit` it is killed, and its output tells.
///
/// # Errors
/// If it cannot be started.
pub fn run_bounded(command: &mut Command, limit: Duration) -> io::Result<Output> {
    let child = command.spawn()?;
    let id = child.id();
    let (ended, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Its number is not another's: it is waited for only below.
            if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
            }
        });
        let output = child.wait_with_output();
        drop(ended);
        output
    })
}
