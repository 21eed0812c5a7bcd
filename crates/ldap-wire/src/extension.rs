//! Extended operations that address books and programs use.

use crate::ber::{INTEGER, Reader, SEQUENCE, Writer, context, text};
use crate::limits::Fault;
use crate::message::MessageId;
use crate::operation::{ExtendedRequest, Secret};

/// TLS begins on this connection (RFC 4511, section 4.14).
pub const START_TLS: &str = "1.3.6.1.4.1.1466.20037";
/// The server closes the connection (RFC 4511, section 4.4.1).
pub const NOTICE_OF_DISCONNECTION: &str = "1.3.6.1.4.1.1466.20036";
/// Who am I (RFC 4532)? The answer is [`AuthorizationIdentity`]'s text.
pub const WHO_AM_I: &str = "1.3.6.1.4.1.4203.1.11.3";
/// Another password (RFC 3062).
pub const PASSWORD_MODIFY: &str = "1.3.6.1.4.1.4203.1.11.1";
/// An operation stops, and is answered (RFC 3909).
pub const CANCEL: &str = "1.3.6.1.1.8";

/// Who is bound, as text (RFC 4513, section 5.2.1.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizationIdentity {
    /// Nobody has shown who they are.
    Anonymous,
    /// By the name of an entry.
    Name(String),
    /// By a log-in name.
    User(String),
}

impl AuthorizationIdentity {
    /// Reads what a server answered, or what a client said in SASL.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::Anonymous);
        }
        match text.split_once(':') {
            // "dn:" alone is the anonymous name.
            Some(("dn", "")) => Some(Self::Anonymous),
            Some(("dn", name)) => Some(Self::Name(name.to_owned())),
            Some(("u", name)) => Some(Self::User(name.to_owned())),
            _ => None,
        }
    }
}

impl std::fmt::Display for AuthorizationIdentity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anonymous => Ok(()),
            Self::Name(name) => write!(formatter, "dn:{name}"),
            Self::User(name) => write!(formatter, "u:{name}"),
        }
    }
}

impl ExtendedRequest {
    /// A request without a value.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), value: None }
    }

    /// Asks that an operation stops (RFC 3909).
    #[must_use]
    pub fn cancel(id: MessageId) -> Self {
        let mut writer = Writer::default();
        writer.nested(SEQUENCE, |inside| inside.integer(INTEGER, i64::from(id.number())));
        Self { name: CANCEL.to_owned(), value: Some(writer.into_bytes()) }
    }

    /// The operation that a [`CANCEL`] stops.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn cancelled(&self) -> Result<MessageId, Fault> {
        let value = self.value.as_deref().ok_or(Fault::Value("a request to cancel without a number"))?;
        MessageId::read(Reader::new(value).inside(SEQUENCE)?.expect(INTEGER)?)
    }
}

/// The value of [`PASSWORD_MODIFY`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PasswordModify {
    /// Whose password, in whatever form the server knows names; nobody means who asks.
    pub identity: Option<String>,
    /// The password so far.
    pub old_password: Option<Secret>,
    /// The password from now on; without one the server makes one.
    pub new_password: Option<Secret>,
}

impl PasswordModify {
    /// Reads a request's value.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn parse(request: &ExtendedRequest) -> Result<Self, Fault> {
        let Some(value) = request.value.as_deref() else { return Ok(Self::default()) };
        let mut inside = Reader::new(value).inside(SEQUENCE)?;
        let mut secret = |number| -> Result<Option<Secret>, Fault> {
            Ok(inside.optional(context(number))?.map(|contents| Secret(contents.to_vec())))
        };
        let identity = secret(0)?.map(|identity| text(&identity.0)).transpose()?;
        Ok(Self { identity, old_password: secret(1)?, new_password: secret(2)? })
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> ExtendedRequest {
        let mut writer = Writer::default();
        writer.nested(SEQUENCE, |inside| {
            inside.optional(context(0), self.identity.as_deref().map(str::as_bytes));
            inside.optional(context(1), self.old_password.as_ref().map(|secret| secret.0.as_slice()));
            inside.optional(context(2), self.new_password.as_ref().map(|secret| secret.0.as_slice()));
        });
        ExtendedRequest { name: PASSWORD_MODIFY.to_owned(), value: Some(writer.into_bytes()) }
    }
}
