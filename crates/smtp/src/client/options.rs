//! What a client's session needs to know when it begins.

use std::fmt;

use scrinium_smtp_wire::BareEnds;

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// SMTP: one answer for a message.
    Smtp,
    /// LMTP (RFC 2033): one for each recipient.
    Lmtp,
}

/// Whether the connection is encrypted by STARTTLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPolicy {
    /// It is not.
    Never,
    /// If the server offers it.
    Opportunistic,
    /// Without it nothing is sent.
    Required,
}

/// How to log in with a server that passes our messages on.
#[derive(Clone)]
pub struct ClientLogin {
    /// The name.
    pub name: String,
    /// The proof.
    pub secret: LoginSecret,
}

/// What a client shows.
#[derive(Clone)]
pub enum LoginSecret {
    /// A password.
    Password(String),
    /// A token of a provider.
    Token(String),
}

/// Secrets are no log's to show.
impl fmt::Debug for ClientLogin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClientLogin({:?}, …)", self.name)
    }
}

/// Secrets are no log's to show.
impl fmt::Debug for LoginSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Password(_) => "Password(…)",
            Self::Token(_) => "Token(…)",
        })
    }
}

/// Limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// A line of a reply.
    pub line_bytes: usize,
    /// Lines of a reply.
    pub reply_lines: usize,
    /// A whole reply.
    pub reply_bytes: usize,
    /// Commands whose replies have not come, with PIPELINING.
    pub commands_in_flight: usize,
    /// Chunks whose replies have not come, with PIPELINING.
    pub chunks_in_flight: usize,
    /// No more text is asked for while so much waits to be sent.
    pub output_bytes: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            line_bytes: 4096,
            reply_lines: 128,
            reply_bytes: 16 * 1024,
            commands_in_flight: 100,
            chunks_in_flight: 4,
            output_bytes: 64 * 1024,
        }
    }
}

/// How long the server may take (RFC 5321, section 4.5.3.2), in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTimes {
    /// To greet, and to answer a command.
    pub command_ms: u64,
    /// To answer DATA.
    pub data_ms: u64,
    /// To take more of a text.
    pub text_ms: u64,
    /// To say whether a message is taken.
    pub end_ms: u64,
}

impl Default for ClientTimes {
    fn default() -> Self {
        Self { command_ms: 5 * 60_000, data_ms: 2 * 60_000, text_ms: 3 * 60_000, end_ms: 10 * 60_000 }
    }
}

/// How a connection is used.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// What is spoken.
    pub protocol: Protocol,
    /// Who we are: a domain, or an address in brackets.
    pub host: String,
    /// STARTTLS.
    pub tls: TlsPolicy,
    /// The log-in, where the server wants one.
    pub login: Option<ClientLogin>,
    /// Whether texts go by BDAT where the server offers CHUNKING.
    pub prefers_chunks: bool,
    /// What becomes of a CR or LF by itself in a text: none is ever sent.
    pub bare_ends: BareEnds,
    /// Limits.
    pub limits: ClientLimits,
    /// Time limits.
    pub times: ClientTimes,
}

impl ClientOptions {
    /// What is usual.
    #[must_use]
    pub fn new(protocol: Protocol, host: &str) -> Self {
        Self {
            protocol,
            host: host.to_owned(),
            tls: TlsPolicy::Opportunistic,
            login: None,
            prefers_chunks: false,
            bare_ends: BareEnds::Normalise,
            limits: ClientLimits::default(),
            times: ClientTimes::default(),
        }
    }
}
