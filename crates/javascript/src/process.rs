//! A process that runs functions, as the one who asks it sees it. It is not believed, and not waited for without end.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use scrinium_confinement::{NO_CALLS, NO_FILES, RunningProcess, is_started_as};

use crate::entry::ARGUMENT;
use crate::error::ScriptError;
use crate::limits::Limits;
use crate::serve::{REQUEST_BYTES_MAX, allowance_ms};
use crate::wire::{Answer, MAGIC, Request};

/// What a process is called in lists of processes.
const NAME: &str = "scrinium-javascript";

/// So long a process may take to begin, on a machine that has other things to do.
const BEGIN: Duration = Duration::from_secs(30);

/// So long a process may take in all beyond its processor time, for the same reason.
const WAIT: Duration = Duration::from_secs(60);

/// How often the processor time of a process is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// So long a process that has closed its pipes may take to end, and how often it is looked at meanwhile.
const ENDING: Duration = Duration::from_secs(1);
const ENDING_LOOKS: u32 = 500;

/// Bytes that a pipe holds, where the system allows it: a batch goes in at once.
const PIPE_BYTES: usize = 256 << 10;

/// Next to what its entries may have, an answer is at most so long.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Why there is no answer. The process is no more.
#[derive(Debug)]
pub(crate) enum Lost {
    /// It used more processor time than it may.
    Overrun,
    /// It ended by itself, which what it ran may have caused.
    Ended { how: String },
    /// Something else: it was killed, could not be started, or had no processor.
    Unavailable(ScriptError),
    /// There was none for as long as one waits: all had something to do.
    Busy(ScriptError),
}

/// A process.
pub(crate) struct Process {
    process: RunningProcess,
    input: ChildStdin,
    output: ChildStdout,
    received: Vec<u8>,
    limits: Limits,
    /// Which walls stand around it.
    pub(crate) walls: u8,
}

impl Process {
    /// Starts one with an engine of so much memory.
    pub(crate) fn start(limits: &Limits) -> Result<Self, Lost> {
        if is_started_as(ARGUMENT) {
            return Err(unavailable("this process is one that runs functions".to_owned()));
        }
        let arguments = [ARGUMENT.to_owned(), limits.memory_bytes.to_string()];
        let mut process = scrinium_confinement::start(NAME, arguments)
            .map_err(|error| unavailable(format!("no process can be started: {error}")))?;
        let (Some(input), Some(output)) = (process.0.stdin.take(), process.0.stdout.take()) else {
            return Err(unavailable("a process has no pipes".to_owned()));
        };
        let mut process =
            Self { process, input, output, received: Vec::new(), limits: limits.clone(), walls: 0 };
        process.begin()?;
        Ok(process)
    }

    fn begin(&mut self) -> Result<(), Lost> {
        let failed = |error: rustix::io::Errno| unavailable(format!("a pipe cannot be used: {error}"));
        rustix::io::ioctl_fionbio(&self.input, true).map_err(failed)?;
        rustix::io::ioctl_fionbio(&self.output, true).map_err(failed)?;
        #[cfg(target_os = "linux")]
        {
            // Smaller ones only take more turns.
            let _ = rustix::pipe::fcntl_setpipe_size(&self.input, PIPE_BYTES);
            let _ = rustix::pipe::fcntl_setpipe_size(&self.output, PIPE_BYTES);
        }
        let patience = Patience { until: Instant::now() + BEGIN, processor_ms: u64::MAX, used_ms: 0 };
        let hello = self.receive(&patience).map_err(|lost| match lost {
            // Nothing that it could have run was there yet.
            Lost::Ended { how } => unavailable(format!("a process that was started ended at once: {how}")),
            lost => lost,
        })?;
        match hello.split_first_chunk::<{ MAGIC.len() }>() {
            Some((magic, [walls])) if magic == MAGIC => self.walls = *walls & (NO_FILES | NO_CALLS),
            _ => return Err(unavailable("the process that was started does not run functions".to_owned())),
        }
        Ok(())
    }

    /// Its number, as the system counts processes.
    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Asks it, for at most this many outcomes.
    pub(crate) fn ask(&mut self, request: &Request<'_>, outcomes_max: usize) -> Result<Answer, Lost> {
        let frame = request.encode();
        if frame.len() > REQUEST_BYTES_MAX {
            return Err(unavailable(format!("a request of {} bytes is too long", frame.len())));
        }
        let allowance_ms = allowance_ms(self.limits.call_time_ms);
        let patience = Patience {
            until: Instant::now() + Duration::from_millis(allowance_ms) + WAIT,
            processor_ms: allowance_ms,
            used_ms: self.processor_ms().unwrap_or(0),
        };
        self.send(&frame, &patience)?;
        let answer = self.receive(&patience)?;
        let answer = Answer::decode(&answer, &self.limits);
        answer
            .filter(|answer| answer.outcomes.len() <= outcomes_max)
            .ok_or_else(|| Lost::Ended { how: "an answer that makes no sense".to_owned() })
    }

    fn send(&mut self, mut bytes: &[u8], patience: &Patience) -> Result<(), Lost> {
        while !bytes.is_empty() {
            match self.input.write(bytes) {
                Ok(0) => return Err(self.ended()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(patience, PollFlags::OUT)?;
                }
                Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    /// A whole frame without its length.
    fn receive(&mut self, patience: &Patience) -> Result<Vec<u8>, Lost> {
        let length_max = ANSWER_BYTES_MAX.saturating_add(self.limits.emitted_bytes_max.saturating_mul(3));
        loop {
            if let Some((head, body)) = self.received.split_first_chunk::<4>() {
                let length = usize::try_from(u32::from_le_bytes(*head)).unwrap_or(usize::MAX);
                if length > length_max || body.len() > length {
                    return Err(Lost::Ended { how: "an answer that makes no sense".to_owned() });
                }
                if body.len() == length {
                    let mut frame = std::mem::take(&mut self.received);
                    return Ok(frame.split_off(4));
                }
            }
            let mut piece = [0; 64 << 10];
            match self.output.read(&mut piece) {
                Ok(0) => return Err(self.ended()),
                Ok(read) => self.received.extend_from_slice(piece.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(patience, PollFlags::IN)?,
                Err(_) => return Err(self.ended()),
            }
        }
    }

    /// Waits until something can be read or written, and ends a process that takes too long.
    fn wait(&mut self, patience: &Patience, flags: PollFlags) -> Result<(), Lost> {
        let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        loop {
            let descriptor = if flags == PollFlags::OUT { self.input.as_fd() } else { self.output.as_fd() };
            match poll(&mut [PollFd::from_borrowed_fd(descriptor, flags)], Some(&look)) {
                Ok(0) => {}
                Ok(_) | Err(rustix::io::Errno::INTR) => return Ok(()),
                Err(error) => return Err(unavailable(format!("a pipe cannot be waited for: {error}"))),
            }
            let used_ms = self.processor_ms().unwrap_or(0).saturating_sub(patience.used_ms);
            if used_ms > patience.processor_ms {
                drop(self.process.0.kill());
                return Err(Lost::Overrun);
            }
            if Instant::now() > patience.until {
                drop(self.process.0.kill());
                let reason = "a process did not answer; the machine has too much to do".to_owned();
                return Err(unavailable(reason));
            }
        }
    }

    /// It does not listen or talk any more.
    fn ended(&mut self) -> Lost {
        // Its pipes close a moment before it has ended; one that closed them and lives on ends here.
        let ends = || {
            matches!(self.process.0.try_wait(), Ok(Some(_)) | Err(_)) || {
                std::thread::sleep(ENDING / ENDING_LOOKS);
                false
            }
        };
        let by_itself = std::iter::repeat_with(ends).take(ENDING_LOOKS as usize).any(|has_ended| has_ended);
        drop(self.process.0.kill());
        let status = match self.process.0.wait() {
            Ok(status) => status,
            Err(error) => return unavailable(format!("a process cannot be waited for: {error}")),
        };
        let killed = Some(rustix::process::Signal::KILL.as_raw());
        let out_of_time = Some(rustix::process::Signal::XCPU.as_raw());
        match status.signal() {
            signal if signal == out_of_time => Lost::Overrun,
            signal if signal == killed && by_itself => {
                unavailable("the process was killed from outside".to_owned())
            }
            Some(signal) => Lost::Ended { how: format!("signal {signal}") },
            None => Lost::Ended { how: status.to_string() },
        }
    }

    /// Processor time that it has used, where the system tells.
    fn processor_ms(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).ok()?;
        // The name in brackets may have spaces; the fourteenth and fifteenth field are counted behind it.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut ticks = fields.split_ascii_whitespace().skip(11).take(2).map(str::parse::<u64>);
        let used = ticks.next()?.ok()?.saturating_add(ticks.next()?.ok()?);
        Some(used.saturating_mul(1000) / rustix::param::clock_ticks_per_second().max(1))
    }
}

/// How long an answer is waited for.
struct Patience {
    until: Instant,
    /// Processor time that it may take.
    processor_ms: u64,
    /// Processor time that the process had used before.
    used_ms: u64,
}

fn unavailable(reason: String) -> Lost {
    Lost::Unavailable(ScriptError::Unavailable { reason })
}
