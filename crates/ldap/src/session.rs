//! The session.

use scrinium_ldap_wire::{
    Authentication, AuthorizationIdentity, BindRequest, BindResponse, DistinguishedName, ExtendedRequest,
    ExtendedResponse, LdapResult, Message, MessageId, MessageLimits, MessageReader, Operation, PAGED_RESULTS,
    RequestKind, ResultCode, START_TLS, Secret, WHO_AM_I,
};

use crate::request::{Answer, Binding, Request};
use crate::search::{Asked, Telling, ask};

/// What all sessions of a port have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// The name of the entry below which people and groups are.
    pub base: String,
    /// Entries of one answer at most.
    pub entries_max: usize,
    /// Whether TLS can begin.
    pub has_certificate: bool,
}

/// What is under way.
#[derive(Debug)]
enum Pending {
    StartTls(MessageId),
    Bind(MessageId),
    Search(Telling),
    Compare(MessageId),
}

impl Pending {
    const fn id(&self) -> MessageId {
        match self {
            Self::StartTls(id) | Self::Bind(id) | Self::Compare(id) => *id,
            Self::Search(telling) => telling.id(),
        }
    }
}

/// One client's session.
#[derive(Debug)]
pub struct ServerSession {
    options: SessionOptions,
    reader: MessageReader,
    output: Vec<u8>,
    /// What is to be asked.
    request: Option<Request>,
    pending: Option<Pending>,
    /// The mechanism of an exchange that goes on.
    exchange: Option<String>,
    bound: Option<Binding>,
    mechanisms: Vec<&'static str>,
    is_protected: bool,
    is_closed: bool,
}

impl ServerSession {
    /// A session over a connection that is protected already, or not. `mechanisms` are those of SASL that it offers now.
    #[must_use]
    pub fn new(options: SessionOptions, is_protected: bool, mechanisms: Vec<&'static str>) -> Self {
        Self {
            reader: MessageReader::new(MessageLimits::ANONYMOUS.message_bytes),
            options,
            output: Vec::new(),
            request: None,
            pending: None,
            exchange: None,
            bound: None,
            mechanisms,
            is_protected,
            is_closed: false,
        }
    }

    /// Whether bytes of the client can be taken.
    #[must_use]
    pub const fn wants_input(&self) -> bool {
        self.pending.is_none() && !self.is_closed
    }

    /// Whether the connection ends once the output is sent.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether somebody has shown who they are.
    #[must_use]
    pub const fn is_bound(&self) -> bool {
        self.bound.is_some()
    }

    /// Bytes for the client.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// What is to be answered by [`ServerSession::answer`].
    #[must_use]
    pub fn take_request(&mut self) -> Option<Request> {
        self.request.take()
    }

    /// Takes bytes up to the next request; says how many. What is left is for the next call, once that is answered.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while self.wants_input() {
            let rest = bytes.get(taken..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            match self.reader.read(rest) {
                Ok((count, whole)) => {
                    taken += count;
                    if let Some(whole) = whole {
                        self.message(&whole);
                    }
                }
                Err(error) => {
                    self.close(ResultCode::PROTOCOL_ERROR, &error.to_string());
                    break;
                }
            }
        }
        taken
    }

    /// The server stops, or waits no longer.
    pub fn shut_down(&mut self, words: &str) {
        if !self.is_closed {
            self.close(ResultCode::UNAVAILABLE, words);
        }
    }

    fn close(&mut self, code: ResultCode, words: &str) {
        self.send(&Message::notice_of_disconnection(code, words));
        self.is_closed = true;
    }

    fn send(&mut self, message: &Message) {
        self.output.extend_from_slice(&message.to_bytes());
    }

    fn limits(&self) -> MessageLimits {
        if self.is_bound() { MessageLimits::SERVER } else { MessageLimits::ANONYMOUS }
    }

    fn message(&mut self, bytes: &[u8]) {
        let message = match Message::parse(bytes, self.limits()) {
            Ok(message) => message,
            Err(error) => {
                let (answer, closes) = error.answer();
                self.send(&answer);
                self.is_closed |= closes;
                return;
            }
        };
        let id = message.id;
        let Some(kind) = message.operation.request_kind() else {
            match message.operation {
                Operation::Unbind => self.is_closed = true,
                // One request is under way at a time, so that it has ended.
                Operation::Abandon(_) => {}
                _ => self.close(ResultCode::PROTOCOL_ERROR, "a client sends requests"),
            }
            return;
        };
        let is_served = |oid: &str| oid == PAGED_RESULTS && kind == RequestKind::Search;
        if message.controls.iter().any(|control| control.is_critical && !is_served(&control.oid)) {
            let words = "a control that is critical is not served";
            return self.end(id, kind, ResultCode::UNAVAILABLE_CRITICAL_EXTENSION, words);
        }
        match message.operation {
            Operation::Bind(bind) => self.bind(id, bind),
            Operation::Search(search) => {
                let known = (&self.options, self.mechanisms.as_slice(), self.bound.is_some());
                match ask(id, &search, &message.controls, known) {
                    Asked::Answered(messages) => messages.iter().for_each(|message| self.send(message)),
                    Asked::Search(search, telling) => {
                        self.begin(Request::Search(search), Pending::Search(telling));
                    }
                }
            }
            Operation::Compare(compare) if self.is_bound() => match DistinguishedName::parse(&compare.name) {
                Ok(name) => {
                    let request = Request::Compare { name, assertion: compare.assertion };
                    self.begin(request, Pending::Compare(id));
                }
                Err(error) => self.end(id, kind, ResultCode::INVALID_DN_SYNTAX, &error.to_string()),
            },
            Operation::Compare(_) => self.end(id, kind, ResultCode::INSUFFICIENT_ACCESS_RIGHTS, "bind first"),
            Operation::Extended(extended) => self.extended(id, &extended),
            _ => self.end(id, kind, ResultCode::UNWILLING_TO_PERFORM, "this directory is only read by LDAP"),
        }
    }

    fn begin(&mut self, request: Request, pending: Pending) {
        self.request = Some(request);
        self.pending = Some(pending);
    }

    fn end(&mut self, id: MessageId, kind: RequestKind, code: ResultCode, words: &str) {
        self.send(&Message::new(id, kind.response(LdapResult::new(code, words))));
    }

    /// A bind, which first takes away what the one before gave (RFC 4511, section 4.2.1).
    fn bind(&mut self, id: MessageId, bind: BindRequest) {
        self.bound = None;
        self.reader.set_limit(MessageLimits::ANONYMOUS.message_bytes);
        let exchange = self.exchange.take();
        let refuse = |session: &mut Self, code, words: &str| session.end(id, RequestKind::Bind, code, words);
        if bind.version != 3 {
            return refuse(self, ResultCode::PROTOCOL_ERROR, "the version is 3");
        }
        match bind.authentication {
            Authentication::Simple(Secret(password)) if password.is_empty() => {
                // RFC 4513, section 5.1.2: a name without a password shows nothing.
                if bind.name.is_empty() {
                    return refuse(self, ResultCode::SUCCESS, "");
                }
                refuse(self, ResultCode::UNWILLING_TO_PERFORM, "a bind with a name needs a password");
            }
            Authentication::Simple(_) if !self.is_protected => {
                refuse(self, ResultCode::CONFIDENTIALITY_REQUIRED, "begin TLS before you show a password");
            }
            Authentication::Simple(password) => {
                self.begin(Request::Bind { name: bind.name, password }, Pending::Bind(id));
            }
            Authentication::Sasl { mechanism, credentials } => {
                if !self.mechanisms.iter().any(|offered| offered.eq_ignore_ascii_case(&mechanism)) {
                    return refuse(
                        self,
                        ResultCode::AUTH_METHOD_NOT_SUPPORTED,
                        "no such mechanism is offered",
                    );
                }
                let goes_on = exchange.is_some_and(|running| running.eq_ignore_ascii_case(&mechanism));
                let request = if goes_on {
                    Request::ContinueSasl(credentials.unwrap_or_default())
                } else {
                    Request::BeginSasl { mechanism: mechanism.clone(), initial: credentials }
                };
                self.exchange = Some(mechanism);
                self.begin(request, Pending::Bind(id));
            }
            Authentication::Other { .. } => {
                refuse(self, ResultCode::AUTH_METHOD_NOT_SUPPORTED, "binds are simple or by SASL");
            }
        }
    }

    fn extended(&mut self, id: MessageId, request: &ExtendedRequest) {
        let kind = RequestKind::Extended;
        match request.name.as_str() {
            START_TLS if self.is_protected || !self.options.has_certificate => {
                self.end(id, kind, ResultCode::OPERATIONS_ERROR, "TLS cannot begin here");
            }
            START_TLS => self.begin(Request::StartTls, Pending::StartTls(id)),
            WHO_AM_I => {
                let identity = match &self.bound {
                    Some(bound) => AuthorizationIdentity::Name(bound.name.clone()),
                    None => AuthorizationIdentity::Anonymous,
                };
                let value = Some(identity.to_string().into_bytes());
                let response = ExtendedResponse { result: LdapResult::success(), name: None, value };
                self.send(&Message::new(id, Operation::ExtendedResponse(response)));
            }
            _ => self.end(id, kind, ResultCode::PROTOCOL_ERROR, "no such extended operation is served"),
        }
    }

    /// The answer to StartTLS, to be sent in the clear before hands are shaken. `false`: something came behind the request,
    /// which somebody else may have written, and the connection is closed.
    pub fn may_start_tls(&mut self, has_more: bool) -> bool {
        let Some(Pending::StartTls(id)) = self.pending else { return false };
        if has_more {
            self.pending = None;
            self.close(ResultCode::PROTOCOL_ERROR, "requests came in the clear behind StartTLS");
            return false;
        }
        let response =
            ExtendedResponse { result: LdapResult::success(), name: Some(START_TLS.to_owned()), value: None };
        self.send(&Message::new(id, Operation::ExtendedResponse(response)));
        true
    }

    /// Takes an answer. `mechanisms` are those of SASL that are offered from now on, for [`Answer::Encrypted`].
    pub fn answer(&mut self, answer: Answer, mechanisms: Option<Vec<&'static str>>) {
        let Some(pending) = self.pending.take() else { return };
        let id = pending.id();
        match (pending, answer) {
            (Pending::StartTls(_), Answer::Encrypted) => {
                self.is_protected = true;
                // RFC 4513, section 3.1.1: what was before is forgotten.
                self.bound = None;
                self.mechanisms = mechanisms.unwrap_or_default();
            }
            (Pending::Bind(_), Answer::Bound(binding, data)) => {
                self.exchange = None;
                self.bound = Some(binding);
                self.reader.set_limit(MessageLimits::SERVER.message_bytes);
                self.send_bind(id, LdapResult::success(), data);
            }
            (Pending::Bind(_), Answer::Challenge(challenge)) => {
                let result = LdapResult::new(ResultCode::SASL_BIND_IN_PROGRESS, "");
                self.send_bind(id, result, Some(challenge));
            }
            (Pending::Bind(_), Answer::Ended(result)) => {
                self.exchange = None;
                self.send_bind(id, result, None);
            }
            (Pending::Search(telling), Answer::Found { entries, next }) => {
                telling.found(&entries, next).iter().for_each(|message| self.send(message));
            }
            (Pending::Search(_), Answer::Ended(result)) => {
                self.send(&Message::new(id, RequestKind::Search.response(result)));
            }
            (Pending::Compare(_), Answer::Ended(result)) => {
                self.send(&Message::new(id, RequestKind::Compare.response(result)));
            }
            // An answer that does not fit is a fault of the surroundings.
            _ => self.close(ResultCode::OTHER, "the server could not answer"),
        }
    }

    fn send_bind(&mut self, id: MessageId, result: LdapResult, server_credentials: Option<Vec<u8>>) {
        self.send(&Message::new(id, Operation::BindResponse(BindResponse { result, server_credentials })));
    }

    /// The one who is bound is not let in any more.
    pub fn forget(&mut self) {
        self.bound = None;
        self.reader.set_limit(MessageLimits::ANONYMOUS.message_bytes);
    }
}
