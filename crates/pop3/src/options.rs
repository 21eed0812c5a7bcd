//! What a session needs to know when it begins.

use std::net::IpAddr;

use scrinium_credentials::sasl::{ChannelBindings, SaslMechanism};

/// Limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// What is buffered of input that nobody has looked at.
    pub input_bytes: usize,
    /// Output that waits for the client.
    pub output_bytes: usize,
    /// A piece of a message.
    pub piece_bytes: u64,
    /// Messages of one answer.
    pub entries: u32,
    /// Ranges of messages that are marked: beyond it a message is not marked.
    pub marked_ranges: usize,
    /// Refused commands on a connection.
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
            entries: 1000,
            marked_ranges: 1 << 14,
            errors: 20,
            login_failures: 3,
        }
    }
}

/// How long things may take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTimes {
    /// Until somebody has logged in.
    pub login_ms: u64,
    /// Without a command; not less than 10 minutes (RFC 1939, section 3).
    pub idle_ms: u64,
    /// A TLS handshake.
    pub tls_ms: u64,
    /// Until the surroundings have answered a request.
    pub answer_ms: u64,
}

impl Default for ServerTimes {
    fn default() -> Self {
        Self { login_ms: 2 * 60_000, idle_ms: 11 * 60_000, tls_ms: 60_000, answer_ms: 5 * 60_000 }
    }
}

/// What all sessions of a port share.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Who we are, in the greeting.
    pub host: String,
    /// Whether there is a certificate for STLS.
    pub has_certificate: bool,
    /// Whether nobody logs in without TLS.
    pub requires_tls: bool,
    /// Mechanisms by which people may log in, where [`SaslMechanism::offered`] allows them.
    pub mechanisms: Vec<SaslMechanism>,
    /// Whether tokens of a provider can be checked.
    pub has_tokens: bool,
    /// Where clients of OAUTHBEARER find their provider.
    pub discovery_url: Option<String>,
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
            has_certificate: false,
            requires_tls: true,
            mechanisms: SaslMechanism::ALL.to_vec(),
            has_tokens: false,
            discovery_url: None,
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
