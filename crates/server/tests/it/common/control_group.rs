//! Processes that share a limit of the kernel's, where this machine lets us make one (cgroups(7), both versions).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// What is limited.
#[derive(Clone, Copy, Debug)]
pub enum Limited {
    MemoryBytes,
    Threads,
}

impl Limited {
    /// Where groups are made, and the file of the limit: of version 1, and of version 2.
    const fn places(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::MemoryBytes => {
                [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
            }
            Self::Threads => [("/sys/fs/cgroup/pids", "pids.max"), ("/sys/fs/cgroup", "pids.max")],
        }
    }
}

/// A group of its own, which goes with this.
pub struct ControlGroup {
    folder: PathBuf,
    limit: PathBuf,
}

impl ControlGroup {
    /// # Errors
    /// Why this machine has none for us.
    pub fn new(limited: Limited) -> Result<Self, String> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("scrinium-test-{}-{number}", std::process::id());
        let mut why = String::new();
        for (parent, file) in limited.places() {
            if !Path::new(parent).join("cgroup.procs").exists() {
                continue;
            }
            let folder = PathBuf::from(parent).join(&name);
            if let Err(error) = fs::create_dir(&folder) {
                why = format!(": {error}");
                continue;
            }
            let group = Self { limit: folder.join(file), folder };
            if group.limit.exists() {
                return Ok(group);
            }
        }
        Err(format!("no control group with a limit of {limited:?} can be made here{why}; root may"))
    }

    pub fn add(&self, process: u32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), process.to_string())
    }

    pub fn set_limit(&self, limit: u64) -> io::Result<()> {
        fs::write(&self.limit, limit.to_string())
    }

    /// The threads that it has just now.
    pub fn threads(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join("pids.current")).unwrap();
        text.trim().parse().unwrap()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Its processes may take a moment to be gone.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
