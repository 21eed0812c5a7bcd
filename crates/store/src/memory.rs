//! How much memory the machine, or the container in it, has; and giving some back.

use std::fs;
use std::path::{Path, PathBuf};

/// Used where neither the machine nor a container tells, so that the default budget becomes 256 MB.
const UNKNOWN_BYTES: u64 = 1 << 30;

/// Containers without a limit show a number near 2^63.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// Bytes of memory that this process may use: the machine's, or the smallest limit of the control groups
/// (versions 1 and 2) that the process is in.
#[must_use]
pub fn available_bytes() -> u64 {
    available_under(Path::new("/"))
}

/// As [`available_bytes`], with `/proc` and `/sys` looked up below `root`.
fn available_under(root: &Path) -> u64 {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total_of_meminfo(&text));
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = limit_files(root, &groups);
    let container = limits.iter().filter_map(|path| limit_in(path)).min();
    match (machine, container) {
        (Some(machine), Some(container)) => machine.min(container),
        (Some(bytes), None) | (None, Some(bytes)) => bytes,
        (None, None) => UNKNOWN_BYTES,
    }
}

/// Gives back to the system what the C library's allocator, which is RocksDB's, holds free (malloc_trim(3)). By itself it
/// gives back the ends of its arenas alone, and blocks that stay lie all over them. It looks at all that is free, so it is
/// not for every request.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "no crate has this call of the C library in a safe form")]
pub(crate) fn give_back() {
    const KEPT_AT_THE_END: usize = 0;
    // SAFETY: it takes the allocator's own locks, and gives back only pages that nobody has.
    unsafe { libc::malloc_trim(KEPT_AT_THE_END) };
}

/// Other C libraries have no such call.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back() {}

/// The number of the line `MemTotal:       24684012 kB`, in bytes.
fn total_of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The files that may hold a limit: those of the process's groups and of every group above them, since
/// the tightest one counts.
fn limit_files(root: &Path, groups: &str) -> Vec<PathBuf> {
    let base = root.join("sys/fs/cgroup");
    let mut files = Vec::new();
    for line in groups.lines() {
        // hierarchy:controllers:path; version 2 leaves the controllers empty.
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (top, file) = if controllers.is_empty() {
            (base.clone(), "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            (base.join("memory"), "memory.limit_in_bytes")
        } else {
            continue;
        };
        let inner = top.join(path.trim_start_matches('/'));
        files.extend(
            inner.ancestors().take_while(|folder| folder.starts_with(&top)).map(|folder| folder.join(file)),
        );
    }
    // Within a container the path is often that of the host, and the limit at the top of the mount.
    files.push(base.join("memory.max"));
    files.push(base.join("memory/memory.limit_in_bytes"));
    files
}

fn limit_in(path: &Path) -> Option<u64> {
    let bytes: u64 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    (bytes < NO_LIMIT_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> u64 {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        available_under(root.path())
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:        8192 kB\nMemFree:  1 kB\n");

    #[test]
    fn the_smaller_of_machine_and_container_counts() {
        assert_eq!(machine(&[]), UNKNOWN_BYTES);
        assert_eq!(machine(&[MEMINFO]), 8192 * 1024);
        let version_2 = [
            MEMINFO,
            ("proc/self/cgroup", "0::/system.slice/scrinium.service\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "4194304\n"),
            ("sys/fs/cgroup/system.slice/scrinium.service/memory.max", "max\n"),
        ];
        assert_eq!(machine(&version_2), 4 << 20);
        let version_1 = [
            MEMINFO,
            ("proc/self/cgroup", "5:cpu,memory:/docker/abc\n3:cpuset:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n"),
        ];
        assert_eq!(machine(&version_1), 2 << 20);
        let unlimited = [
            MEMINFO,
            ("proc/self/cgroup", "5:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(machine(&unlimited), 8192 * 1024);
        assert!(available_bytes() > 0);
    }
}
