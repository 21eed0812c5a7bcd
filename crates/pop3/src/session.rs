//! A session: its buffers, its state, and what happens next.

use std::fmt;
use std::sync::Arc;

use scrinium_credentials::sasl::{ChannelBindings, SaslMechanism};
use scrinium_mailbox::{FolderView, NumberSet};
use scrinium_pop3_wire::{COMMAND_MAX_BYTES, Command, Line, LineEnds, LineScanner, Response, ResponseCode};

use crate::login::Login;
use crate::messages::Work;
use crate::options::{Encryption, Peer, ServerLimits, ServerOptions};
use crate::request::{Answer, Refusal, Request};

/// What an idle session may keep of its buffers.
const IDLE_BUFFER_BYTES: usize = 512;

/// A line of SASL: tokens are what is long.
const LOGIN_LINE_BYTES: usize = 24 * 1024;

pub(crate) enum SessionState {
    Opening,
    Commands,
    Login(Box<Login>),
    Closed,
}

/// What a request that is not answered is about.
pub(crate) enum Pending {
    Greet,
    StartTls,
    Account(Box<Login>),
    LogIn(Box<Login>),
    Open,
    Work(Box<Work>),
    Release,
}

/// A maildrop that is open.
pub(crate) struct OpenMaildrop {
    /// It is with the surroundings while they answer.
    pub(crate) view: Option<FolderView>,
    /// Messages when it was opened; what came later is not in it.
    pub(crate) count: u32,
    pub(crate) bytes: u64,
    pub(crate) marked: NumberSet,
    pub(crate) marked_bytes: u64,
}

/// The server's side of one connection.
pub struct ServerSession {
    pub(crate) options: Arc<ServerOptions>,
    now_ms: u64,
    opened_ms: u64,
    active_ms: u64,
    asked_ms: u64,
    input: Vec<u8>,
    used: usize,
    pub(crate) output: Vec<u8>,
    scanner: LineScanner,
    pub(crate) state: SessionState,
    pending: Option<Pending>,
    asked: Option<Request>,
    /// A command at one of its steps.
    pub(crate) work: Option<Box<Work>>,
    /// The maildrop is to be released.
    releases: bool,
    peer: Peer,
    pub(crate) encryption: Option<Encryption>,
    pub(crate) person: Option<String>,
    /// The name of USER.
    pub(crate) user: Option<String>,
    pub(crate) utf8: bool,
    pub(crate) maildrop: Option<OpenMaildrop>,
    errors: usize,
    pub(crate) login_failures: usize,
}

/// It holds texts of people, which no log may show.
impl fmt::Debug for ServerSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ServerSession({} bytes in, {} out)", self.input.len(), self.output.len())
    }
}

impl ServerSession {
    /// A connection was accepted. `encryption` is what it has from its beginning, as on port 995.
    #[must_use]
    pub fn new(options: Arc<ServerOptions>, peer: Peer, encryption: Option<Encryption>, now_ms: u64) -> Self {
        Self {
            now_ms,
            opened_ms: now_ms,
            active_ms: now_ms,
            asked_ms: now_ms,
            input: Vec::new(),
            used: 0,
            output: Vec::new(),
            scanner: LineScanner::new(LOGIN_LINE_BYTES, LineEnds::Strict),
            state: SessionState::Opening,
            pending: None,
            asked: None,
            work: None,
            releases: false,
            peer,
            encryption,
            person: None,
            user: None,
            utf8: false,
            maildrop: None,
            errors: 0,
            login_failures: 0,
            options,
        }
    }

    /// Takes bytes that have come; how many: fewer than there are where the buffer is full.
    pub fn receive(&mut self, bytes: &[u8], now_ms: u64) -> usize {
        self.now_ms = now_ms;
        if self.is_closed() {
            return bytes.len();
        }
        if matches!(self.pending, Some(Pending::StartTls)) && !bytes.is_empty() {
            // Commands in the open behind STLS are somebody else's (RFC 2595, section 4).
            self.end_silently();
            return bytes.len();
        }
        self.input.drain(..self.used.min(self.input.len()));
        self.used = 0;
        let room = self.input_bytes().saturating_sub(self.input.len());
        let taken = bytes.len().min(room);
        self.input.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        taken
    }

    fn input_bytes(&self) -> usize {
        self.limits().input_bytes.max(LOGIN_LINE_BYTES + 2)
    }

    /// Whether more input would be taken and looked at.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.is_closed()
            && self.rest().len() < self.input_bytes()
            && !matches!(self.pending, Some(Pending::StartTls))
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
            if std::mem::take(&mut self.releases) {
                self.pending = Some(Pending::Release);
                self.asked_ms = now_ms;
                return Some(Request::Release);
            }
            if self.is_closed() || self.output.len() >= self.limits().output_bytes {
                return None;
            }
            if let Some(work) = self.work.take() {
                self.advance(work);
            } else if !self.step() {
                return None;
            }
        }
    }

    /// The answer to the request that was handed out last.
    pub fn answer(&mut self, answer: Answer, now_ms: u64) {
        self.now_ms = now_ms;
        let Some(pending) = self.pending.take() else { return };
        self.active_ms = now_ms;
        match pending {
            Pending::Greet => self.greeted(answer),
            Pending::StartTls => self.encrypted(answer),
            Pending::Account(login) => self.account_given(login, answer),
            Pending::LogIn(login) => self.login_decided(login, answer),
            Pending::Open => self.opened(answer),
            Pending::Work(work) => self.answered(work, answer),
            Pending::Release => {}
        }
    }

    /// What is to be sent.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Whether the connection is to be closed once the output is sent and [`Self::next`] gives nothing more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, SessionState::Closed)
    }

    /// When [`Self::time_passed`] has something to do, if nothing happens before.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        let times = &self.options.times;
        if self.is_closed() {
            return u64::MAX;
        }
        let deadline = match &self.pending {
            Some(Pending::StartTls) => self.asked_ms.saturating_add(times.tls_ms),
            Some(_) => return self.asked_ms.saturating_add(times.answer_ms),
            None => self.active_ms.saturating_add(times.idle_ms),
        };
        match self.person {
            None => deadline.min(self.opened_ms.saturating_add(times.login_ms)),
            Some(_) => deadline,
        }
    }

    /// Ends the session if its deadline has passed. What was marked stays (RFC 1939, section 3).
    pub fn time_passed(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        if now_ms >= self.deadline_ms() {
            self.err(None, "Nothing came for too long");
            self.end_silently();
        }
    }

    /// The server stops. Only a deletion that runs is waited for.
    pub fn shut_down(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let deletes = matches!(&self.pending, Some(Pending::Work(work)) if work.deletes());
        if !deletes && !self.is_closed() {
            self.err(
                Some(ResponseCode::SystemTemporary),
                "The server is stopping; connect again in a few minutes",
            );
            self.end_silently();
        }
    }

    /// The connection is gone. [`Self::next`] may still ask to release a maildrop.
    pub fn disconnected(&mut self) {
        self.end_silently();
        self.output = Vec::new();
    }

    /// Who has logged in, by their id.
    #[must_use]
    pub fn person(&self) -> Option<&str> {
        self.person.as_deref()
    }

    /// Bytes that are held at this moment, which the limits bound.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let view = self.maildrop.as_ref().map_or(0, |maildrop| {
            let view = maildrop.view.as_ref().map_or(0, FolderView::held_bytes);
            view + size_of_val(maildrop.marked.ranges())
        });
        self.input.len() + self.output.len() + view
    }

    pub(crate) fn limits(&self) -> &ServerLimits {
        &self.options.limits
    }

    pub(crate) fn rest(&self) -> &[u8] {
        self.input.get(self.used..).unwrap_or_default()
    }

    pub(crate) fn drop_input(&mut self) {
        self.input = Vec::new();
        self.used = 0;
        self.scanner = LineScanner::new(LOGIN_LINE_BYTES, LineEnds::Strict);
    }

    pub(crate) fn ask(&mut self, pending: Pending, request: Request) {
        self.pending = Some(pending);
        self.asked = Some(request);
    }

    pub(crate) fn ok(&mut self, text: &str) {
        Response::ok(text).write(&mut self.output);
    }

    pub(crate) fn err(&mut self, code: Option<ResponseCode>, text: &str) {
        Response::err(code, text).write(&mut self.output);
    }

    pub(crate) fn refuse(&mut self, refusal: &Refusal) {
        self.err(refusal.code.clone(), &refusal.text);
    }

    /// A command was refused because of what the client has done.
    pub(crate) fn error(&mut self, code: Option<ResponseCode>, text: &str) {
        self.err(code, text);
        self.errors += 1;
        if self.errors >= self.limits().errors {
            self.end_silently();
        }
    }

    pub(crate) fn end_silently(&mut self) {
        let had_maildrop = self.maildrop.take().is_some();
        // A maildrop that is being opened is released as well: the answer comes to nobody.
        let opens = matches!(self.pending, Some(Pending::Open));
        self.releases = self.releases || had_maildrop || opens;
        self.pending = None;
        self.asked = None;
        self.work = None;
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

    /// Whether something was done.
    fn step(&mut self) -> bool {
        match self.state {
            SessionState::Opening => {
                self.ask(Pending::Greet, Request::Greet(self.peer.clone()));
                true
            }
            SessionState::Commands | SessionState::Login(_) => self.step_line(),
            SessionState::Closed => false,
        }
    }

    fn step_line(&mut self) -> bool {
        let rest = self.input.get(self.used..).unwrap_or_default();
        let line = match self.scanner.find(rest) {
            Ok(None) => {
                if rest.is_empty() && self.input.capacity() > IDLE_BUFFER_BYTES {
                    self.input = Vec::new();
                    self.used = 0;
                }
                return false;
            }
            Ok(Some(Line { text, consumed })) => {
                self.used = self.used.saturating_add(consumed).min(self.input.len());
                text.to_vec()
            }
            Err(error) => {
                self.err(None, &error.to_string());
                self.end_silently();
                return true;
            }
        };
        self.active_ms = self.now_ms;
        match std::mem::replace(&mut self.state, SessionState::Commands) {
            SessionState::Login(login) => self.login_line(*login, &line),
            _ if line.len() > COMMAND_MAX_BYTES => self.error(None, "The command is too long"),
            _ => match Command::parse(&line) {
                Ok(command) => self.command(command),
                Err(error) => self.error(None, &error.to_string()),
            },
        }
        true
    }
}
