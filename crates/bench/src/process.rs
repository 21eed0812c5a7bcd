//! Processes that a benchmark starts, which end with it, and what processes take of the machine.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark stops at the first error")]

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

/// What a child of [`run_case`] is to measure.
const CASE: &str = "SCRINIUM_BENCH_CASE";

/// A process that ends when this is dropped, and also when the benchmark is killed.
#[derive(Debug)]
pub struct Process {
    child: Child,
    signal: Signal,
}

impl Process {
    /// Starts what [`command`] made; `signal` asks it to end.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command, signal: Signal) -> Self {
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        Self { child, signal }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end by another signal than it was started with, and waits until it has.
    pub fn end(mut self, signal: Signal) {
        self.signal = signal;
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        let _ = kill_process(Pid::from_child(&self.child), self.signal);
        let asked = Instant::now();
        while !self.has_ended() && asked.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that is killed when the thread that starts it ends, run as `user` if one is given.
pub fn command(program: impl AsRef<OsStr>, user: Option<&str>) -> Command {
    // What a process does between fork and exec cannot be said in safe code; util-linux says it.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if let Some(user) = user {
        command.args(["--reuid", user, "--regid", user, "--init-groups"]);
    }
    command.arg(program);
    command
}

/// Runs this benchmark once more as a process of its own that measures `case`, on this many cores. Gives what
/// [`is_case`] printed there.
///
/// # Panics
/// If the child fails.
#[must_use]
pub fn run_case(case: &Value, cores: usize) -> Value {
    let mut command = command(std::env::current_exe().unwrap(), None);
    command.env(CASE, json!({"case": case, "cores": cores}).to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process = Process::start(&mut command, Signal::KILL);
    let mut printed = String::new();
    process.child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(process.child.wait().unwrap().success(), "the process that measured {case} failed");
    serde_json::from_str(&printed).unwrap()
}

/// In a child of [`run_case`]: measures its case and prints the result. Gives whether this is such a child.
///
/// # Panics
/// If the machine has fewer cores than the case asks for.
pub fn is_case(measure: impl FnOnce(&Value) -> Value) -> bool {
    let Ok(text) = std::env::var(CASE) else { return false };
    let told: Value = serde_json::from_str(&text).unwrap();
    let cores = told.get("cores").and_then(Value::as_u64).unwrap();
    keep_to_cores(usize::try_from(cores).unwrap());
    let measured = measure(told.get("case").unwrap()).to_string();
    std::io::stdout().write_all(measured.as_bytes()).unwrap();
    true
}

/// Keeps this thread, and those that it will start, to the first this many of its cores.
///
/// # Panics
/// If it has fewer.
pub fn keep_to_cores(count: usize) {
    let mine = sched_getaffinity(None).unwrap();
    let mut kept = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|core| mine.is_set(*core)).take(count).for_each(|core| kept.set(core));
    assert_eq!(kept.count(), u32::try_from(count).unwrap(), "this machine has fewer cores than {count}");
    sched_setaffinity(None, &kept).unwrap();
}

/// Keeps this thread to one of its cores while `work` runs, with the threads that it starts meanwhile for good. Where
/// client and server are one each, a request always changes cores: left alone, it does so for minutes and then not at
/// all, which makes four times the difference for a short one. On a machine with fewer cores nothing is kept anywhere.
///
/// # Panics
/// If the machine does not take it.
pub fn on_core<T>(core: usize, work: impl FnOnce() -> T) -> T {
    let mine = sched_getaffinity(None).unwrap();
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| mine.is_set(*core)).skip(core);
    if let Some(core) = cores.next() {
        let mut kept = CpuSet::new();
        kept.set(core);
        sched_setaffinity(None, &kept).unwrap();
    }
    let done = work();
    sched_setaffinity(None, &mine).unwrap();
    done
}

/// The highest resident memory that a process had, in bytes (proc(5)).
///
/// # Panics
/// If there is no such process.
#[must_use]
pub fn peak_memory_bytes(process: u32) -> f64 {
    kilobytes(process, "VmHWM:") * 1024.0
}

/// The resident memory of a process, in bytes (proc(5)).
///
/// # Panics
/// If there is no such process.
#[must_use]
pub fn memory_bytes(process: u32) -> f64 {
    kilobytes(process, "VmRSS:") * 1024.0
}

fn kilobytes(process: u32, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Processor time that a process has used, in clock ticks of a hundredth of a second (proc(5)).
///
/// # Panics
/// If there is no such process.
#[must_use]
pub fn used_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The program's name, in parentheses, may hold spaces; user and system time are the 12th and 13th word behind it.
    let (_, words) = stat.rsplit_once(')').unwrap();
    words.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// How much all cores have worked, and could have, until a moment; in ticks (proc(5)).
#[derive(Clone, Copy, Debug)]
pub struct Processors {
    busy: f64,
    all: f64,
}

impl Processors {
    /// Until now.
    ///
    /// # Panics
    /// If the kernel does not tell.
    #[must_use]
    pub fn now() -> Self {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        let ticks = text.lines().next().unwrap().split_whitespace().skip(1);
        // User, nice, system, idle, iowait, irq, softirq, steal; guests are counted in user already.
        let ticks: Vec<f64> = ticks.take(8).map(|word| word.parse().unwrap()).collect();
        let idle: f64 = ticks.iter().skip(3).take(2).sum();
        let all: f64 = ticks.iter().sum();
        Self { busy: all - idle, all }
    }

    /// The share of the machine's cores that worked since then, 0 to 1.
    #[must_use]
    pub fn busy_since(&self) -> f64 {
        let now = Self::now();
        (now.busy - self.busy) / (now.all - self.all).max(1.0)
    }
}
