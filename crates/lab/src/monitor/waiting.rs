//! How long this process's threads were ready to run and had to wait for a CPU (`/proc/PID/task/*/schedstat`).

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

/// Waits for a CPU, in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Waiting {
    pub waited_s: f64,
    /// How many times a thread got a CPU.
    pub turns: u64,
}

impl Waiting {
    /// How long a thread waited for each turn, on average, in milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "turns of a run need no more than 53 bits")]
        let turns = self.turns.max(1) as f64;
        1000.0 * self.waited_s / turns
    }

    /// Adds another interval.
    pub fn add(&mut self, other: Self) {
        self.waited_s += other.waited_s;
        self.turns += other.turns;
    }
}

/// Nanoseconds waited and turns in `schedstat` (the second and the third field).
#[must_use]
pub fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Reads how long this process waited between one call and the next.
#[derive(Debug, Default)]
pub struct WaitMeter {
    seen: BTreeMap<String, (u64, u64)>,
}

impl WaitMeter {
    /// A meter; `None` where the system does not count waits.
    #[must_use]
    pub fn new() -> Option<Self> {
        let mut meter = Self::default();
        meter.read();
        (!meter.seen.is_empty()).then_some(meter)
    }

    /// What was waited since the last call. A thread that has ended since then is left out.
    pub fn read(&mut self) -> Waiting {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let now: BTreeMap<String, (u64, u64)> = tasks
            .filter_map(|task| {
                let counts = parse_schedstat(&fs::read_to_string(task.path().join("schedstat")).ok()?)?;
                Some((task.file_name().into_string().ok()?, counts))
            })
            .collect();
        let (mut waited_ns, mut turns) = (0, 0);
        for (thread, counts) in &now {
            let before = self.seen.get(thread).copied().unwrap_or_default();
            waited_ns += counts.0.saturating_sub(before.0);
            turns += counts.1.saturating_sub(before.1);
        }
        self.seen = now;
        #[allow(clippy::cast_precision_loss, reason = "an interval is short")]
        let waited_s = waited_ns as f64 / 1e9;
        Waiting { waited_s, turns }
    }
}
