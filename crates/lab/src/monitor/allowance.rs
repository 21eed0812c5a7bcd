//! What of its machine a process may use: control groups and CPU affinity set bounds that a count of CPUs
//! does not show.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are mounted: version 2, with version 1, and version 1's controllers.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const CPU_V1: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
const MEMORY_V1: &str = "/sys/fs/cgroup/memory";

/// CPUs that this process may use at a time: those of its affinity, or less where a quota allows less.
#[must_use]
pub fn cpus_allowed() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let affinity = parse_allowed_cpus(&status).unwrap_or(1);
    #[allow(clippy::cast_precision_loss, reason = "CPUs are few")]
    let affinity = affinity as f64;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let unified = folders(&UNIFIED, &groups, "").into_iter().filter_map(|folder| {
        let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        quota_cpus(quota, period)
    });
    let first = folders(&CPU_V1, &groups, "cpu").into_iter().filter_map(|folder| {
        let quota = fs::read_to_string(folder.join("cpu.cfs_quota_us")).ok()?;
        quota_cpus(&quota, &fs::read_to_string(folder.join("cpu.cfs_period_us")).ok()?)
    });
    unified.chain(first).fold(affinity, f64::min)
}

/// Bytes of memory that this process can still get: what the machine has free, or its control group's limit
/// where that is lower. `None` where neither can be read.
#[must_use]
pub fn memory_allowed_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let free = meminfo.lines().find_map(|line| {
        let kilobytes = line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?;
        kilobytes.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    })?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit =
        |folder: PathBuf, name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let unified = folders(&UNIFIED, &groups, "").into_iter().filter_map(|folder| limit(folder, "memory.max"));
    let first = folders(&[MEMORY_V1], &groups, "memory")
        .into_iter()
        .filter_map(|folder| limit(folder, "memory.limit_in_bytes"));
    Some(unified.chain(first).fold(free, u64::min))
}

/// The number of CPUs in `Cpus_allowed_list` of `/proc/PID/status`, such as `0-3,8`.
#[must_use]
pub fn parse_allowed_cpus(status: &str) -> Option<usize> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().split(',').try_fold(0, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(sum + last.checked_sub(first)? + 1)
    })
}

/// The path of a process's group in `/proc/PID/cgroup`; version 2 has no controller's name in its line.
#[must_use]
pub fn parse_group<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let named = fields.next()?.split(',').any(|name| name == controller);
        fields.next().filter(|_| named)
    })
}

/// The group's folder and all above it, below each of the places that are there.
fn folders(places: &[&str], groups: &str, controller: &str) -> Vec<PathBuf> {
    let Some(path) = parse_group(groups, controller) else { return Vec::new() };
    let below = |place: &&str| {
        let path = Path::new(path.trim_start_matches('/'));
        path.ancestors().map(|part| Path::new(place).join(part)).collect::<Vec<_>>()
    };
    places.iter().flat_map(below).collect()
}

/// `max`, and -1 in version 1, are no quota.
fn quota_cpus(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}
