//! The envelope of every operation (RFC 4511, section 4.1.1).

use thiserror::Error;

use crate::ber::{INTEGER, Reader, SEQUENCE, Writer, context_constructed};
use crate::control::Control;
use crate::extension::NOTICE_OF_DISCONNECTION;
use crate::limits::{Budget, Fault, MessageLimits};
use crate::operation::{ExtendedResponse, Operation, RequestKind};
use crate::operation_read;
use crate::operation_write;
use crate::result::{LdapResult, ResultCode};

/// The number of a message, from 0 to 2³¹-1. A request's is not 0, which is for notices that a server sends unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u32);

impl MessageId {
    /// The number of what nobody asked for (section 4.4).
    pub const UNSOLICITED: Self = Self(0);

    /// The id with this number, which is at most 2³¹-1.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        i32::try_from(number).is_ok().then_some(Self(number))
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The one behind it, for a client that counts: after 2³¹-1 comes 1.
    #[must_use]
    pub fn next(self) -> Self {
        Self::from_number(self.0.wrapping_add(1)).unwrap_or(Self(1))
    }

    pub(crate) fn read(contents: &[u8]) -> Result<Self, Fault> {
        u32::try_from(crate::ber::integer(contents)?).map(Self).map_err(|_| Fault::Integer)
    }
}

/// A message of a client or of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number; responses have that of their request.
    pub id: MessageId,
    /// What it asks or answers.
    pub operation: Operation,
    /// What is asked or said in addition.
    pub controls: Vec<Control>,
}

/// Why a message cannot be read, with what was read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{fault}")]
pub struct MessageError {
    /// The message's number, if it got that far.
    pub id: Option<MessageId>,
    /// What kind of request it is, if it got that far.
    pub request: Option<RequestKind>,
    /// What is wrong.
    pub fault: Fault,
}

impl MessageError {
    /// What a server answers, and whether it closes the connection then (section 4.1.1): what can be answered in its own
    /// form is, and the rest gets a notice of disconnection.
    #[must_use]
    pub fn answer(&self) -> (Message, bool) {
        let code =
            if self.fault.is_limit() { ResultCode::ADMIN_LIMIT_EXCEEDED } else { ResultCode::PROTOCOL_ERROR };
        let words = self.fault.to_string();
        match (self.id, self.request) {
            (Some(id), Some(request)) if !self.fault.breaks_connection() => {
                let operation = request.response(LdapResult::new(code, &words));
                (Message { id, operation, controls: Vec::new() }, false)
            }
            _ => (Message::notice_of_disconnection(code, &words), true),
        }
    }
}

impl Message {
    /// A message without controls.
    #[must_use]
    pub fn new(id: MessageId, operation: Operation) -> Self {
        Self { id, operation, controls: Vec::new() }
    }

    /// What a server says before it closes a connection by itself (section 4.4.1).
    #[must_use]
    pub fn notice_of_disconnection(code: ResultCode, words: &str) -> Self {
        let response = ExtendedResponse {
            result: LdapResult::new(code, words),
            name: Some(NOTICE_OF_DISCONNECTION.to_owned()),
            value: None,
        };
        Self::new(MessageId::UNSOLICITED, Operation::ExtendedResponse(response))
    }

    /// Reads a whole message, as [`MessageReader`](crate::MessageReader) gives it.
    ///
    /// # Errors
    /// [`MessageError`]
    pub fn parse(bytes: &[u8], limits: MessageLimits) -> Result<Self, MessageError> {
        let (mut id, mut request) = (None, None);
        read_message(bytes, limits, &mut id, &mut request).map_err(|fault| MessageError {
            id,
            request,
            fault,
        })
    }

    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.nested(SEQUENCE, |inside| {
            inside.integer(INTEGER, i64::from(self.id.0));
            operation_write::write(&self.operation, inside);
            if !self.controls.is_empty() {
                inside.nested(context_constructed(0), |list| {
                    self.controls.iter().for_each(|control| control.write(list));
                });
            }
        });
        writer.into_bytes()
    }

    /// The control with this OID.
    #[must_use]
    pub fn control(&self, oid: &str) -> Option<&Control> {
        self.controls.iter().find(|control| control.oid == oid)
    }
}

fn read_message(
    bytes: &[u8],
    limits: MessageLimits,
    id: &mut Option<MessageId>,
    request: &mut Option<RequestKind>,
) -> Result<Message, Fault> {
    let mut budget = Budget::new(limits);
    let mut outside = Reader::new(bytes);
    let mut inside = outside.inside(SEQUENCE)?;
    if !outside.is_empty() {
        return Err(Fault::Trailing);
    }
    let found = MessageId::read(inside.expect(INTEGER)?)?;
    *id = Some(found);
    let (tag, contents) = inside.element()?;
    *request = operation_read::request_kind(tag);
    let operation = operation_read::read(tag, contents, &mut budget)?;
    if operation.is_request() && found == MessageId::UNSOLICITED {
        return Err(Fault::Value("a request with the number 0"));
    }
    let controls = match inside.optional(context_constructed(0))? {
        Some(contents) => {
            let mut list = Reader::new(contents);
            let mut controls = Vec::new();
            while !list.is_empty() {
                budget.take_item()?;
                controls.push(Control::read(&mut list)?);
            }
            controls
        }
        None => Vec::new(),
    };
    Ok(Message { id: found, operation, controls })
}
