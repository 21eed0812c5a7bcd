//! What a server may use: CPUs by affinity, memory by a control group (cgroup v2) where one can be made.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where version 2 of control groups is, by itself or with version 1.
const HIERARCHIES: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// A removed process leaves its group a moment later.
const EMPTY_WITHIN: Duration = Duration::from_secs(5);

/// What was wished for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) memory_bytes: Option<u64>,
    pub(super) cpus: Option<usize>,
}

/// What was made of it. A control group goes when this is dropped.
#[derive(Debug)]
pub(super) struct ServerLimits {
    group: Option<PathBuf>,
    cpus: Option<CpuSet>,
    /// Sentences for the report, about what holds and what does not.
    pub(super) notes: Vec<String>,
}

impl ServerLimits {
    /// Makes the limits, as far as this machine lets it. `name` is the group's.
    pub(super) fn new(limits: Limits, name: &str) -> Self {
        let mut ground = Self { group: None, cpus: None, notes: Vec::new() };
        if let Some(bytes) = limits.memory_bytes {
            let size = scrinium_lab_report::bytes(bytes_as_float(bytes));
            match make_group(name, bytes) {
                Ok(group) => {
                    ground.notes.push(format!("The servers' memory was limited to {size} by a control group."));
                    ground.group = Some(group);
                }
                Err(why) => ground.notes.push(format!(
                    "Memory was not limited to {size}, since no control group can be made here ({why}): the system's cache of files had the whole machine."
                )),
            }
        }
        if let Some(count) = limits.cpus {
            match last_cpus(count) {
                Ok(cpus) => {
                    ground.notes.push(format!("The servers were kept to {count} CPUs."));
                    ground.cpus = Some(cpus);
                }
                Err(why) => ground.notes.push(format!("The servers were not kept to {count} CPUs: {why}.")),
            }
        }
        ground
    }

    /// CPUs that processes begun here have, if that is not all.
    pub(super) fn cpus(&self) -> Option<usize> {
        self.cpus.as_ref().and_then(|cpus| usize::try_from(cpus.count()).ok())
    }

    /// What has to stand before a command so that it begins in the group: a shell that enters it and then becomes the
    /// command, so that not a byte is counted elsewhere.
    pub(super) fn words_before(&self) -> Vec<String> {
        let Some(group) = &self.group else { return Vec::new() };
        let enter = format!("echo $$ > '{}/cgroup.procs' && exec \"$@\"", group.display());
        ["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec()
    }

    /// Begins a process with the affinity wished for, which it has from this thread.
    pub(super) fn spawn(&self, command: &mut std::process::Command) -> std::io::Result<std::process::Child> {
        let Some(cpus) = &self.cpus else { return command.spawn() };
        let mine = sched_getaffinity(None)?;
        sched_setaffinity(None, cpus)?;
        let spawned = command.spawn();
        sched_setaffinity(None, &mine)?;
        spawned
    }
}

impl Drop for ServerLimits {
    fn drop(&mut self) {
        let Some(group) = self.group.take() else { return };
        let began = Instant::now();
        // A group can be removed when its last process has gone.
        while std::fs::remove_dir(&group).is_err() && group.exists() && began.elapsed() < EMPTY_WITHIN {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "memory needs no more than 53 bits")]
fn bytes_as_float(bytes: u64) -> f64 {
    bytes as f64
}

/// The last of this process's CPUs: the driver's threads are more often on the first.
fn last_cpus(count: usize) -> Result<CpuSet, String> {
    let mine = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let here: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| mine.is_set(*cpu)).collect();
    if count == 0 || count > here.len() {
        return Err(format!("there are {}", here.len()));
    }
    let mut chosen = CpuSet::new();
    here.iter().rev().take(count).for_each(|cpu| chosen.set(*cpu));
    Ok(chosen)
}

/// Makes a group below the nearest group, up from our own, that passes memory on to groups below it.
fn make_group(name: &str, memory_bytes: u64) -> Result<PathBuf, String> {
    let own = own_group().ok_or_else(|| "there is no cgroup v2".to_owned())?;
    let (root, own) = own;
    let mut at = own.as_path();
    let parent = loop {
        if passes_memory_on(at) {
            break at;
        }
        match at.parent().filter(|_| at != root) {
            Some(up) => at = up,
            None => return Err("no group up from our own passes memory on".to_owned()),
        }
    };
    let group = parent.join(name);
    std::fs::create_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
    let write = |file: &str, text: String| std::fs::write(group.join(file), text);
    let made = write("memory.max", memory_bytes.to_string()).and_then(|()| {
        // Where there is swap, it would be memory that the original's machine did not have.
        if group.join("memory.swap.max").exists() { write("memory.swap.max", "0".to_owned()) } else { Ok(()) }
    });
    match made {
        Ok(()) => Ok(group),
        Err(error) => {
            // It is empty: nothing else can be the matter with it.
            let _ = std::fs::remove_dir(&group);
            Err(format!("{}: {error}", group.display()))
        }
    }
}

fn passes_memory_on(group: &Path) -> bool {
    let passed = std::fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
    passed.split_whitespace().any(|controller| controller == "memory")
}

/// The root of version 2, and this process's group in it.
fn own_group() -> Option<(PathBuf, PathBuf)> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let root = HIERARCHIES.iter().map(Path::new).find(|root| root.join("cgroup.controllers").exists())?;
    Some((root.to_owned(), root.join(path.trim_start_matches('/'))))
}
