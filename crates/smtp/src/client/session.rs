//! A session: its buffers, what is asked for next, and how it ends.

use std::collections::VecDeque;
use std::fmt;

use scrinium_credentials::sasl::{ChannelBindings, ClientExchange};
use scrinium_smtp_wire::{
    Capabilities, Capability, DotWriter, Greeting, LineEnds, LineScanner, Reply, ReplyLimits, ReplyReader,
};

use crate::chunk_text::ChunkText;
use crate::client::message::{Outgoing, Sending, Stage, TextWriter};
use crate::client::options::{ClientOptions, Protocol};
use crate::client::outcome::{Outcome, Reason, Said, SessionStep};

/// What the port does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientRequest {
    /// Shake hands, once the output is sent; then [`ClientSession::tls_started`] or [`ClientSession::tls_failed`].
    StartTls,
    /// The server takes a message: [`ClientSession::send`], or [`ClientSession::quit`].
    Ready,
    /// [`ClientSession::give_text`] or [`ClientSession::end_text`]
    Text,
    /// What became of the message, for each recipient in their order. No more of its text is wanted. [`Self::Ready`] may
    /// follow for the next one.
    Done(Vec<Outcome>),
    /// The connection cannot be used, or not any longer. No message is under way.
    Failed(Said),
}

/// A command that was sent and has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Greeting,
    Hello(Greeting),
    StartTls,
    LogIn,
    /// The log-in was given up.
    Cancel,
    Mail,
    Recipient(usize),
    Data,
    Chunk {
        is_last: bool,
    },
    End,
    /// A text for nobody.
    EmptyEnd,
    Reset,
    Quit,
}

impl Sent {
    pub(super) const fn step(self) -> SessionStep {
        match self {
            Self::Greeting => SessionStep::Greeting,
            Self::Hello(_) => SessionStep::Hello,
            Self::StartTls => SessionStep::StartTls,
            Self::LogIn | Self::Cancel => SessionStep::LogIn,
            Self::Mail => SessionStep::Sender,
            Self::Recipient(_) => SessionStep::Recipient,
            Self::Data | Self::Chunk { is_last: false } | Self::EmptyEnd => SessionStep::Text,
            Self::Chunk { is_last: true } | Self::End => SessionStep::End,
            Self::Reset | Self::Quit => SessionStep::Other,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Greeting, TLS, log-in.
    Opening,
    /// The port shakes hands.
    Tls,
    /// A message can be sent, once no reply is due.
    Idle,
    Sending,
    Quitting,
    Closed,
}

/// The client's side of one connection.
pub struct ClientSession {
    pub(super) options: ClientOptions,
    pub(super) phase: Phase,
    now_ms: u64,
    active_ms: u64,
    input: Vec<u8>,
    scanner: LineScanner,
    replies: ReplyReader,
    pub(super) output: Vec<u8>,
    pub(super) in_flight: VecDeque<Sent>,
    requests: VecDeque<ClientRequest>,
    /// A request of this kind was handed out, and nobody has done it.
    has_asked: bool,
    pub(super) is_encrypted: bool,
    pub(super) bindings: ChannelBindings,
    pub(super) capabilities: Capabilities,
    pub(super) exchange: Option<ClientExchange>,
    pub(super) sending: Option<Box<Sending>>,
}

/// It holds addresses and secrets, which no log may show.
impl fmt::Debug for ClientSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClientSession({:?}, {} replies due)", self.phase, self.in_flight.len())
    }
}

impl ClientSession {
    /// A connection was made. `encryption` is what it is bound to, if it is encrypted from its beginning.
    #[must_use]
    pub fn new(options: ClientOptions, encryption: Option<ChannelBindings>, now_ms: u64) -> Self {
        let limits = options.limits;
        let replies = ReplyLimits { lines: limits.reply_lines, text_bytes: limits.reply_bytes };
        Self {
            phase: Phase::Opening,
            now_ms,
            active_ms: now_ms,
            input: Vec::new(),
            scanner: LineScanner::new(limits.line_bytes, LineEnds::Lenient),
            replies: ReplyReader::new(replies),
            output: Vec::new(),
            in_flight: VecDeque::from([Sent::Greeting]),
            requests: VecDeque::new(),
            has_asked: false,
            is_encrypted: encryption.is_some(),
            bindings: encryption.unwrap_or_default(),
            capabilities: Capabilities::default(),
            exchange: None,
            sending: None,
            options,
        }
    }

    /// Takes what came; all of it.
    pub fn receive(&mut self, bytes: &[u8], now_ms: u64) {
        self.now_ms = now_ms;
        self.active_ms = now_ms;
        if self.phase == Phase::Tls && !bytes.is_empty() {
            // What stands in the open behind the reply to STARTTLS is somebody else's.
            return self.fail(Said::own(
                Reason::Protocol,
                (4, 7, 0),
                "The server sent something before TLS began",
            ));
        }
        let mut rest = bytes;
        // A line at a time, so that no more than a line is ever held.
        while !rest.is_empty() && self.phase != Phase::Closed {
            let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
            let room =
                self.options.limits.line_bytes.saturating_add(2).saturating_sub(self.input.len()).max(1);
            let (piece, after) = rest.split_at_checked(end.min(room)).unwrap_or((rest, &[]));
            self.input.extend_from_slice(piece);
            rest = after;
            self.take_lines();
            if self.phase == Phase::Tls && !(rest.is_empty() && self.input.is_empty()) {
                let text = "The server sent something before TLS began";
                return self.fail(Said::own(Reason::Protocol, (4, 7, 0), text));
            }
        }
    }

    fn take_lines(&mut self) {
        let found = match self.scanner.find(&self.input) {
            Ok(None) => return,
            Ok(Some(line)) => self.replies.line(line.text).map(|reply| (reply, line.consumed)),
            Err(_) => return self.not_smtp(),
        };
        match found {
            Ok((reply, consumed)) => {
                self.input.drain(..consumed.min(self.input.len()));
                if let Some(reply) = reply {
                    self.reply(&reply);
                }
            }
            Err(_) => self.not_smtp(),
        }
    }

    fn not_smtp(&mut self) {
        self.lost(&Said::own(Reason::Protocol, (4, 5, 0), "The server does not speak SMTP"));
    }

    fn reply(&mut self, reply: &Reply) {
        let Some(sent) = self.in_flight.pop_front() else { return self.unasked(reply) };
        if reply.code() == 421 && sent != Sent::Quit {
            // RFC 5321, section 3.8: the server closes the connection, whatever it was asked.
            self.settle_reply(sent, reply);
            return self.lost(&Said::by(sent.step(), reply));
        }
        match sent {
            Sent::Quit => self.end(),
            Sent::Greeting | Sent::Hello(_) | Sent::StartTls | Sent::LogIn | Sent::Cancel => {
                self.opening_reply(sent, reply);
            }
            Sent::Reset if !reply.is_success() => self.fail(Said::by(sent.step(), reply)),
            Sent::Reset => {}
            _ => self.message_reply(sent, reply),
        }
    }

    /// A reply that nobody asked for: the server gives up in the middle of a text, or while nothing happens.
    fn unasked(&mut self, reply: &Reply) {
        let said = Said::by(SessionStep::Other, reply);
        if reply.code() >= 400 {
            if let Some(sending) = &mut self.sending {
                sending.settle_all(&said.clone().outcome());
            }
            return self.lost(&said);
        }
        self.lost(&Said::own(Reason::Protocol, (4, 5, 0), "The server sent a reply that nobody asked for"));
    }

    /// What the port does next; `None` where the server is to say something, or the output must go first.
    pub fn next(&mut self, now_ms: u64) -> Option<ClientRequest> {
        self.now_ms = now_ms;
        if self.phase == Phase::Sending {
            self.pump();
        }
        if let Some(request) = self.requests.pop_front() {
            return Some(request);
        }
        let wanted = match self.phase {
            Phase::Idle if self.in_flight.is_empty() => ClientRequest::Ready,
            Phase::Tls => ClientRequest::StartTls,
            Phase::Sending if self.wants_text() => ClientRequest::Text,
            _ => return None,
        };
        if std::mem::replace(&mut self.has_asked, true) { None } else { Some(wanted) }
    }

    /// Hands in a message, after [`ClientRequest::Ready`]. Whether it was: at another time it is not sent.
    pub fn send(&mut self, message: Outgoing, now_ms: u64) -> bool {
        self.now_ms = now_ms;
        if self.phase != Phase::Idle || !self.in_flight.is_empty() || message.recipients.is_empty() {
            return false;
        }
        self.active_ms = now_ms;
        self.has_asked = false;
        let by_chunks = self.options.prefers_chunks && self.capabilities.has(&Capability::Chunking);
        let bare_ends = self.options.bare_ends;
        let writer = if by_chunks {
            TextWriter::Chunks(ChunkText::new(bare_ends))
        } else {
            TextWriter::Dots(DotWriter::new(bare_ends))
        };
        let outcomes = vec![None; message.recipients.len()];
        self.sending = Some(Box::new(Sending {
            message,
            stage: Stage::Envelope,
            outcomes,
            mail_is_sent: false,
            next_recipient: 0,
            data_is_sent: false,
            taken: Vec::new(),
            answered: 0,
            writer,
            end_is_out: false,
            needs_reset: false,
            last_refusal: None,
        }));
        self.phase = Phase::Sending;
        self.check_message();
        true
    }

    /// Says goodbye. The connection can be closed once [`Self::is_closed`], or when its deadline has passed.
    pub fn quit(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        if self.phase == Phase::Idle {
            self.active_ms = now_ms;
            self.phase = Phase::Quitting;
            self.write(&scrinium_smtp_wire::Command::Quit, Sent::Quit);
        } else if self.phase != Phase::Quitting {
            self.lost(&Said::own(Reason::GivenUp, (4, 4, 0), "The connection was given up"));
        }
    }

    /// The connection is encrypted.
    pub fn tls_started(&mut self, bindings: ChannelBindings, now_ms: u64) {
        self.now_ms = now_ms;
        if self.phase != Phase::Tls {
            return;
        }
        self.active_ms = now_ms;
        self.has_asked = false;
        self.is_encrypted = true;
        self.bindings = bindings;
        // RFC 3207, section 4.2: what the server said in the open may be somebody else's.
        self.capabilities = Capabilities::default();
        self.phase = Phase::Opening;
        self.greet();
    }

    /// The handshake failed, for this reason. The connection cannot be used.
    pub fn tls_failed(&mut self, text: &str) {
        self.fail(Said::own(Reason::TlsFailed, (4, 7, 5), text));
    }

    /// The connection is gone.
    pub fn disconnected(&mut self) {
        self.lost(&Said::own(Reason::Lost, (4, 4, 2), "The connection was lost"));
    }

    /// Ends the session if its deadline has passed.
    pub fn time_passed(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        if now_ms >= self.deadline_ms() {
            self.lost(&Said::own(Reason::TimedOut, (4, 4, 2), "The server took too long to answer"));
        }
    }

    /// When [`Self::time_passed`] has something to do, if nothing happens before.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        let times = &self.options.times;
        let wait_ms = match (self.phase, self.in_flight.front()) {
            (Phase::Closed, _) => return u64::MAX,
            // How long an idle connection is kept is the port's to say.
            (Phase::Idle, None) => return u64::MAX,
            (_, Some(Sent::End | Sent::EmptyEnd | Sent::Chunk { is_last: true })) => times.end_ms,
            (_, Some(Sent::Data)) => times.data_ms,
            (Phase::Sending, Some(Sent::Chunk { .. }) | None) => times.text_ms,
            _ => times.command_ms,
        };
        self.active_ms.saturating_add(wait_ms)
    }

    /// What is to be sent.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        self.active_ms = self.now_ms;
        if let Some(sending) = &mut self.sending {
            sending.end_is_out = sending.end_is_out || sending.stage == Stage::End;
        }
        std::mem::take(&mut self.output)
    }

    /// Whether there is something to send.
    #[must_use]
    pub fn wants_flush(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether the connection is to be closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Whether it waits for a message, and no reply is due.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Idle && self.in_flight.is_empty()
    }

    /// What the server offers.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Bytes of input and output that are held at this moment.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.input.len() + self.output.len()
    }

    pub(super) fn active_now(&mut self) {
        self.active_ms = self.now_ms;
    }

    pub(super) fn asked(&mut self) {
        self.has_asked = false;
    }

    pub(super) fn write(&mut self, command: &scrinium_smtp_wire::Command, sent: Sent) {
        command.write(&mut self.output);
        self.in_flight.push_back(sent);
    }

    pub(super) fn greet(&mut self) {
        let greeting = match self.options.protocol {
            Protocol::Smtp => Greeting::Ehlo,
            Protocol::Lmtp => Greeting::Lhlo,
        };
        self.hello(greeting);
    }

    /// The connection cannot be used any more: what is under way gets its outcome.
    pub(super) fn lost(&mut self, said: &Said) {
        if self.phase == Phase::Closed {
            return;
        }
        let was_quitting = self.phase == Phase::Quitting;
        self.end();
        let Some(mut sending) = self.sending.take() else {
            if !was_quitting {
                self.requests.push_back(ClientRequest::Failed(said.clone()));
            }
            return;
        };
        // A server that refuses and hangs up has said why.
        let said = match (&sending.last_refusal, said.reason) {
            (Some(refusal), Reason::Lost) if !sending.end_is_out => Said {
                enhanced: said.enhanced,
                reason: said.reason,
                step: None,
                code: None,
                text: format!("{}, after it said: {}", said.text, refusal.text),
            },
            _ => said.clone(),
        };
        let is_unknown = sending.end_is_out && said.reason != Reason::Replied;
        let outcome = if is_unknown { Outcome::Unknown(said) } else { deferred(said) };
        sending.settle_all(&outcome);
        self.done(*sending);
    }

    pub(super) fn fail(&mut self, said: Said) {
        if self.phase == Phase::Closed {
            return;
        }
        if self.sending.is_some() {
            return self.lost(&said);
        }
        self.end();
        self.requests.push_back(ClientRequest::Failed(said));
    }

    pub(super) fn done(&mut self, sending: Sending) {
        let unknown = || {
            Outcome::Deferred(Said::own(
                Reason::Protocol,
                (4, 5, 0),
                "The server did not say what became of it",
            ))
        };
        let outcomes = sending.outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unknown)).collect();
        self.has_asked = false;
        self.requests.push_back(ClientRequest::Done(outcomes));
    }

    fn end(&mut self) {
        self.phase = Phase::Closed;
        self.in_flight = VecDeque::new();
        self.input = Vec::new();
        self.output = Vec::new();
    }
}

/// That a connection ends is never the message's fault.
fn deferred(said: Said) -> Outcome {
    if said.reason == Reason::BareLineEnd { Outcome::Failed(said) } else { Outcome::Deferred(said) }
}
