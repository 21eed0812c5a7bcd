//! Starting such a process, as the one who asks it sees it.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A program that is started once more, as it is, whatever lies under its name by now.
const SELF: &str = "/proc/self/exe";

/// A process, which ends with the one who started it.
#[derive(Debug)]
pub struct RunningProcess(pub Child);

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // What is gone already is only taken note of.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Whether this process was started as such a one, by this first argument: it must start none itself.
#[must_use]
pub fn is_started_as(argument: &str) -> bool {
    std::env::args_os().nth(1).is_some_and(|first| first == argument)
}

/// Starts this program once more, called `name` in lists of processes, with pipes to and from it and nothing of this process's
/// surroundings.
///
/// # Errors
/// The system starts none.
pub fn start<A: AsRef<OsStr>>(
    name: &str,
    arguments: impl IntoIterator<Item = A>,
) -> std::io::Result<RunningProcess> {
    let program = std::fs::exists(SELF).unwrap_or(false).then(|| SELF.into());
    let program = program.map_or_else(std::env::current_exe, Ok)?;
    let child = Command::new(program)
        .arg0(name)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // What a terminal tells the server's group is not for it.
        .process_group(0)
        .spawn()?;
    Ok(RunningProcess(child))
}
