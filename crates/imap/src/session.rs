//! A session: its buffers, its state, and what happens next.

use std::fmt;
use std::sync::Arc;

use scrinium_credentials::sasl::{ChannelBindings, SaslMechanism};
use scrinium_imap_wire::{
    CommandOptions, FrameLimits, FrameReader, LineEnds, LineScanner, NameEncoding, Response, ResponseCode,
    Speaker, Status, Tag, ValueLimits, WriteOptions, joined,
};
use scrinium_mailbox::NumberSet;

use crate::append::AppendState;
use crate::capability::{Capability, CapabilitySet};
use crate::compress::Inflater;
use crate::login::Login;
use crate::notify::Watch;
use crate::options::{Encryption, Peer, ServerLimits, ServerOptions};
use crate::output::Output;
use crate::request::{Answer, Request};
use crate::selected::Selected;
use crate::task::{Ending, Flow, Task};

/// What an idle session may keep of its buffers.
const IDLE_BUFFER_BYTES: usize = 512;

/// A line of SASL: tokens are what is long.
const LOGIN_LINE_BYTES: usize = 24 * 1024;

pub(crate) enum SessionState {
    /// Nobody was greeted.
    Opening,
    Commands,
    Login(Box<Login>),
    /// The tag of IDLE.
    Idle(Tag),
    Closed,
}

/// What ENABLE and its kin have switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Enabled {
    pub(crate) condstore: bool,
    pub(crate) qresync: bool,
    pub(crate) utf8: bool,
    pub(crate) rev2: bool,
    pub(crate) uid_only: bool,
}

#[derive(Default)]
pub(crate) struct Counts {
    /// Refused commands since the last one that was not.
    pub(crate) errors: usize,
    pub(crate) early_errors: usize,
    pub(crate) login_failures: usize,
}

/// The server's side of one connection. See the [crate's page](crate) for the loop around it.
pub struct ServerSession {
    pub(crate) options: Arc<ServerOptions>,
    pub(crate) now_ms: u64,
    opened_ms: u64,
    /// When the last command was whole, or ended.
    pub(crate) active_ms: u64,
    /// When bytes last came.
    heard_ms: u64,
    asked_ms: u64,
    /// When something was last sent that keeps an idle connection alive, or tells of progress.
    pub(crate) kept_ms: u64,
    pub(crate) input: Vec<u8>,
    pub(crate) used: usize,
    pub(crate) output: Output,
    pub(crate) inflater: Option<Inflater>,
    pub(crate) frames: FrameReader,
    pub(crate) scanner: LineScanner,
    pub(crate) state: SessionState,
    /// The command that runs.
    pub(crate) tag: Option<Tag>,
    task: Option<Task>,
    /// The task that waits for an answer.
    pending: Option<Task>,
    asked: Option<Request>,
    pub(crate) append: AppendState,
    is_shutting_down: bool,
    /// Somebody has changed something that the client is to hear of at once.
    woken: bool,
    pub(crate) peer: Peer,
    pub(crate) encryption: Option<Encryption>,
    pub(crate) person: Option<String>,
    /// What is hidden from this person and this client.
    pub(crate) hidden: CapabilitySet,
    pub(crate) enabled: Enabled,
    pub(crate) selected: Option<Box<Selected>>,
    /// `$` (RFC 5182).
    pub(crate) saved: NumberSet,
    pub(crate) watch: Option<Box<Watch>>,
    pub(crate) counts: Counts,
}

/// It holds texts of people, which no log may show.
impl fmt::Debug for ServerSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ServerSession({} bytes in, {} out)", self.input.len(), self.output.len())
    }
}

/// How a step ends.
pub(crate) enum StepEnd {
    /// Something was done.
    Done,
    /// More input is needed.
    Starved,
}

impl ServerSession {
    /// A connection was accepted. `encryption` is what it has from its beginning, as on port 993.
    #[must_use]
    pub fn new(options: Arc<ServerOptions>, peer: Peer, encryption: Option<Encryption>, now_ms: u64) -> Self {
        Self {
            now_ms,
            opened_ms: now_ms,
            active_ms: now_ms,
            heard_ms: now_ms,
            asked_ms: now_ms,
            kept_ms: now_ms,
            input: Vec::new(),
            used: 0,
            output: Output::default(),
            inflater: None,
            frames: FrameReader::new(frame_limits(options.limits.login_command_bytes), Speaker::Client),
            scanner: LineScanner::new(LOGIN_LINE_BYTES, LineEnds::Strict),
            state: SessionState::Opening,
            tag: None,
            task: None,
            pending: None,
            asked: None,
            append: AppendState::default(),
            is_shutting_down: false,
            woken: false,
            peer,
            encryption,
            person: None,
            hidden: CapabilitySet::NONE,
            enabled: Enabled::default(),
            selected: None,
            saved: NumberSet::default(),
            watch: None,
            counts: Counts::default(),
            options,
        }
    }

    /// Takes bytes that have come; how many: fewer than there are where the buffer is full. The rest is offered once more later.
    pub fn receive(&mut self, bytes: &[u8], now_ms: u64) -> usize {
        self.now_ms = now_ms;
        if self.is_closed() {
            return bytes.len();
        }
        if matches!(self.pending, Some(Task::StartTls)) && !bytes.is_empty() {
            // Commands in the open behind STARTTLS are somebody else's (RFC 9051, section 6.2.1).
            self.end_silently();
            return bytes.len();
        }
        self.input.drain(..self.used.min(self.input.len()));
        self.used = 0;
        let room = self.limits().input_bytes.saturating_sub(self.input.len());
        let taken = match &mut self.inflater {
            Some(inflater) => match inflater.inflate(bytes, &mut self.input, room) {
                Ok(taken) => taken,
                Err(_) => {
                    self.bye(None, "What comes is not compressed as agreed");
                    return bytes.len();
                }
            },
            None => {
                let taken = bytes.len().min(room);
                self.input.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                taken
            }
        };
        if taken > 0 {
            self.heard_ms = now_ms;
        }
        taken
    }

    /// Whether more input would be taken and looked at.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.is_closed()
            && self.rest().len() < self.limits().input_bytes
            && !matches!(self.pending, Some(Task::StartTls))
    }

    /// Does what can be done; what the surroundings are to answer next. `None` while an answer is due, where
    /// input is needed, where output must go first, and at the end.
    pub fn next(&mut self, now_ms: u64) -> Option<Request> {
        self.now_ms = now_ms;
        loop {
            if let Some(request) = self.asked.take() {
                self.asked_ms = now_ms;
                return Some(request);
            }
            if self.pending.is_some() {
                return None;
            }
            if self.append.take_abandoned() {
                self.pending = Some(Task::Abandoned);
                self.asked_ms = now_ms;
                return Some(Request::AbandonAppend);
            }
            if self.is_closed() || self.output.len() >= self.limits().output_bytes {
                return None;
            }
            if let Some(task) = self.task.take() {
                let flow = self.advance(task);
                self.follow(flow);
            } else if let StepEnd::Starved = self.step() {
                self.shrink();
                return None;
            }
        }
    }

    /// The answer to the request that was handed out last. One that comes after the session has ended changes nothing.
    pub fn answer(&mut self, answer: Answer, now_ms: u64) {
        self.now_ms = now_ms;
        let Some(task) = self.pending.take() else { return };
        self.heard_ms = now_ms;
        let flow = self.resume(task, answer);
        self.follow(flow);
        if self.is_shutting_down && !self.is_closed() {
            self.bye(None, SHUTDOWN_TEXT);
        }
    }

    /// What is to be sent. In the clear up to [`Request::StartTls`], encrypted behind it.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        self.output.take()
    }

    /// Whether there is something to be sent.
    #[must_use]
    pub fn wants_flush(&self) -> bool {
        self.output.len() > 0
    }

    /// Whether the connection is to be closed once the output is sent and [`Self::next`] gives nothing more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, SessionState::Closed)
    }

    /// The folder whose changes are to be told at once: by [`Self::wake`]. Any folder's, where NOTIFY watches others.
    #[must_use]
    pub fn watches(&self) -> Watching {
        let folder = || self.selected.as_ref().map(|selected| selected.folder);
        match (&self.state, &self.watch) {
            (SessionState::Closed, _) => Watching::Nothing,
            (_, Some(watch)) if watch.has_others() => Watching::All,
            (SessionState::Idle(_), _) => folder().map_or(Watching::Nothing, Watching::Folder),
            (_, Some(_)) => folder().map_or(Watching::Nothing, Watching::Folder),
            _ => Watching::Nothing,
        }
    }

    /// Something has changed in what the session [watches](Self::watches).
    pub fn wake(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.woken = true;
    }

    /// When [`Self::time_passed`] has something to do, if nothing happens before.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        let times = &self.options.times;
        if self.is_closed() {
            return u64::MAX;
        }
        let login = match self.person {
            None => self.opened_ms.saturating_add(times.login_ms),
            Some(_) => u64::MAX,
        };
        let deadline = match (&self.pending, &self.state) {
            (Some(Task::StartTls), _) => self.asked_ms.saturating_add(times.tls_ms),
            (Some(_), _) => return self.asked_ms.saturating_add(times.answer_ms),
            (None, SessionState::Idle(_)) => {
                self.idle_deadline_ms().min(self.kept_ms.saturating_add(times.keep_alive_ms))
            }
            (None, _) if !self.frames.is_idle() => self.heard_ms.saturating_add(times.pause_ms),
            (None, _) => self.idle_deadline_ms(),
        };
        deadline.min(login)
    }

    fn idle_deadline_ms(&self) -> u64 {
        self.active_ms.saturating_add(self.options.times.idle_ms)
    }

    /// Ends the session if its deadline has passed, or keeps an idle one alive.
    pub fn time_passed(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        if now_ms < self.deadline_ms() {
            return;
        }
        let is_idle = matches!(self.state, SessionState::Idle(_)) && self.pending.is_none();
        if is_idle && now_ms < self.idle_deadline_ms() {
            self.kept_ms = now_ms;
            return self.say(&Response::status(Status::Ok, None, "Still here"));
        }
        match self.pending.take() {
            Some(Task::StartTls) => self.end_silently(),
            Some(_) => self.bye(word("UNAVAILABLE"), "It takes too long here; try again later"),
            None => self.bye(None, "Nothing came for too long"),
        }
    }

    /// The server stops. The client hears BYE, whatever it is doing; only messages that are being stored are waited for.
    pub fn shut_down(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.is_shutting_down = true;
        match self.pending {
            _ if self.is_closed() => {}
            Some(Task::FinishAppend) => {}
            Some(Task::StartTls) => self.end_silently(),
            _ => self.bye(word("UNAVAILABLE"), SHUTDOWN_TEXT),
        }
    }

    /// The connection is gone. [`Self::next`] may still ask to abandon a message.
    pub fn disconnected(&mut self) {
        self.end_silently();
        self.output = Output::default();
    }

    /// Who has logged in, by their id.
    #[must_use]
    pub fn person(&self) -> Option<&str> {
        self.person.as_deref()
    }

    /// Bytes of input, output and state that are held at this moment, which the limits bound.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let frame: usize = self.frames.parts().iter().map(part_bytes).sum();
        let selected = self.selected.as_ref().map_or(0, |selected| selected.held_bytes());
        let saved = size_of_val(self.saved.ranges());
        let task = self.task.as_ref().map_or(0, Task::held_bytes);
        self.input.len() + self.output.len() + frame + selected + saved + task
    }

    pub(crate) fn limits(&self) -> &ServerLimits {
        &self.options.limits
    }

    /// Input that nobody has looked at.
    pub(crate) fn rest(&self) -> &[u8] {
        self.input.get(self.used..).unwrap_or_default()
    }

    pub(crate) fn drop_input(&mut self) {
        self.input = Vec::new();
        self.used = 0;
        let limit_bytes = if self.person.is_some() {
            self.limits().command_bytes
        } else {
            self.limits().login_command_bytes
        };
        self.frames = FrameReader::new(frame_limits(limit_bytes), Speaker::Client);
        self.scanner = LineScanner::new(LOGIN_LINE_BYTES, LineEnds::Strict);
    }

    /// More is allowed after log-in.
    pub(crate) fn raise_limits(&mut self) {
        self.frames.set_limits(frame_limits(self.limits().command_bytes));
    }

    fn shrink(&mut self) {
        if self.rest().is_empty() && self.input.capacity() > IDLE_BUFFER_BYTES {
            self.input = Vec::new();
            self.used = 0;
        }
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.options.hidden.and(self.hidden).shown().has(capability)
    }

    pub(crate) fn names(&self) -> NameEncoding {
        if self.is_utf8() { NameEncoding::Utf8 } else { NameEncoding::Utf7 }
    }

    /// Whether the client reads UTF-8 everywhere (RFC 9755, section 3; RFC 9051, section 5.1).
    pub(crate) fn is_utf8(&self) -> bool {
        self.enabled.utf8 || self.enabled.rev2
    }

    pub(crate) fn command_options(&self) -> CommandOptions {
        let limits = if self.person.is_some() {
            ValueLimits::default()
        } else {
            ValueLimits { depth: 4, values: 100 }
        };
        CommandOptions { names: self.names(), limits }
    }

    pub(crate) fn write_options(&self) -> WriteOptions {
        WriteOptions { utf8: self.is_utf8(), ..WriteOptions::SERVER }
    }

    pub(crate) fn say(&mut self, response: &Response) {
        let bytes = joined(&response.write(self.names(), self.write_options()));
        self.output.push(&bytes);
    }

    pub(crate) fn say_status(&mut self, status: Status, code: Option<ResponseCode>, text: &str) {
        self.say(&Response::status(status, code, text));
    }

    /// Says why, and closes.
    pub(crate) fn bye(&mut self, code: Option<ResponseCode>, text: &str) {
        self.output.end_line();
        self.say_status(Status::Bye, code, text);
        self.end_silently();
    }

    pub(crate) fn end_silently(&mut self) {
        self.append.abandon();
        if matches!(self.pending, Some(Task::BeginAppend)) {
            self.append.abandon_unanswered();
        }
        self.pending = None;
        self.asked = None;
        self.task = None;
        self.selected = None;
        self.state = SessionState::Closed;
        self.drop_input();
    }

    pub(crate) fn bindings(&self) -> ChannelBindings {
        self.encryption.as_ref().map(|encryption| encryption.bindings.clone()).unwrap_or_default()
    }

    /// Mechanisms that are offered now.
    pub(crate) fn mechanisms(&self) -> Vec<SaslMechanism> {
        if self.options.requires_tls && self.encryption.is_none() {
            return Vec::new();
        }
        let is_protected = self.encryption.is_some() || !self.options.requires_tls;
        let all = SaslMechanism::offered(is_protected, &self.bindings(), self.options.has_tokens);
        all.into_iter().filter(|mechanism| self.options.mechanisms.contains(mechanism)).collect()
    }

    /// Goes on with a task, or ends its command.
    pub(crate) fn follow_input(&mut self, flow: Flow) {
        self.follow(flow);
    }

    fn follow(&mut self, flow: Flow) {
        match flow {
            _ if self.is_closed() => {}
            Flow::Ask(request, task) => {
                self.pending = Some(task);
                self.asked = Some(request);
            }
            Flow::Go(task) => self.task = Some(task),
            Flow::Rest => {}
            Flow::End(ending) => self.end_command(ending),
        }
    }

    /// What is due before a command's answer (RFC 9051, section 7), then the answer.
    fn end_command(&mut self, ending: Ending) {
        if ending.tells_changes() && self.selected.is_some() {
            self.task = Some(Task::announce(ending));
            return;
        }
        self.finish_command(&ending);
    }

    pub(crate) fn finish_command(&mut self, ending: &Ending) {
        self.active_ms = self.now_ms;
        self.kept_ms = self.now_ms;
        let Some(tag) = self.tag.take() else { return };
        match ending.status {
            Status::Bad => self.count_error(),
            _ => self.counts.errors = 0,
        }
        let code = ending.code_for(self);
        self.say(&Response::done(tag, ending.status, code, &ending.text));
    }

    /// A client that does nothing right is sent away.
    pub(crate) fn count_error(&mut self) {
        self.counts.errors += 1;
        if self.person.is_none() {
            self.counts.early_errors += 1;
        }
    }

    pub(crate) fn close_after_errors(&mut self) {
        let too_many = self.counts.errors >= self.limits().errors
            || (self.person.is_none() && self.counts.early_errors >= self.limits().early_errors);
        if too_many && !self.is_closed() {
            self.bye(None, "Too many commands were refused");
        }
    }

    fn step(&mut self) -> StepEnd {
        self.close_after_errors();
        match &self.state {
            SessionState::Opening => {
                self.pending = Some(Task::Greet);
                self.asked = Some(Request::Greet(self.peer.clone()));
                StepEnd::Done
            }
            SessionState::Commands if self.may_tell_events() => self.tell_events(),
            SessionState::Idle(_) if self.woken => self.tell_events(),
            SessionState::Commands => self.step_frame(),
            SessionState::Login(_) | SessionState::Idle(_) => self.step_line(),
            SessionState::Closed => StepEnd::Starved,
        }
    }

    /// NOTIFY tells of changes between commands (RFC 5465, section 5).
    fn may_tell_events(&self) -> bool {
        self.woken && self.watch.is_some() && self.frames.is_idle() && self.rest().is_empty()
    }

    fn tell_events(&mut self) -> StepEnd {
        self.woken = false;
        let is_idle = matches!(self.state, SessionState::Idle(_));
        if let Some(task) = self.event_task(is_idle) {
            self.task = Some(task);
        }
        StepEnd::Done
    }
}

/// What a session is to be woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    /// Nothing.
    Nothing,
    /// Changes of this folder.
    Folder(u64),
    /// Changes of any folder that the person may see.
    All,
}

const SHUTDOWN_TEXT: &str = "The server is stopping; connect again in a few minutes";

pub(crate) fn word(code: &str) -> Option<ResponseCode> {
    Some(ResponseCode::Word(code.to_owned()))
}

fn frame_limits(bytes: usize) -> FrameLimits {
    FrameLimits { bytes, literals: 4000, bare_line_feed: false }
}

fn part_bytes(part: &scrinium_imap_wire::Part) -> usize {
    match part {
        scrinium_imap_wire::Part::Text(bytes) | scrinium_imap_wire::Part::Literal(bytes, _) => bytes.len(),
        scrinium_imap_wire::Part::Streamed(..) => 0,
    }
}
