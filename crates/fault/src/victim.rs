//! A process that works until it is killed, and what it told by then.
//!
//! The process is the test program itself, which runs the ignored test `child` of one module alone. That test asks [`Victim::order`] where
//! to work, and tells its parent by [`tell`] how far it came.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::Rng;

const FOLDER: &str = "SCRINIUM_CHILD_FOLDER";
const NUMBER: &str = "SCRINIUM_CHILD_NUMBER";
const READY: &str = "ready";
const READY_WITHIN: Duration = Duration::from_secs(60);

/// This test program once more, to run an ignored test of a module alone, with an output that nobody captures. The module is
/// the caller's `module_path!()`.
///
/// # Errors
/// If the program's own path cannot be had.
pub fn rerun(module: &str, test: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([&name_in_program(module, test), "--exact", "--ignored", "--nocapture"]);
    Ok(command)
}

/// As the test program calls a test: its path without the program's own name, which comes first in the path of a module.
fn name_in_program(module: &str, test: &str) -> String {
    module.split_once("::").map_or_else(|| test.to_owned(), |(_, inner)| format!("{inner}::{test}"))
}

/// Tells the parent one line, in a child. Who is heard by nobody any more ends.
pub fn tell(line: impl fmt::Display) {
    // What the test's frame says before ends without a line of its own.
    let line = format!("\n@{line}\n");
    let mut output = io::stdout().lock();
    if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
        std::process::exit(1);
    }
}

/// A child at work. It does not outlive this value.
pub struct Victim {
    child: Child,
    ready: Receiver<()>,
    reading: Option<JoinHandle<Vec<String>>>,
}

impl Victim {
    /// Starts the test `child` of a module (`module_path!()`) to work in `folder`, with a number that means what the two
    /// agree on.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(module: &str, folder: &Path, number: u64) -> io::Result<Self> {
        let mut command = rerun(module, "child")?;
        command.env(FOLDER, folder).env(NUMBER, number.to_string()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take();
        let (is_ready, ready) = channel();
        let reading =
            std::thread::spawn(move || output.map_or_else(Vec::new, |output| hear(output, &is_ready)));
        Ok(Self { child, ready, reading: Some(reading) })
    }

    /// In the child: the folder and the number that it was started with; `None` where no parent started it.
    #[must_use]
    pub fn order() -> Option<(PathBuf, u64)> {
        Some((std::env::var_os(FOLDER)?.into(), std::env::var(NUMBER).ok()?.parse().ok()?))
    }

    /// Waits until the child has told `ready`.
    ///
    /// # Errors
    /// If it ended before, or is not ready for a minute.
    pub fn wait_until_ready(&self) -> io::Result<()> {
        let ready = self.ready.recv_timeout(READY_WITHIN);
        ready.map_err(|error| io::Error::other(format!("the child is not ready: {error}")))
    }

    /// Kills the child. What it told by then is returned in order, but `ready`.
    ///
    /// # Errors
    /// If it ended by itself with a failure.
    pub fn kill(mut self) -> io::Result<Vec<String>> {
        // One whose output has ended is ending by itself.
        if self.ready.try_recv() != Err(TryRecvError::Disconnected) {
            self.child.kill()?;
        }
        let ended = self.child.wait()?;
        if ended.code().is_some_and(|code| code != 0) {
            return Err(io::Error::other(format!("the child failed before it was killed: {ended}")));
        }
        let told = self.reading.take().map(JoinHandle::join);
        told.and_then(Result::ok).ok_or_else(|| io::Error::other("what the child told was not read"))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines that were told whole.
fn hear(output: impl Read, is_ready: &Sender<()>) -> Vec<String> {
    let mut output = BufReader::new(output);
    let (mut told, mut line) = (Vec::new(), Vec::new());
    while output.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let text = line.strip_prefix(b"@").and_then(|line| line.strip_suffix(b"\n"));
        match text.map(String::from_utf8_lossy) {
            Some(text) if text == READY => drop(is_ready.send(())),
            Some(text) => told.push(text.into_owned()),
            None => {}
        }
        line.clear();
    }
    told
}

/// Adds to `known` what a child did that writes one thing after the other, and tells `begin KEY VALUE` before each write and
/// `done KEY VALUE` after it. Returned is the write that was under way when it was killed, which came through or not.
pub fn writes_done(told: &[String], known: &mut BTreeMap<u64, u64>) -> Option<(u64, u64)> {
    let mut under_way = None;
    for line in told {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind, key, value] = words.as_slice() else { continue };
        let (Ok(key), Ok(value)) = (key.parse(), value.parse()) else { continue };
        under_way = (*kind == "begin").then_some((key, value));
        if *kind == "done" {
            known.insert(key, value);
        }
    }
    under_way
}

/// How often a test kills a child, and what it repeats: from `SCRINIUM_SEED` and `SCRINIUM_KILLS`.
#[derive(Clone, Copy, Debug)]
pub struct Kills {
    /// What all choices come from. The moments of kills can be repeated as far as threads take the same turns.
    pub seed: u64,
    /// How many.
    pub count: u64,
}

impl Kills {
    /// At most this many, unless the environment names another number, and a seed of its own likewise.
    #[must_use]
    pub fn from_environment(count: u64) -> Self {
        let number = |name: &str| std::env::var(name).ok()?.parse().ok();
        Self {
            seed: number("SCRINIUM_SEED").unwrap_or_else(|| rand::rng().random()),
            count: number("SCRINIUM_KILLS").unwrap_or(count),
        }
    }
}

impl fmt::Display for Kills {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SCRINIUM_SEED={} SCRINIUM_KILLS={}", self.seed, self.count)
    }
}
