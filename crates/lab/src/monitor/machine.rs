//! The machine that the laboratory runs on.

use serde::{Deserialize, Serialize};

/// What a reader of a report must know of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Machine {
    pub cpus: usize,
    pub cpu_model: String,
    pub memory_bytes: u64,
    pub kernel: String,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn this() -> Self {
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        let line = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        let memory = line(&text("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kilobytes: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
        Self {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cpu_model: line(&text("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()),
            memory_bytes: kilobytes * 1024,
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}
