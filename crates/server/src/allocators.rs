//! What the allocators of the process are told, which they read from the environment when it begins.
//!
//! Left to themselves, mimalloc (the program's) keeps what was freed for a second, and the C library's (RocksDB's) keeps
//! what each of up to eight arenas for each core ever took. Both then hold several times a small budget
//! (`make bench NAME=memory-budget`).

use std::os::unix::process::CommandExt;
use std::process::Command;

/// This many arenas are as good as one for each thread, for what RocksDB allocates.
const ARENAS_MAX: usize = 16;

/// Begins the process again with these settings, unless it has them; those that somebody else has made stay. It keeps
/// its number. Where that is not possible, the server runs without them, and takes more memory.
pub(crate) fn settle() {
    let missing: Vec<(&str, String)> =
        settings().into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect();
    if missing.is_empty() {
        return;
    }
    let mut arguments = std::env::args_os();
    let (Ok(program), Some(name)) = (std::env::current_exe(), arguments.next()) else { return };
    // It only returns if it failed.
    let _not_begun = Command::new(program).arg0(name).args(arguments).envs(missing).exec();
}

fn settings() -> [(&'static str, String); 5] {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    [
        // Milliseconds.
        ("MIMALLOC_PURGE_DELAY", "10".to_owned()),
        // Of a huge page nothing is given back while any of it is in use: a fifth of a server with a small budget.
        ("MIMALLOC_ALLOW_THP", "0".to_owned()),
        ("MALLOC_ARENA_MAX", cores.clamp(2, ARENAS_MAX).to_string()),
        // Bytes: larger pieces are given back at once, and so is what is free at an arena's end.
        ("MALLOC_MMAP_THRESHOLD_", (256 << 10).to_string()),
        ("MALLOC_TRIM_THRESHOLD_", (1 << 20).to_string()),
    ]
}
