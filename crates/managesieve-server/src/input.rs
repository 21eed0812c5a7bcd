//! What comes from a client, one frame after the other.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use scrinium_accounting::{Account, Claim, Resource};
use scrinium_mail::TEXTS_MAX_BYTES;
use scrinium_managesieve_wire::{Frame, FrameLimits, FrameReader, FrameStep, Speaker};
use scrinium_port::{Link, PortStream, raised};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::Instant;

/// Read at a time.
const READ_BYTES: usize = 4 << 10;

/// Lines of a command: an exchange of SASL may have long ones.
const LINE_BYTES: usize = 16 << 10;

/// A script that is too long is read and dropped up to this, so that the client hears why.
const DROPPED_BYTES: u64 = 4 << 20;

/// How long the next whole command may take: of somebody who has not logged in, and of somebody who has (RFC 5804 §1.2 asks for half an
/// hour).
const UNKNOWN_PATIENCE: Duration = Duration::from_secs(60);
const KNOWN_PATIENCE: Duration = Duration::from_mins(30);

/// How long a command that has begun may take.
const COMMAND_PATIENCE: Duration = Duration::from_mins(2);

/// A frame, or why there is none.
pub(crate) enum Arrived {
    Frame(Frame),
    /// Its literals were too long.
    TooLong,
    Late,
    /// The client has too much under way.
    Busy,
    /// What came is no frame.
    Wrong(String),
    /// The connection is to end, for this reason.
    Stopped(&'static str),
}

/// Says when a connection is to end.
pub(crate) struct Stop {
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) link: Arc<Link>,
}

impl Stop {
    /// Waits for that; for the server's end only where nothing is lost by it.
    async fn wait(&mut self, may_stop: bool) -> &'static str {
        tokio::select! {
            biased;
            () = raised(&mut self.stopping), if may_stop => "The server stops.",
            () = self.link.shed() => "The server needs the place for somebody else.",
        }
    }
}

/// Puts frames together.
pub(crate) struct Input {
    reader: FrameReader,
    /// Read, and not looked at.
    read: Vec<u8>,
    is_known: bool,
}

impl Input {
    pub(crate) fn new() -> Self {
        Self { reader: FrameReader::new(limits(false), Speaker::Client), read: Vec::new(), is_known: false }
    }

    /// Allows what somebody may who has logged in, or has not.
    pub(crate) fn set_known(&mut self, is_known: bool) {
        self.is_known = is_known;
        self.reader.set_limits(limits(is_known));
    }

    /// Whether a client has sent more than what was looked at.
    pub(crate) fn has_more(&self) -> bool {
        !self.read.is_empty() || !self.reader.is_idle()
    }

    /// The next frame. One that somebody who has logged in has begun is waited for where the server stops.
    pub(crate) async fn next(
        &mut self,
        stream: &mut PortStream,
        account: &Account,
        stop: &mut Stop,
    ) -> io::Result<Arrived> {
        let mut deadline = Instant::now() + if self.is_known { KNOWN_PATIENCE } else { UNKNOWN_PATIENCE };
        let mut held: Option<Claim> = None;
        loop {
            let was_idle = self.reader.is_idle();
            let (taken, step) = match self.reader.read(&self.read) {
                Ok(step) => step,
                Err(error) => return Ok(Arrived::Wrong(error.to_string())),
            };
            self.read.drain(..taken.min(self.read.len()));
            match step {
                FrameStep::Frame(frame) => return Ok(Arrived::Frame(frame)),
                FrameStep::TooLong(_) => return Ok(Arrived::TooLong),
                FrameStep::More => {}
            }
            if was_idle && !self.reader.is_idle() {
                deadline = deadline.min(Instant::now() + COMMAND_PATIENCE);
            }
            self.read.reserve_exact(READ_BYTES);
            let mut bounded = (&mut *stream).take(READ_BYTES as u64);
            let read = tokio::select! {
                biased;
                // Before what comes, so that who sends a command byte by byte is not waited for longer.
                () = tokio::time::sleep_until(deadline) => return Ok(Arrived::Late),
                why = stop.wait(self.reader.is_idle() || !self.is_known) => return Ok(Arrived::Stopped(why)),
                read = bounded.read_buf(&mut self.read) => read?,
            };
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let claim = held.get_or_insert_with(|| account.claim_made(Resource::Bytes, 0));
            if claim.grow(read).is_err() {
                return Ok(Arrived::Busy);
            }
        }
    }
}

/// Before a log-in nothing long is to be said.
fn limits(is_known: bool) -> FrameLimits {
    let literal_bytes = if is_known { TEXTS_MAX_BYTES } else { LINE_BYTES };
    let dropped_bytes = if is_known { DROPPED_BYTES } else { LINE_BYTES as u64 };
    FrameLimits { line_bytes: LINE_BYTES, literal_bytes, dropped_bytes, literals: 3 }
}
