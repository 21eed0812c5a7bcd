//! What Linux shows of a process in `/proc` (proc(5)).

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// CPU time, memory and bytes written of one process, as counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ProcessCounts {
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub resident_pages: u64,
    /// Bytes sent to the storage layer; `None` where `io` may not be read.
    pub written_bytes: Option<u64>,
}

/// The counts in `/proc/PID/stat` (fields 14, 15 and 24). The second field, the program's name in
/// brackets, may itself hold brackets and spaces.
#[must_use]
pub fn parse_stat(text: &str) -> Option<ProcessCounts> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    // Field 3 is the first one after the name.
    let user_ticks = fields.nth(14 - 3)?.parse().ok()?;
    let system_ticks = fields.next()?.parse().ok()?;
    let resident_pages = fields.nth(24 - 16)?.parse().ok()?;
    Some(ProcessCounts { user_ticks, system_ticks, resident_pages, written_bytes: None })
}

/// `write_bytes` of `/proc/PID/io`.
#[must_use]
pub fn parse_written(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("write_bytes:")?.trim().parse().ok())
}

/// The counts of a process; `None` when it is gone.
#[must_use]
pub fn read_counts(pid: u32) -> Option<ProcessCounts> {
    let folder = Path::new("/proc").join(pid.to_string());
    let counts = parse_stat(&std::fs::read_to_string(folder.join("stat")).ok()?)?;
    let written = std::fs::read_to_string(folder.join("io")).ok().and_then(|text| parse_written(&text));
    Some(ProcessCounts { written_bytes: written, ..counts })
}

/// A process and all processes that it has started, directly or not.
#[must_use]
pub fn family(pid: u32) -> Vec<u32> {
    /// A server with more processes than this is measured without the rest.
    const MOST: usize = 4096;
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied().filter(|_| found.len() < MOST) {
        next += 1;
        let tasks = std::fs::read_dir(format!("/proc/{parent}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    found
}

/// What a process and its children used in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Usage {
    /// Seconds of one CPU.
    pub user_s: f64,
    pub system_s: f64,
    pub resident_bytes: u64,
    /// `None` where the system does not show it.
    pub written_bytes: Option<u64>,
}

/// Reads what a process used between one call and the next.
#[derive(Debug)]
pub struct ProcessMeter {
    pids: Vec<u32>,
    seen: BTreeMap<u32, ProcessCounts>,
    tick_s: f64,
    page_bytes: u64,
}

impl Usage {
    /// Adds what another process used in the same interval.
    pub fn add(&mut self, other: Self) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.resident_bytes += other.resident_bytes;
        self.written_bytes = match (self.written_bytes, other.written_bytes) {
            (Some(here), Some(there)) => Some(here + there),
            (here, there) => here.or(there),
        };
    }
}

impl ProcessMeter {
    /// A meter for a process; `None` when there is no such process.
    #[must_use]
    pub fn new(pid: u32) -> Option<Self> {
        Self::of(&[pid])
    }

    /// A meter for several processes together; `None` when one is not there, or when there is none to measure.
    #[must_use]
    pub fn of(pids: &[u32]) -> Option<Self> {
        #[allow(clippy::cast_precision_loss, reason = "ticks per second are 100")]
        let tick_s = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let page_bytes = rustix::param::page_size() as u64;
        let mut meter = Self { pids: pids.to_vec(), seen: BTreeMap::new(), tick_s, page_bytes };
        if pids.is_empty() || pids.iter().any(|pid| read_counts(*pid).is_none()) {
            return None;
        }
        meter.read();
        Some(meter)
    }

    /// What was used since the last call; `None` when one of the processes is gone. A process that was started
    /// since then counts with all it used.
    pub fn read(&mut self) -> Option<Usage> {
        let families = self.pids.iter().flat_map(|pid| family(*pid));
        let now: BTreeMap<u32, ProcessCounts> =
            families.filter_map(|pid| Some((pid, read_counts(pid)?))).collect();
        if self.pids.iter().any(|pid| !now.contains_key(pid)) {
            return None;
        }
        let mut usage = Usage::default();
        let (mut user_ticks, mut system_ticks) = (0, 0);
        for (pid, counts) in &now {
            let before = self.seen.get(pid).copied().unwrap_or_default();
            user_ticks += counts.user_ticks.saturating_sub(before.user_ticks);
            system_ticks += counts.system_ticks.saturating_sub(before.system_ticks);
            if let Some(written) = counts.written_bytes {
                let written = written.saturating_sub(before.written_bytes.unwrap_or(0));
                usage.written_bytes = Some(usage.written_bytes.unwrap_or(0) + written);
            }
            usage.resident_bytes += counts.resident_pages * self.page_bytes;
        }
        #[allow(clippy::cast_precision_loss, reason = "ticks of an interval are few")]
        let seconds = |ticks: u64| ticks as f64 * self.tick_s;
        (usage.user_s, usage.system_s) = (seconds(user_ticks), seconds(system_ticks));
        self.seen = now;
        Some(usage)
    }
}

/// The program's name, as `/proc/PID/comm` has it.
#[must_use]
pub fn program_name(pid: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim().to_owned())
}
