//! A client that reads people and groups from a server of LDAP, without a socket: bytes in, bytes out. What drives it
//! connects, waits no longer than it wants to, and does TLS when it is asked to.

mod reading;

use std::collections::VecDeque;
use std::fmt;

use scrinium_ldap_wire::{
    Authentication, BindRequest, Entry, ExtendedRequest, Filter, FrameError, Message, MessageError,
    MessageId, MessageLimits, MessageReader, Operation, ResultCode, START_TLS, Secret,
};
use thiserror::Error;

use crate::entries::DirectoryKind;
pub use reading::{Mark, MarkError, Outcome, Position, Reading};

/// How the connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// TLS from the first byte (`ldaps://`).
    FromTheStart,
    /// TLS after the first request (`ldap://`).
    StartTls,
    /// None, for servers on the same machine. A password is not sent then unless
    /// [`SourceOptions::allows_clear_password`] says so.
    None,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Nobody in particular.
    Anonymous,
    /// This name with this password.
    Simple {
        /// A DN; Active Directory takes `name@domain` as well.
        name: String,
        /// The password, which is not empty.
        password: Secret,
    },
}

/// Where to read, what, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceOptions {
    /// What kind of directory it is.
    pub kind: DirectoryKind,
    /// How the connection is encrypted.
    pub encryption: Encryption,
    /// Whether a password may go over a connection without encryption.
    pub allows_clear_password: bool,
    /// Who asks.
    pub credentials: Credentials,
    /// The name of the entry below which people and groups are.
    pub base: String,
    /// Which of the entries below it.
    pub filter: Filter,
    /// Entries of a page.
    pub page_size: u32,
    /// Entries in all.
    pub entries_max: usize,
    /// Values of one entry, such as a group's members.
    pub values_max: usize,
    /// Limits of a message.
    pub limits: MessageLimits,
}

/// What the client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Finds out whether the credentials are right, and nothing else.
    CheckPassword,
    /// Reads entries.
    Read(Reading),
}

/// What has happened, or has to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// TLS begins now: shake hands, then call [`SourceClient::tls_started`].
    StartTls,
    /// An entry, with all its values.
    Entry(Entry),
    /// The server says whether the credentials are right ([`Task::CheckPassword`]). That is all.
    PasswordChecked(bool),
    /// Everything was read. That is all.
    Done(Outcome),
}

/// Why the client stops.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClientError {
    /// An empty password, to which servers answer as if it were right (RFC 4513, section 5.1.2).
    #[error("the password is empty; a server would take that for nobody's log-in and accept it")]
    EmptyPassword,
    /// A password would go over the wire for all to read.
    #[error("the connection is not encrypted, so the password was not sent; use ldaps or StartTLS")]
    ClearPassword,
    /// What the server sends is no message.
    #[error("the server does not speak LDAP: {0}")]
    Frame(#[from] FrameError),
    /// What the server sends cannot be read.
    #[error("a message of the server cannot be read: {0}")]
    Message(#[from] MessageError),
    /// The server said something before TLS, which somebody else may have written.
    #[error("the server sent more before TLS began than its answer")]
    BytesBeforeTls,
    /// The server said something that nobody asked for.
    #[error("the server sent an answer that does not fit what was asked: {0}")]
    Unexpected(&'static str),
    /// The server refuses something.
    #[error("the server refused {what}: {code}{words}")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// The result.
        code: ResultCode,
        /// The server's words.
        words: Words,
    },
    /// The server closes the connection.
    #[error("the server closes the connection: {code}{words}")]
    Disconnected {
        /// The result.
        code: ResultCode,
        /// The server's words.
        words: Words,
    },
    /// More entries than the limit.
    #[error("more than {0} entries match; choose a narrower filter or allow more")]
    TooManyEntries(usize),
    /// An entry has more values than the limit.
    #[error("{name:?} has more than {limit} values")]
    TooManyValues {
        /// The entry.
        name: String,
        /// The limit.
        limit: usize,
    },
    /// Pages without entries that do not end.
    #[error("the server sends one empty page after the other")]
    EmptyPages,
    /// A call in a state where it has no meaning.
    #[error("the client is not at this step")]
    Step,
}

/// Words of a server, for a message: as much as helps, without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(String);

impl Words {
    fn new(text: &str) -> Self {
        Self(text.chars().filter(|sign| !sign.is_control()).take(200).collect())
    }
}

impl fmt::Display for Words {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(formatter, " ({})", self.0) }
    }
}

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    StartTlsAnswer,
    Tls,
    BindAnswer,
    Root,
    Page,
    Range,
    Over,
}

/// The client.
#[derive(Debug)]
pub struct SourceClient {
    options: SourceOptions,
    task: Task,
    step: Step,
    reader: MessageReader,
    id: MessageId,
    output: Vec<u8>,
    events: VecDeque<Event>,
    read: reading::Progress,
}

impl SourceClient {
    /// A client for one connection.
    ///
    /// # Errors
    /// [`ClientError::EmptyPassword`], [`ClientError::ClearPassword`]
    pub fn new(options: SourceOptions, task: Task) -> Result<Self, ClientError> {
        if let Credentials::Simple { password, .. } = &options.credentials {
            if password.0.is_empty() {
                return Err(ClientError::EmptyPassword);
            }
            if options.encryption == Encryption::None && !options.allows_clear_password {
                return Err(ClientError::ClearPassword);
            }
        }
        Ok(Self {
            reader: MessageReader::new(options.limits.message_bytes),
            options,
            task,
            step: Step::Begin,
            id: MessageId::UNSOLICITED,
            output: Vec::new(),
            events: VecDeque::new(),
            read: reading::Progress::default(),
        })
    }

    /// The connection is there, with TLS if it was to begin with it.
    ///
    /// # Errors
    /// [`ClientError::Step`] if it was there before.
    pub fn connected(&mut self) -> Result<(), ClientError> {
        if self.step != Step::Begin {
            return Err(ClientError::Step);
        }
        if self.options.encryption == Encryption::StartTls {
            self.send(Operation::Extended(ExtendedRequest::new(START_TLS)), Step::StartTlsAnswer);
        } else {
            self.bind();
        }
        Ok(())
    }

    /// The hands are shaken that [`Event::StartTls`] asked for, and the certificate is right.
    ///
    /// # Errors
    /// [`ClientError::Step`] if nobody asked.
    pub fn tls_started(&mut self) -> Result<(), ClientError> {
        if self.step != Step::Tls {
            return Err(ClientError::Step);
        }
        self.bind();
        Ok(())
    }

    /// What has to be sent; empty if nothing has to.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Whether the connection is over, and can be closed once the output is sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.step == Step::Over && self.events.is_empty()
    }

    /// Takes bytes of the server up to the next event; says how many. Call it again with those that are left, or with none,
    /// until it gives no event, and send the output in between.
    ///
    /// # Errors
    /// [`ClientError`]; the connection cannot be used any more.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), ClientError> {
        let mut taken = 0;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok((taken, Some(event)));
            }
            let rest = bytes.get(taken..).unwrap_or_default();
            if rest.is_empty() || self.step == Step::Over {
                return Ok((bytes.len(), None));
            }
            if matches!(self.step, Step::Begin | Step::Tls) {
                return Err(ClientError::BytesBeforeTls);
            }
            let (count, whole) = self.reader.read(rest)?;
            taken += count;
            if let Some(whole) = whole {
                self.message(Message::parse(&whole, self.options.limits)?)?;
                if self.step == Step::Tls && taken < bytes.len() {
                    return Err(ClientError::BytesBeforeTls);
                }
            }
        }
    }

    fn send(&mut self, operation: Operation, step: Step) {
        self.send_with(operation, Vec::new(), step);
    }

    fn send_with(&mut self, operation: Operation, controls: Vec<scrinium_ldap_wire::Control>, step: Step) {
        self.id = self.id.next();
        self.output.extend_from_slice(&Message { id: self.id, operation, controls }.to_bytes());
        self.step = step;
    }

    fn bind(&mut self) {
        let (name, password) = match &self.options.credentials {
            Credentials::Anonymous => (String::new(), Secret::default()),
            Credentials::Simple { name, password } => (name.clone(), password.clone()),
        };
        let authentication = Authentication::Simple(password);
        self.send(Operation::Bind(BindRequest { version: 3, name, authentication }), Step::BindAnswer);
    }

    fn message(&mut self, message: Message) -> Result<(), ClientError> {
        if message.id == MessageId::UNSOLICITED {
            let result = message.operation.result().ok_or(ClientError::Unexpected("a notice"))?;
            return Err(ClientError::Disconnected { code: result.code, words: Words::new(&result.message) });
        }
        if message.id != self.id {
            return Err(ClientError::Unexpected("its number"));
        }
        match (self.step, &message.operation) {
            (Step::StartTlsAnswer, Operation::ExtendedResponse(response)) => {
                accepted("StartTLS", &response.result)?;
                self.step = Step::Tls;
                self.events.push_back(Event::StartTls);
                Ok(())
            }
            (Step::BindAnswer, Operation::BindResponse(response)) => self.bound(&response.result),
            (Step::Root | Step::Page | Step::Range, _) => self.found(message),
            _ => Err(ClientError::Unexpected("its kind")),
        }
    }

    fn bound(&mut self, result: &scrinium_ldap_wire::LdapResult) -> Result<(), ClientError> {
        if self.task == Task::CheckPassword {
            let is_right = match result.code {
                ResultCode::SUCCESS => true,
                ResultCode::INVALID_CREDENTIALS
                | ResultCode::NO_SUCH_OBJECT
                | ResultCode::INAPPROPRIATE_AUTHENTICATION => false,
                _ => return accepted("the log-in", result),
            };
            self.finish(Event::PasswordChecked(is_right));
            return Ok(());
        }
        accepted("the log-in", result)?;
        self.ask_root();
        Ok(())
    }

    fn finish(&mut self, event: Event) {
        self.send(Operation::Unbind, Step::Over);
        self.events.push_back(event);
    }
}

fn accepted(what: &'static str, result: &scrinium_ldap_wire::LdapResult) -> Result<(), ClientError> {
    if result.is_success() {
        return Ok(());
    }
    Err(ClientError::Refused { what, code: result.code, words: Words::new(&result.message) })
}
