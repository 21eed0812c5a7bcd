//! The machine that the laboratory runs on.

use scrinium_lab_report::Machine;

/// This machine.
#[must_use]
pub fn this_machine() -> Machine {
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    let line = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let memory = line(&text("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let kilobytes: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
    Machine {
        cpus: text("/proc/stat").lines().filter(|line| is_one_cpu(line)).count().max(1),
        cpu_model: line(&text("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()),
        memory_bytes: kilobytes * 1024,
        kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
    }
}

/// What no other machine has: a number that the kernel draws when it starts.
#[must_use]
pub fn machine_identity() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// `cpu0 ...` in `/proc/stat`; the line `cpu ...` is the sum of all that are there, whatever a process may use.
fn is_one_cpu(line: &str) -> bool {
    line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}
