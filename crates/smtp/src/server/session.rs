//! A session: its buffers, its state, and what happens next.

use std::fmt;
use std::sync::Arc;

use scrinium_credentials::sasl::{ChannelBindings, SaslMechanism, ServerExchange};
use scrinium_smtp_wire::{
    ChunkReader, ClientName, Command, EnhancedCode, Greeting, Line, LineEnds, LineError, LineScanner,
    LineSkipper, MailParameters, Reply, ReversePath,
};

use crate::server::incoming::Incoming;
use crate::server::options::{Encryption, Peer, ServerLimits, ServerOptions, Service};
use crate::server::request::{EnvelopeRecipient, Refusal, Request};

/// The shortest input that a log-in fits into.
const INPUT_MIN_BYTES: usize = 16 * 1024;

/// What an idle session may keep of its buffers.
const IDLE_BUFFER_BYTES: usize = 512;

pub(super) enum SessionState {
    /// Nobody was greeted.
    Opening,
    Commands,
    /// The rest of a line that was refused.
    SkipLine(LineSkipper),
    Login(Box<ServerExchange>),
    /// The client is to say something once more before it hears that it failed (RFC 7628, section 3.2.3).
    LoginFailing(Reply),
    /// SCRAM's last message was sent as a challenge; the client says that it has seen it.
    LoginEnding(String),
    /// Text with dots, until its end.
    Data {
        is_over: bool,
    },
    Chunk(Chunk),
    Closed,
}

pub(super) struct Chunk {
    pub(super) reader: ChunkReader,
    pub(super) is_last: bool,
    /// Said when the chunk is over, which belongs to no message.
    pub(super) refused: Option<Refused>,
}

/// How a chunk is answered that belongs to no message: with LMTP several times, where it would have been the last.
pub(super) struct Refused {
    pub(super) reply: Reply,
    pub(super) times: usize,
}

/// What a request that is not answered is about.
pub(super) enum Pending {
    Greet,
    StartTls,
    Account(Box<ServerExchange>),
    LogIn(Box<ServerExchange>),
    Sender(ReversePath, Box<MailParameters>, Option<u64>),
    Recipient(Box<EnvelopeRecipient>, usize),
    /// `Some` with the first chunk.
    Begin(Option<Chunk>),
    Head,
    Text,
    Finish,
    Abandon,
}

/// A message on its way in.
pub(super) struct Transaction {
    pub(super) sender: ReversePath,
    pub(super) parameters: MailParameters,
    pub(super) release_ms: Option<u64>,
    pub(super) recipients: Vec<EnvelopeRecipient>,
    pub(super) envelope_bytes: usize,
    pub(super) incoming: Option<Box<Incoming>>,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) errors: usize,
    pub(super) unknown_recipients: usize,
    pub(super) idle_commands: usize,
    pub(super) login_failures: usize,
    pub(super) messages: usize,
}

/// The server's side of one connection. See the [crate's page](crate) for the loop around it.
pub struct ServerSession {
    pub(super) options: Arc<ServerOptions>,
    pub(super) now_ms: u64,
    opened_ms: u64,
    /// When the last command was whole, or the last request answered.
    active_ms: u64,
    /// When bytes last came.
    heard_ms: u64,
    asked_ms: u64,
    input: Vec<u8>,
    /// Bytes of the input that are done with.
    used: usize,
    output: Vec<u8>,
    scanner: LineScanner,
    pub(super) state: SessionState,
    pub(super) pending: Option<Pending>,
    asked: Option<(Pending, Request)>,
    /// The surroundings have a message that does not come.
    abandons: bool,
    is_shutting_down: bool,
    pub(super) peer: Peer,
    pub(super) encryption: Option<Encryption>,
    pub(super) hello: Option<(Greeting, ClientName)>,
    pub(super) person: Option<String>,
    pub(super) transaction: Option<Transaction>,
    pub(super) counts: Counts,
}

/// It holds addresses and texts of people, which no log may show.
impl fmt::Debug for ServerSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (input, output) = (self.input.len(), self.output.len());
        write!(formatter, "ServerSession({:?}, {input} bytes in, {output} out)", self.options.service)
    }
}

/// How a step ends.
pub(super) enum StepEnd {
    /// Something was done.
    Done,
    /// More input is needed.
    Starved,
}

impl ServerSession {
    /// A connection was accepted. `encryption` is what it has from its beginning, as on port 465.
    #[must_use]
    pub fn new(options: Arc<ServerOptions>, peer: Peer, encryption: Option<Encryption>, now_ms: u64) -> Self {
        let limits = options.limits;
        Self {
            now_ms,
            opened_ms: now_ms,
            active_ms: now_ms,
            heard_ms: now_ms,
            asked_ms: now_ms,
            input: Vec::new(),
            used: 0,
            output: Vec::new(),
            scanner: LineScanner::new(limits.login_line_bytes.max(limits.command_bytes), LineEnds::Strict),
            state: SessionState::Opening,
            pending: None,
            asked: None,
            abandons: false,
            is_shutting_down: false,
            peer,
            encryption,
            hello: None,
            person: None,
            transaction: None,
            counts: Counts::default(),
            options,
        }
    }

    /// Takes bytes that have come; how many: fewer than there are where the buffer is full. The rest is offered once more later.
    pub fn receive(&mut self, bytes: &[u8], now_ms: u64) -> usize {
        self.now_ms = now_ms;
        if matches!(self.state, SessionState::Closed) {
            return bytes.len();
        }
        if matches!(self.pending, Some(Pending::StartTls)) && !bytes.is_empty() {
            // Commands in the open behind STARTTLS are somebody else's (RFC 3207, section 4.2).
            self.end_silently();
            return bytes.len();
        }
        let limit = self.limits().input_bytes.max(INPUT_MIN_BYTES);
        self.input.drain(..self.used.min(self.input.len()));
        self.used = 0;
        let taken = bytes.len().min(limit.saturating_sub(self.input.len()));
        self.input.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        if taken > 0 {
            self.heard_ms = now_ms;
        }
        taken
    }

    /// Whether more input would be taken and looked at.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        let limit = self.limits().input_bytes.max(INPUT_MIN_BYTES);
        !self.is_closed() && self.rest().len() < limit && !matches!(self.pending, Some(Pending::StartTls))
    }

    /// Does what can be done; what the surroundings are to answer next. `None` while an answer is due, where
    /// input is needed, where output must go first, and at the end.
    pub fn next(&mut self, now_ms: u64) -> Option<Request> {
        self.now_ms = now_ms;
        loop {
            if self.pending.is_some() {
                return None;
            }
            if std::mem::take(&mut self.abandons) {
                return Some(self.hand_out(Pending::Abandon, Request::Abandon));
            }
            if let Some((pending, request)) = self.asked.take() {
                return Some(self.hand_out(pending, request));
            }
            if self.is_closed() || self.output.len() >= self.limits().output_bytes {
                return None;
            }
            if let StepEnd::Starved = self.step() {
                self.shrink();
                return None;
            }
        }
    }

    /// The answer to the request that was handed out last. One that comes too late, after the session has ended or a limit has
    /// passed, changes nothing.
    pub fn answer(&mut self, answer: crate::Answer, now_ms: u64) {
        self.now_ms = now_ms;
        let Some(pending) = self.pending.take() else { return };
        self.active_ms = now_ms;
        self.heard_ms = now_ms;
        self.answered(pending, answer);
        if self.is_shutting_down && !self.is_closed() {
            self.close(&shutdown_reply());
        }
    }

    /// What is to be sent. In the clear up to [`Request::StartTls`], encrypted behind it.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Whether what there is to be sent should go now: the client waits for it (RFC 2920, section 3.2), since it has sent nothing
    /// more, or the request that was handed out takes a while. Replies to commands that came together go together.
    #[must_use]
    pub fn wants_flush(&self) -> bool {
        let is_quick = matches!(self.pending, Some(Pending::Recipient(..) | Pending::Sender(..)));
        !self.output.is_empty()
            && (!is_quick || self.rest().is_empty() || self.output.len() >= self.limits().output_bytes)
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
        let deadline = match (&self.pending, &self.state) {
            _ if self.is_closed() => return u64::MAX,
            (Some(Pending::StartTls), _) => self.asked_ms.saturating_add(times.tls_ms),
            (Some(_), _) => return self.asked_ms.saturating_add(times.answer_ms),
            (None, SessionState::Data { .. } | SessionState::Chunk(_)) => self.text_deadline_ms(),
            (None, _) => self.active_ms.saturating_add(times.command_ms),
        };
        if self.options.service == Service::Submission && self.person.is_none() {
            return deadline.min(self.opened_ms.saturating_add(times.login_ms));
        }
        deadline
    }

    fn text_deadline_ms(&self) -> u64 {
        let times = &self.options.times;
        let pause = self.heard_ms.saturating_add(times.text_pause_ms);
        let Some(incoming) = self.incoming() else { return pause };
        let length_ms = incoming.wire_bytes().saturating_mul(1000) / times.text_rate_bytes.max(1);
        pause.min(incoming.began_ms.saturating_add(times.text_ms).saturating_add(length_ms))
    }

    /// Ends the session if its deadline has passed.
    pub fn time_passed(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        if now_ms < self.deadline_ms() {
            return;
        }
        match self.pending.take() {
            Some(Pending::StartTls) => self.end_silently(),
            Some(_) => {
                let text = "It takes too long here; the message was not taken. Try again later";
                self.close(&reply(421, (4, 3, 0), text));
            }
            None => {
                let text = format!("{} closes the connection: nothing came for too long", self.options.host);
                self.close(&reply(421, (4, 4, 2), &text));
            }
        }
    }

    /// The server stops. The client hears 421, whatever it is doing; only a message that is being stored is waited for.
    pub fn shut_down(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.is_shutting_down = true;
        match self.pending {
            _ if self.is_closed() => {}
            Some(Pending::Finish) => {}
            Some(Pending::StartTls) => self.end_silently(),
            _ => {
                self.pending = None;
                self.close(&shutdown_reply());
            }
        }
    }

    /// The connection is gone. [`Self::next`] may still ask to abandon a message.
    pub fn disconnected(&mut self) {
        self.end_silently();
        self.output = Vec::new();
    }

    /// Who has logged in, by their id.
    #[must_use]
    pub fn person(&self) -> Option<&str> {
        self.person.as_deref()
    }

    /// Bytes of input, output and text that are held at this moment, which the limits bound.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let envelope = self.transaction.as_ref().map_or(0, |transaction| transaction.envelope_bytes);
        self.input.len() + self.output.len() + envelope + self.incoming().map_or(0, Incoming::held_bytes)
    }

    pub(super) fn limits(&self) -> &ServerLimits {
        &self.options.limits
    }

    pub(super) fn incoming(&self) -> Option<&Incoming> {
        self.transaction.as_ref()?.incoming.as_deref()
    }

    pub(super) fn incoming_mut(&mut self) -> Option<&mut Incoming> {
        self.transaction.as_mut()?.incoming.as_deref_mut()
    }

    /// Input that nobody has looked at.
    pub(super) fn rest(&self) -> &[u8] {
        self.input.get(self.used..).unwrap_or_default()
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// The input, for a look at it that changes the session; it comes [back](Self::return_input).
    pub(super) fn lend_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    pub(super) fn return_input(&mut self, input: Vec<u8>) {
        self.input = input;
    }

    pub(super) fn use_input(&mut self, bytes: usize) {
        self.used = self.used.saturating_add(bytes).min(self.input.len());
    }

    pub(super) fn drop_input(&mut self) {
        self.input = Vec::new();
        self.used = 0;
        let limits = self.limits();
        let limit_bytes = limits.login_line_bytes.max(limits.command_bytes);
        self.scanner = LineScanner::new(limit_bytes, LineEnds::Strict);
    }

    fn shrink(&mut self) {
        if self.rest().is_empty() && self.input.capacity() > IDLE_BUFFER_BYTES {
            self.input = Vec::new();
            self.used = 0;
        }
    }

    fn hand_out(&mut self, pending: Pending, request: Request) -> Request {
        self.pending = Some(pending);
        self.asked_ms = self.now_ms;
        request
    }

    pub(super) fn ask(&mut self, pending: Pending, request: Request) {
        self.asked = Some((pending, request));
    }

    pub(super) fn say(&mut self, reply: &Reply) {
        reply.write(&mut self.output);
    }

    pub(super) fn say_line(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.extend_from_slice(b"\r\n");
    }

    pub(super) fn refuse(&mut self, refusal: &Refusal) {
        self.say(&refusal.reply());
    }

    /// A command was refused because of what the client has done.
    pub(super) fn error(&mut self, reply: &Reply) {
        self.say(reply);
        self.counts.errors = self.counts.errors.saturating_add(1);
        if self.counts.errors >= self.limits().errors {
            let text = "Too many commands were refused; the connection is closed. Look at the replies before you try again";
            self.close(&self::reply(421, (4, 7, 0), text));
        }
    }

    pub(super) fn close(&mut self, reply: &Reply) {
        self.say(reply);
        self.end_silently();
    }

    pub(super) fn end_silently(&mut self) {
        self.reset();
        self.pending = None;
        self.asked = None;
        self.state = SessionState::Closed;
        self.drop_input();
    }

    /// Forgets the message (RFC 5321, section 4.1.1.5): sender, recipients, and what came of its text.
    pub(super) fn reset(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            // A text that was refused here, and one whose piece was refused there, ends there as well.
            self.abandons = self.abandons || transaction.incoming.is_some();
        }
    }

    /// Forgets a message whose end the surroundings know.
    pub(super) fn forget(&mut self) {
        self.transaction = None;
    }

    pub(super) fn active_ms_now(&mut self) {
        self.active_ms = self.now_ms;
    }

    pub(super) fn bindings(&self) -> ChannelBindings {
        self.encryption.as_ref().map(|encryption| encryption.bindings.clone()).unwrap_or_default()
    }

    /// Whether nobody else can hear what is said now.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.encryption.is_some() || self.peer.is_private
    }

    /// Mechanisms that are offered now.
    pub(super) fn mechanisms(&self) -> Vec<SaslMechanism> {
        if self.options.requires_tls && !self.is_protected() {
            return Vec::new();
        }
        let all = SaslMechanism::offered(self.is_protected(), &self.bindings(), self.options.has_tokens);
        all.into_iter().filter(|mechanism| self.options.mechanisms.contains(mechanism)).collect()
    }

    fn step(&mut self) -> StepEnd {
        match &mut self.state {
            SessionState::Opening => {
                let peer = self.peer.clone();
                self.ask(Pending::Greet, Request::Greet(peer));
                StepEnd::Done
            }
            SessionState::SkipLine(skipper) => {
                let rest = self.input.get(self.used..).unwrap_or_default();
                let (skipped, is_over) =
                    skipper.skip(rest).map_or((rest.len(), false), |bytes| (bytes, true));
                self.use_input(skipped);
                if is_over {
                    self.state = SessionState::Commands;
                    return StepEnd::Done;
                }
                StepEnd::Starved
            }
            SessionState::Commands
            | SessionState::Login(_)
            | SessionState::LoginFailing(_)
            | SessionState::LoginEnding(_) => self.step_line(),
            SessionState::Data { .. } => self.step_data(),
            SessionState::Chunk(_) => self.step_chunk(),
            SessionState::Closed => StepEnd::Starved,
        }
    }

    fn step_line(&mut self) -> StepEnd {
        let rest = self.input.get(self.used..).unwrap_or_default();
        match self.scanner.find(rest) {
            Ok(None) => StepEnd::Starved,
            Ok(Some(Line { text, consumed })) => {
                let line = text.to_vec();
                self.use_input(consumed);
                self.active_ms = self.now_ms;
                self.take_line(&line);
                StepEnd::Done
            }
            Err(error) => {
                self.refuse_line(error);
                StepEnd::Done
            }
        }
    }

    fn take_line(&mut self, line: &[u8]) {
        match self.state {
            SessionState::Login(_) | SessionState::LoginFailing(_) | SessionState::LoginEnding(_) => {
                self.login_line(line);
            }
            _ => {
                let is_login = line.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"AUTH "));
                if line.len() > self.limits().command_bytes && !is_login {
                    let limit_bytes = self.limits().command_bytes;
                    return self.error(&line_reply(LineError::TooLong { limit_bytes }));
                }
                match Command::parse(line) {
                    Ok(command) => self.command(command, line.len()),
                    Err(error) => self.refuse_command(line, error),
                }
            }
        }
    }

    /// What came is no line: its rest is read over, as far as its end has not come.
    fn refuse_line(&mut self, error: LineError) {
        self.state = SessionState::SkipLine(LineSkipper::default());
        self.error(&line_reply(error));
    }
}

fn line_reply(error: LineError) -> Reply {
    reply(500, (5, 5, 2), &error.to_string())
}

fn shutdown_reply() -> Reply {
    // RFC 5321, section 3.8.
    reply(421, (4, 3, 2), "The server is stopping; try again in a few minutes")
}

pub(super) fn reply(code: u16, enhanced: (u8, u16, u16), text: &str) -> Reply {
    Reply::with_enhanced(code, EnhancedCode::new(enhanced.0, enhanced.1, enhanced.2), text)
}
