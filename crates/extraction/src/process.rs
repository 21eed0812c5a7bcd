//! A process that reads a file, as the one who asks it sees it. It is not believed, and not waited for without end.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use scrinium_confinement::{RunningProcess, is_started_as};

use crate::entry::ARGUMENT;
use crate::kind::Kind;
use crate::{ExtractionError, Limits};

/// What a process is called in lists of processes.
const NAME: &str = "scrinium-extraction";
/// What an answer begins with.
pub(crate) const READY: &[u8] = b"words:";
/// A file is at most so long.
pub(crate) const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// So long a process may take in all beyond its processor time, on a machine that has other things to do.
const WAIT: Duration = Duration::from_secs(30);
/// How long it is waited for a pipe before the time is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The words of a file.
pub(crate) fn ask(kind: Kind, bytes: &[u8], limits: &Limits) -> Result<String, ExtractionError> {
    if bytes.len() as u64 > REQUEST_BYTES_MAX {
        return Err(unreadable(format!("it has more than {REQUEST_BYTES_MAX} bytes")));
    }
    let mut process = start(kind, bytes.len(), limits)?;
    let until = Instant::now() + Duration::from_secs(limits.seconds) + WAIT;
    let answer = talk(&mut process.0, bytes, limits, until)?;
    let words = answer.strip_prefix(READY).ok_or_else(|| ended(&mut process.0))?;
    // Of a process that was ended while it wrote, this is what it had written.
    Ok(String::from_utf8_lossy(words).into_owned())
}

fn start(kind: Kind, file_bytes: usize, limits: &Limits) -> Result<RunningProcess, ExtractionError> {
    if is_started_as(ARGUMENT) {
        return Err(unavailable("this process is one that reads files".to_owned()));
    }
    let memory_bytes = limits.memory_bytes.saturating_add(file_bytes);
    let arguments = [
        ARGUMENT.to_owned(),
        memory_bytes.to_string(),
        limits.seconds.to_string(),
        limits.text_bytes.to_string(),
        if kind == Kind::Pdf { "0" } else { "1" }.to_owned(),
    ];
    let process = scrinium_confinement::start(NAME, arguments);
    process.map_err(|error| unavailable(format!("no process can be started: {error}")))
}

/// Writes the file to the process, and reads what it says until it says no more.
fn talk(
    process: &mut Child,
    bytes: &[u8],
    limits: &Limits,
    until: Instant,
) -> Result<Vec<u8>, ExtractionError> {
    let (Some(mut input), Some(mut output)) = (process.stdin.take(), process.stdout.take()) else {
        return Err(unavailable("a process has no pipes".to_owned()));
    };
    let failed = |error: rustix::io::Errno| unavailable(format!("a pipe cannot be used: {error}"));
    rustix::io::ioctl_fionbio(&input, true).map_err(failed)?;
    rustix::io::ioctl_fionbio(&output, true).map_err(failed)?;
    let mut left = bytes;
    while !left.is_empty() {
        match input.write(left) {
            Ok(written) if written > 0 => left = left.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&input, PollFlags::OUT, until)?,
            // It reads no more: what it says tells why.
            Ok(_) | Err(_) => break,
        }
    }
    drop(input);
    let answer_max = limits.text_bytes.saturating_add(READY.len());
    let mut answer = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match output.read(&mut piece) {
            Ok(0) => return Ok(answer),
            Ok(read) => answer.extend_from_slice(piece.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&output, PollFlags::IN, until)?,
            Err(_) => return Ok(answer),
        }
        if answer.len() > answer_max {
            return Err(unreadable("an answer that makes no sense".to_owned()));
        }
    }
}

fn wait(pipe: &impl AsFd, flags: PollFlags, until: Instant) -> Result<(), ExtractionError> {
    let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
    loop {
        // Also one that has always a little to say, or to read, comes to its end.
        if Instant::now() > until {
            return Err(unreadable("it takes too long".to_owned()));
        }
        match poll(&mut [PollFd::from_borrowed_fd(pipe.as_fd(), flags)], Some(&look)) {
            Ok(0) => {}
            Ok(_) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(unavailable(format!("a pipe cannot be waited for: {error}"))),
        }
    }
}

/// It has said nothing, and says no more.
fn ended(process: &mut Child) -> ExtractionError {
    drop(process.kill());
    match process.wait() {
        Ok(status) => unreadable(format!("its reader ended with {status}")),
        Err(error) => unavailable(format!("a process cannot be waited for: {error}")),
    }
}

fn unreadable(reason: String) -> ExtractionError {
    ExtractionError::Unreadable { reason }
}

fn unavailable(reason: String) -> ExtractionError {
    ExtractionError::Unavailable { reason }
}
