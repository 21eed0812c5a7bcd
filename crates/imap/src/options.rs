//! What a session needs to know when it begins.

use std::net::IpAddr;

use scrinium_credentials::sasl::{ChannelBindings, SaslMechanism};

use crate::capability::CapabilitySet;

/// Limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// What is buffered of input that nobody has looked at.
    pub input_bytes: usize,
    /// Output that waits for the client; nothing more is asked for or done beyond this.
    pub output_bytes: usize,
    /// A piece of a message, on its way in or out.
    pub piece_bytes: usize,
    /// A command before log-in, with its literals (mail clients send a log-in, nothing longer).
    pub login_command_bytes: usize,
    /// A command after log-in, with its literals but without messages: sets of 100,000 UIDs come in one line.
    pub command_bytes: usize,
    /// A message of APPEND: APPENDLIMIT.
    pub message_bytes: u64,
    /// Messages of one answer from the folder.
    pub entries: u32,
    /// Ranges of a result that is kept: of SEARCH until it is written, of `$`, of COPYUID.
    pub result_ranges: usize,
    /// Mailboxes of one answer to LIST.
    pub mailboxes: usize,
    /// Unknown and refused commands before log-in.
    pub early_errors: usize,
    /// Refused commands on a connection, one after the other.
    pub errors: usize,
    /// Failed log-ins.
    pub login_failures: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            input_bytes: 16 * 1024,
            output_bytes: 64 * 1024,
            piece_bytes: 64 * 1024,
            login_command_bytes: 8 * 1024,
            command_bytes: 1 << 20,
            message_bytes: 50 << 20,
            entries: 1000,
            result_ranges: 1 << 14,
            mailboxes: 200,
            early_errors: 3,
            errors: 50,
            login_failures: 3,
        }
    }
}

/// How long things may take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTimes {
    /// Until somebody has logged in.
    pub login_ms: u64,
    /// Without a command; not less than 30 minutes (RFC 9051, section 5.4).
    pub idle_ms: u64,
    /// Until a command that has begun is whole, and between pieces of a message.
    pub pause_ms: u64,
    /// Between lines that keep an idle connection alive through routers.
    pub keep_alive_ms: u64,
    /// Between two signs of progress.
    pub progress_ms: u64,
    /// A TLS handshake.
    pub tls_ms: u64,
    /// Until the surroundings have answered a request.
    pub answer_ms: u64,
}

impl Default for ServerTimes {
    fn default() -> Self {
        Self {
            login_ms: 2 * 60_000,
            idle_ms: 31 * 60_000,
            pause_ms: 5 * 60_000,
            keep_alive_ms: 2 * 60_000,
            progress_ms: 10_000,
            tls_ms: 60_000,
            answer_ms: 10 * 60_000,
        }
    }
}

/// What all sessions of a port share.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Who we are, in the greeting.
    pub host: String,
    /// What ID tells after log-in, such as a version; before it there is only the name.
    pub version: String,
    /// Whether there is a certificate for STARTTLS.
    pub has_certificate: bool,
    /// Whether nobody logs in without TLS.
    pub requires_tls: bool,
    /// Whether the other end is this machine: then COMPRESS needs no TLS.
    pub is_local: bool,
    /// Mechanisms by which people may log in, where [`SaslMechanism::offered`] allows them.
    pub mechanisms: Vec<SaslMechanism>,
    /// Whether tokens of a provider can be checked.
    pub has_tokens: bool,
    /// Where clients of OAUTHBEARER find their provider.
    pub discovery_url: Option<String>,
    /// What is hidden at this port.
    pub hidden: CapabilitySet,
    /// Limits.
    pub limits: ServerLimits,
    /// Time limits.
    pub times: ServerTimes,
}

impl ServerOptions {
    /// What is usual.
    #[must_use]
    pub fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            version: String::new(),
            has_certificate: false,
            requires_tls: true,
            is_local: false,
            mechanisms: SaslMechanism::ALL.to_vec(),
            has_tokens: false,
            discovery_url: None,
            hidden: CapabilitySet::hidden_by_default(),
            limits: ServerLimits::default(),
            times: ServerTimes::default(),
        }
    }
}

/// Who is at the other end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Its address; none on a socket of this machine.
    pub address: Option<IpAddr>,
}

/// What is known of a connection with TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encryption {
    /// What SCRAM-SHA-256-PLUS can be bound to.
    pub bindings: ChannelBindings,
}
