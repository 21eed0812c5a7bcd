//! What the server tells of its machine: memory, processors, disks.

use std::path::{Path, PathBuf};

use rustix::fs::{stat, statfs, statvfs};
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use scrinium_statistics::Registry;
use scrinium_store::available_bytes;

use crate::config::{RunningConfiguration, Settings};

/// File systems in memory (statfs(2)): tmpfs, ramfs.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// `Mem.PhysicalRAM` (of the machine, or the control group), `Mem.Available` (what of it could still be had),
/// `Mem.Allocated.Process`, `Mem.Swapped.Process`; `Platform.System.Processors`, `Platform.Process.CPU.Seconds`,
/// `Platform.System.CPU.Seconds` (of all programs);
/// `Disk.Data.Free` and `.Size`, `Disk.Log.Free` and `.Size`, in bytes; `Log.OwnDevice` and `View.RebuildDir.OwnDevice`
/// (1: on another file system than the databases), `View.RebuildDir.InMemory`. What the system does not tell reads 0.
pub(crate) fn register(statistics: &Registry, configuration: &RunningConfiguration) {
    register_memory(statistics);
    register_processors(statistics);
    let settings = configuration.settings();
    let store = settings.server.data_dir.join("store");
    let log = settings.in_data_dir(&settings.log.dir);
    for (name, dir) in [("Data", store.clone()), ("Log", log.clone())] {
        let free = dir.clone();
        statistics.gauge(&format!("Disk.{name}.Free"), move || room(&free).0);
        statistics.gauge(&format!("Disk.{name}.Size"), move || room(&dir).1);
    }
    let data = store.clone();
    statistics.gauge("Log.OwnDevice", move || truth(device(&log) != device(&data)));
    // It changes while the server runs.
    let rebuild_dir = |configuration: &RunningConfiguration| {
        let settings: &Settings = &configuration.settings();
        settings.in_data_dir(&settings.view.rebuild_dir)
    };
    let of_device = configuration.clone();
    statistics.gauge("View.RebuildDir.OwnDevice", move || {
        truth(device(&rebuild_dir(&of_device)) != device(&store))
    });
    let of_kind = configuration.clone();
    statistics.gauge("View.RebuildDir.InMemory", move || truth(is_in_memory(&rebuild_dir(&of_kind))));
}

fn register_memory(statistics: &Registry) {
    statistics.gauge("Mem.PhysicalRAM", || float(available_bytes()));
    statistics.gauge("Mem.Available", || {
        let resident = of_status("VmRSS:").unwrap_or_default();
        // In a control group the machine's free memory is not ours.
        let left = float(available_bytes()) - resident;
        of_file("/proc/meminfo", "MemAvailable:").map_or(0.0, |bytes| bytes.min(left).max(0.0))
    });
    statistics.gauge("Mem.Allocated.Process", || of_status("VmRSS:").unwrap_or_default());
    statistics.gauge("Mem.Swapped.Process", || of_status("VmSwap:").unwrap_or_default());
}

#[allow(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
fn register_processors(statistics: &Registry) {
    statistics.gauge("Platform.System.Processors", || {
        std::thread::available_parallelism().map_or(0.0, |processors| processors.get() as f64)
    });
    statistics.gauge("Platform.Process.CPU.Seconds", || {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
    });
    // From the server's start, as everything else.
    let at_start = busy_seconds().unwrap_or_default();
    statistics.gauge("Platform.System.CPU.Seconds", move || {
        (busy_seconds().unwrap_or_default() - at_start).max(0.0)
    });
}

/// What all processors worked since the machine's start (proc(5), `stat`): all but idling and waiting for disks.
fn busy_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|ticks| ticks.parse().ok()).collect();
    // User, nice, system, idle, waiting, interrupts twice; later columns are parts of the first.
    let busy = ticks.iter().take(7).enumerate().filter(|(column, _)| ![3, 4].contains(column));
    Some(float(busy.map(|(_, ticks)| ticks).sum()) / float(clock_ticks_per_second()))
}

/// Memory of this process in bytes; nothing where the system does not tell (proc(5), `status`).
fn of_status(name: &str) -> Option<f64> {
    of_file("/proc/self/status", name)
}

/// The number of a line such as `VmRSS:    24684 kB`, in bytes.
fn of_file(path: &str, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(float(kilobytes.saturating_mul(1024)))
}

/// The folder, or the nearest one above it that is there: some are made when they are needed.
fn there(dir: &Path) -> PathBuf {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    absolute.ancestors().find(|dir| dir.exists()).map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

/// Bytes that are free for us, and all that there are.
fn room(dir: &Path) -> (f64, f64) {
    let Ok(found) = statvfs(there(dir)) else { return (0.0, 0.0) };
    let bytes = |blocks: u64| float(blocks.saturating_mul(found.f_frsize));
    (bytes(found.f_bavail), bytes(found.f_blocks))
}

fn device(dir: &Path) -> Option<u64> {
    stat(there(dir)).ok().map(|found| found.st_dev)
}

fn is_in_memory(dir: &Path) -> bool {
    let found = statfs(there(dir)).ok().and_then(|found| u32::try_from(found.f_type).ok());
    found.is_some_and(|kind| IN_MEMORY.contains(&kind))
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

#[allow(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
fn float(value: u64) -> f64 {
    value as f64
}
