//! What the servers of a cell use during a step: CPU, memory, bytes written, sizes on disk.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::monitor::ProcessMeter;

/// How often memory is looked at, for its peak.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A block of `st_blocks` (stat(2)).
const BLOCK_BYTES: u64 = 512;

/// Folders are gone through so deep.
const DEEPEST: usize = 12;

/// Measured values of a step, by name.
pub(super) type Measured = BTreeMap<String, f64>;

/// Sums over the servers since the last step began.
#[derive(Default)]
struct Sums {
    cpu_s: f64,
    system_s: f64,
    written_bytes: u64,
    resident_bytes: u64,
    peak_resident_bytes: u64,
}

struct UsageState {
    meters: Vec<ProcessMeter>,
    sums: Sums,
}

impl UsageState {
    fn look(&mut self) {
        let mut resident = 0;
        for usage in self.meters.iter_mut().filter_map(ProcessMeter::read) {
            self.sums.cpu_s += usage.user_s + usage.system_s;
            self.sums.system_s += usage.system_s;
            self.sums.written_bytes += usage.written_bytes.unwrap_or(0);
            resident += usage.resident_bytes;
        }
        self.sums.resident_bytes = resident;
        self.sums.peak_resident_bytes = self.sums.peak_resident_bytes.max(resident);
    }
}

/// Looks at the servers while a step runs.
pub(super) struct StepUsage {
    state: Arc<Mutex<UsageState>>,
    task: JoinHandle<()>,
    began: Instant,
}

impl StepUsage {
    /// A step begins.
    pub(super) fn begin(pids: &[u32]) -> Self {
        let meters = pids.iter().filter_map(|pid| ProcessMeter::new(*pid)).collect();
        let state = Arc::new(Mutex::new(UsageState { meters, sums: Sums::default() }));
        let looked_at = Arc::clone(&state);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                looked_at.lock().look();
            }
        });
        Self { state, task, began: Instant::now() }
    }

    /// The step is over: what was used in it. What the step itself measured has precedence.
    pub(super) fn end(self, cpus: usize) -> Measured {
        let seconds = self.began.elapsed().as_secs_f64();
        let mut state = self.state.lock();
        state.look();
        let sums = &state.sums;
        let mut measured = Measured::from([("seconds".to_owned(), seconds)]);
        if !state.meters.is_empty() {
            let float = |value: u64| {
                #[allow(clippy::cast_precision_loss, reason = "bytes need no more than 53 bits")]
                let value = value as f64;
                value
            };
            #[allow(clippy::cast_precision_loss, reason = "CPUs are few")]
            let percent = 100.0 * sums.cpu_s / seconds.max(0.001) / cpus.max(1) as f64;
            measured.extend([
                ("server_cpu_s".to_owned(), sums.cpu_s),
                ("server_system_s".to_owned(), sums.system_s),
                ("server_cpu_percent".to_owned(), percent),
                ("server_written_bytes".to_owned(), float(sums.written_bytes)),
                ("server_resident_bytes".to_owned(), float(sums.resident_bytes)),
                ("server_peak_resident_bytes".to_owned(), float(sums.peak_resident_bytes)),
            ]);
        }
        measured
    }
}

impl Drop for StepUsage {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Bytes that a folder takes on disk, without those in `except`.
pub(super) fn disk_bytes(folder: &Path, except: Option<&Path>) -> u64 {
    fn sum(folder: &Path, except: Option<&Path>, deep: usize) -> u64 {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| except.is_none_or(|except| entry.path() != except))
            .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
            .map(|(path, kept)| match kept.is_dir() {
                true if deep < DEEPEST => sum(&path, except, deep + 1),
                true => 0,
                false => kept.blocks() * BLOCK_BYTES,
            })
            .sum()
    }
    sum(folder, except, 0)
}
