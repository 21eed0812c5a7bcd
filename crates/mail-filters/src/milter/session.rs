//! What to send for what happens, and what came of it.

use std::net::IpAddr;

use super::packet::{MilterError, MilterLimits, PacketReader, packet, text};
use super::response::{Change, Response};
use super::{action, wish};

/// The protocol's version.
const VERSION: u32 = 6;

/// The oldest version that is spoken.
const OLDEST_VERSION: u32 = 2;

/// Bytes of a piece of a body.
pub const BODY_BYTES_MAX: usize = 65_535;

/// Where a session is: what the next answer of the filter is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MilterStep {
    /// What both sides can.
    Negotiate,
    /// A client connects.
    Connect,
    /// It greets.
    Helo,
    /// MAIL FROM
    Sender,
    /// RCPT TO
    Recipient,
    /// DATA
    Data,
    /// A field of the head.
    Field,
    /// The head's end.
    EndOfFields,
    /// A piece of the body.
    Body,
    /// The message's end.
    End,
}

/// Who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client<'a> {
    /// Its name by DNS, or its address in brackets.
    pub name: &'a str,
    /// Its address; `None` for one without a network.
    pub address: Option<IpAddr>,
    /// Its port.
    pub port: u16,
}

/// What happens in an SMTP session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// A client connects.
    Connect(Client<'a>),
    /// Its greeting.
    Helo(&'a [u8]),
    /// The sender with its angles, and parameters.
    Sender(&'a [u8], &'a [&'a [u8]]),
    /// A recipient with its angles, and parameters.
    Recipient(&'a [u8], &'a [&'a [u8]]),
    /// DATA
    Data,
    /// A field: its name, and its value with its folds.
    Field(&'a [u8], &'a [u8]),
    /// The head's end.
    EndOfFields,
    /// A piece of the body, of at most [`BODY_BYTES_MAX`].
    Body(&'a [u8]),
    /// The message's end.
    End,
}

impl Told<'_> {
    fn step(&self) -> MilterStep {
        match self {
            Self::Connect(_) => MilterStep::Connect,
            Self::Helo(_) => MilterStep::Helo,
            Self::Sender(..) => MilterStep::Sender,
            Self::Recipient(..) => MilterStep::Recipient,
            Self::Data => MilterStep::Data,
            Self::Field(..) => MilterStep::Field,
            Self::EndOfFields => MilterStep::EndOfFields,
            Self::Body(_) => MilterStep::Body,
            Self::End => MilterStep::End,
        }
    }
}

/// What is to be sent, and whether the filter answers it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Bytes; none if the filter does not want to know.
    pub bytes: Vec<u8>,
    /// Whether there will be a [`Verdict`].
    pub is_answered: bool,
}

/// What the filter says of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Continue,
    /// The rest of the message, or of the connection before one, is not its concern.
    Accept,
    /// Take the message and throw it away.
    Discard,
    /// Refuse (5xx): the recipient, the message or the connection.
    Reject,
    /// The same for now (4xx).
    Postpone,
    /// The same with this reply.
    Reply(u16, String),
    /// End the connection (421).
    Shutdown,
}

/// A session with a filter, for one SMTP connection.
#[derive(Clone, Debug)]
pub struct MilterSession {
    limits: MilterLimits,
    reader: PacketReader,
    actions: u32,
    wishes: u32,
    /// What an answer is waited for.
    waiting: Option<MilterStep>,
    /// The last step that was told.
    at: MilterStep,
    /// Nothing more has to be told of this connection.
    is_connection_done: bool,
    /// The same of this message.
    is_message_done: bool,
    /// No more of the body is wanted.
    skips_body: bool,
    is_broken: bool,
    changes: Vec<Change>,
    changed_bytes: usize,
}

impl MilterSession {
    /// A session, and what opens it.
    #[must_use]
    pub fn new(limits: MilterLimits) -> (Self, Vec<u8>) {
        let session = Self {
            limits,
            reader: PacketReader::new(limits.packet_bytes),
            actions: 0,
            wishes: 0,
            waiting: Some(MilterStep::Negotiate),
            at: MilterStep::Negotiate,
            is_connection_done: false,
            is_message_done: false,
            skips_body: false,
            is_broken: false,
            changes: Vec::new(),
            changed_bytes: 0,
        };
        let [version, actions, wishes] = [VERSION, action::ALL, wish::ALL].map(u32::to_be_bytes);
        (session, packet(b'O', &[&version, &actions, &wishes]))
    }

    /// Says what has happened. `macros` are names with braces where they are long, such as `i` and `{auth_authen}`, and values.
    ///
    /// # Errors
    /// [`MilterError::Order`] where an answer is waited for, a piece of a body is too long, or this does not follow what was before.
    pub fn tell(&mut self, told: &Told<'_>, macros: &[(&str, &str)]) -> Result<Sending, MilterError> {
        let step = told.step();
        // A piece that is too long must not be cut: the filter would not see what is behind.
        let is_long = matches!(told, Told::Body(piece) if piece.len() > BODY_BYTES_MAX);
        if self.is_broken || self.waiting.is_some() || is_long || !self.follows(step) {
            return Err(MilterError::Order);
        }
        self.at = step;
        if step == MilterStep::Sender {
            self.begin_message();
        }
        let is_of_message = step >= MilterStep::Sender;
        let is_done = self.is_connection_done || (is_of_message && self.is_message_done);
        if is_done || self.is_unwanted(step) {
            return Ok(Sending::default());
        }
        let (kind, data) = self.packet_of(told);
        let mut bytes = Vec::new();
        if !macros.is_empty() {
            let pieces =
                macros.iter().flat_map(|(name, value)| [text(name.as_bytes()), text(value.as_bytes())]);
            bytes = packet(b'D', &[&[kind], &pieces.collect::<Vec<_>>().concat()]);
        }
        bytes.extend(packet(kind, &[&data]));
        let is_answered = !self.is_silent(step);
        self.waiting = is_answered.then_some(step);
        Ok(Sending { bytes, is_answered })
    }

    /// Takes what the filter sent; a verdict, once it is there.
    ///
    /// # Errors
    /// [`MilterError`]: the session cannot be used any more.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<Verdict>, MilterError> {
        if self.is_broken {
            return Err(MilterError::Order);
        }
        let taken = self.take_packets(bytes);
        self.is_broken = taken.is_err();
        taken
    }

    /// The changes that the filter wants, once the end of the message has been answered.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.changed_bytes = 0;
        std::mem::take(&mut self.changes)
    }

    /// The message is given up, by the client or here. Nothing is answered.
    pub fn abort(&mut self) -> Vec<u8> {
        let was_told = self.at >= MilterStep::Sender && !self.is_connection_done && !self.is_broken;
        self.begin_message();
        self.at = self.at.min(MilterStep::Helo);
        if self.waiting.is_some_and(|step| step >= MilterStep::Sender) {
            // Its answer would be taken for that of the next message.
            self.is_broken = true;
        }
        if was_told { packet(b'A', &[]) } else { Vec::new() }
    }

    /// The connection is over.
    #[must_use]
    pub fn quit(self) -> Vec<u8> {
        packet(b'Q', &[])
    }

    fn take_packets(&mut self, bytes: &[u8]) -> Result<Option<Verdict>, MilterError> {
        let mut verdict = None;
        for (kind, data) in self.reader.take(bytes)? {
            // After a verdict nothing more comes until the filter hears of the next thing.
            if verdict.is_some() {
                return Err(MilterError::Unexpected(kind));
            }
            let step = self.waiting.ok_or(MilterError::Unexpected(kind))?;
            let response = Response::parse(kind, &data)?;
            verdict = self.answer(kind, step, response)?;
            if verdict.is_some() {
                self.waiting = None;
            }
        }
        Ok(verdict)
    }

    fn answer(
        &mut self,
        kind: u8,
        step: MilterStep,
        response: Response,
    ) -> Result<Option<Verdict>, MilterError> {
        let is_negotiation = matches!(response, Response::Negotiated(..));
        if is_negotiation != (step == MilterStep::Negotiate) {
            return Err(MilterError::Unexpected(kind));
        }
        let verdict = match response {
            Response::Negotiated(version, actions, wishes) => {
                // The high bits say how large packets may be, which this side does not use.
                let wishes = wishes & 0x0fff_ffff;
                if version < OLDEST_VERSION || actions & !action::ALL != 0 || wishes & !wish::ALL != 0 {
                    return Err(MilterError::Negotiation);
                }
                (self.actions, self.wishes) = (actions, wishes);
                Verdict::Continue
            }
            Response::Progress => return Ok(None),
            Response::Change(change) => {
                self.keep(kind, step, change)?;
                return Ok(None);
            }
            Response::Skip if step == MilterStep::Body => {
                self.skips_body = true;
                Verdict::Continue
            }
            Response::Skip => return Err(MilterError::Unexpected(kind)),
            Response::Continue => Verdict::Continue,
            Response::Accept => Verdict::Accept,
            Response::Discard => Verdict::Discard,
            Response::Reject => Verdict::Reject,
            Response::Postpone => Verdict::Postpone,
            Response::Reply(code, text) => Verdict::Reply(code, text),
            Response::Shutdown => Verdict::Shutdown,
        };
        self.conclude(step, &verdict);
        Ok(Some(verdict))
    }

    /// What need not be told any more after a verdict.
    fn conclude(&mut self, step: MilterStep, verdict: &Verdict) {
        let is_final = !matches!(verdict, Verdict::Continue);
        // What is said of a recipient concerns that recipient alone, unless it is taken or thrown away as a whole.
        let is_of_recipient = step == MilterStep::Recipient
            && matches!(verdict, Verdict::Reject | Verdict::Postpone | Verdict::Reply(..));
        if *verdict == Verdict::Shutdown || (is_final && step <= MilterStep::Helo) {
            self.is_connection_done = true;
        } else if is_final && !is_of_recipient {
            self.is_message_done = true;
        }
    }

    /// Changes are answers to the end of a message alone.
    fn keep(&mut self, kind: u8, step: MilterStep, change: Change) -> Result<(), MilterError> {
        if step != MilterStep::End {
            return Err(MilterError::Unexpected(kind));
        }
        if change.needs(kind) & self.actions == 0 {
            return Err(MilterError::NotAgreed(kind));
        }
        let bytes = match &change {
            Change::AddField { name, value } | Change::InsertField { name, value, .. } => {
                name.len() + value.len()
            }
            Change::ChangeField { name, value, .. } => name.len() + value.as_ref().map_or(0, Vec::len),
            Change::AddRecipient(bytes) | Change::RemoveRecipient(bytes) | Change::ChangeSender(bytes) => {
                bytes.len()
            }
            Change::Body(bytes) => bytes.len(),
            Change::Quarantine(reason) => reason.len(),
        };
        self.changed_bytes = self.changed_bytes.saturating_add(bytes);
        if self.changed_bytes > self.limits.changed_bytes {
            return Err(MilterError::Changes);
        }
        // The pieces of a body are one change.
        if let (Some(Change::Body(body)), Change::Body(more)) = (self.changes.last_mut(), &change) {
            body.extend_from_slice(more);
            return Ok(());
        }
        if self.changes.len() >= self.limits.changes {
            return Err(MilterError::Changes);
        }
        self.changes.push(change);
        Ok(())
    }

    fn begin_message(&mut self) {
        self.is_message_done = false;
        self.skips_body = false;
        self.changes.clear();
        self.changed_bytes = 0;
    }

    /// The order of an SMTP session; a client may greet again, send several messages, and refuse to go on.
    fn follows(&self, step: MilterStep) -> bool {
        use MilterStep::{Body, Connect, Data, End, EndOfFields, Field, Helo, Negotiate, Recipient, Sender};
        match step {
            Negotiate => false,
            Connect => self.at == Negotiate,
            Helo => matches!(self.at, Connect | Helo | End),
            Sender => matches!(self.at, Connect | Helo | End),
            Recipient => matches!(self.at, Sender | Recipient),
            Data => self.at == Recipient,
            Field => matches!(self.at, Data | Field),
            EndOfFields => matches!(self.at, Data | Field),
            Body => matches!(self.at, EndOfFields | Body),
            End => matches!(self.at, EndOfFields | Body),
        }
    }

    fn is_unwanted(&self, step: MilterStep) -> bool {
        let flag = match step {
            MilterStep::Connect => wish::NO_CONNECT,
            MilterStep::Helo => wish::NO_HELO,
            MilterStep::Sender => wish::NO_SENDER,
            MilterStep::Recipient => wish::NO_RECIPIENT,
            MilterStep::Data => wish::NO_DATA,
            MilterStep::Field => wish::NO_FIELDS,
            MilterStep::EndOfFields => wish::NO_END_OF_FIELDS,
            MilterStep::Body if self.skips_body => return true,
            MilterStep::Body => wish::NO_BODY,
            MilterStep::Negotiate | MilterStep::End => 0,
        };
        self.wishes & flag != 0
    }

    fn is_silent(&self, step: MilterStep) -> bool {
        let flag = match step {
            MilterStep::Connect => wish::SILENT_CONNECT,
            MilterStep::Helo => wish::SILENT_HELO,
            MilterStep::Sender => wish::SILENT_SENDER,
            MilterStep::Recipient => wish::SILENT_RECIPIENT,
            MilterStep::Data => wish::SILENT_DATA,
            MilterStep::Field => wish::SILENT_FIELD,
            MilterStep::EndOfFields => wish::SILENT_END_OF_FIELDS,
            MilterStep::Body => wish::SILENT_BODY,
            MilterStep::Negotiate | MilterStep::End => 0,
        };
        self.wishes & flag != 0
    }

    fn packet_of(&self, told: &Told<'_>) -> (u8, Vec<u8>) {
        let with_parameters = |address: &[u8], parameters: &[&[u8]]| {
            let all = std::iter::once(address).chain(parameters.iter().copied());
            all.flat_map(text).collect::<Vec<u8>>()
        };
        match told {
            Told::Connect(client) => (b'C', client_data(client)),
            Told::Helo(name) => (b'H', text(name)),
            Told::Sender(address, parameters) => (b'M', with_parameters(address, parameters)),
            Told::Recipient(address, parameters) => (b'R', with_parameters(address, parameters)),
            Told::Data => (b'T', Vec::new()),
            Told::Field(name, value) => {
                // Filters expect LF in folds, and one space less unless they ask for it.
                let value = match value.strip_prefix(b" ") {
                    Some(rest) if self.wishes & wish::LEADING_SPACE == 0 => rest,
                    _ => value,
                };
                let value: Vec<u8> = value.iter().copied().filter(|byte| *byte != b'\r').collect();
                (b'L', [text(name), text(&value)].concat())
            }
            Told::EndOfFields => (b'N', Vec::new()),
            Told::Body(piece) => (b'B', piece.to_vec()),
            Told::End => (b'E', Vec::new()),
        }
    }
}

fn client_data(client: &Client<'_>) -> Vec<u8> {
    let mut data = text(client.name.as_bytes());
    let Some(address) = client.address.map(|address| address.to_canonical()) else {
        data.push(b'U');
        return data;
    };
    data.push(if address.is_ipv4() { b'4' } else { b'6' });
    data.extend(client.port.to_be_bytes());
    data.extend(text(address.to_string().as_bytes()));
    data
}
