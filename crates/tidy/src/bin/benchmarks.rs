//! Keeps results of benchmarks and writes BENCHMARKS.md; `scripts/bench` calls it.
//!
//! `benchmarks keep NAME`, then `benchmarks page`, in the repository's root.

use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use scrinium_tidy::benchmarks::{Origin, keep, page};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(".");
    let done = match words.as_slice() {
        ["keep", name] => keep(root, name, &origin(name)),
        ["page"] => page(root).and_then(|text| std::fs::write("BENCHMARKS.md", text)),
        _ => Err(io::Error::other("usage: benchmarks keep NAME | benchmarks page")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("benchmarks: {error}");
            ExitCode::FAILURE
        }
    }
}

fn origin(name: &str) -> Origin {
    let changed = if told("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty() {
        ""
    } else {
        " and changes"
    };
    Origin {
        machine: machine(),
        commit: format!("{}{changed}", told("git", &["rev-parse", "--short", "HEAD"])),
        command: format!("make bench NAME={name}"),
        date: told("date", &["--utc", "+%Y-%m-%d"]),
    }
}

/// What a command prints, or nothing.
fn told(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// `4 × AMD EPYC 7B13, 16 GB, Linux 6.1.0` (proc(5)).
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (processors, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let after_colon =
        |line: &str| line.split_once(':').map_or(String::new(), |(_, rest)| rest.trim().to_owned());
    let models: Vec<String> =
        processors.lines().filter(|line| line.starts_with("model name")).map(after_colon).collect();
    let total = memory.lines().find(|line| line.starts_with("MemTotal")).map(after_colon).unwrap_or_default();
    let kilobytes: u64 = total.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default();
    let model = models.first().cloned().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let gigabytes = (kilobytes + (1 << 19)) >> 20;
    format!("{count} × {model}, {gigabytes} GB, Linux {}", read("/proc/sys/kernel/osrelease").trim())
}
