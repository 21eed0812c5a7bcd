//! What a server's session needs to know when it begins.

use std::net::IpAddr;

use scrinium_credentials::sasl::{ChannelBindings, SaslMechanism};
use scrinium_smtp_wire::BareEnds;

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Messages from other servers (port 25). Nobody logs in.
    Relay,
    /// Messages from people (ports 465 and 587). Who has not logged in sends nothing.
    Submission,
    /// Messages from a server in front of this one (RFC 2033): an answer for each recipient.
    Lmtp,
}

/// Limits of a connection and of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// What is buffered of input that nobody has looked at. At least 16 KB, so that a log-in fits (RFC 4954, section 4).
    pub input_bytes: usize,
    /// Replies that wait for the client to read them; no further command is read beyond this.
    pub output_bytes: usize,
    /// How much of a text is handed on at a time.
    pub piece_bytes: usize,
    /// A command (RFC 5321, section 4.5.3.1.4, says 512, and extensions add to it).
    pub command_bytes: usize,
    /// A line of a log-in (RFC 4954, section 4).
    pub login_line_bytes: usize,
    /// A message: SIZE.
    pub message_bytes: u64,
    /// A line of a text.
    pub text_line_bytes: usize,
    /// Recipients of a message.
    pub recipients: usize,
    /// All addresses and parameters of a message's envelope.
    pub envelope_bytes: usize,
    /// Messages on one connection.
    pub messages: usize,
    /// Servers that a message has gone through: more is a loop (RFC 5321, section 6.3).
    pub hops: usize,
    /// Refused commands on a connection.
    pub errors: usize,
    /// Recipients that are not there, on a connection.
    pub unknown_recipients: usize,
    /// Commands that bring no message nearer, since the last message.
    pub idle_commands: usize,
    /// Failed log-ins.
    pub login_failures: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            input_bytes: 32 * 1024,
            output_bytes: 16 * 1024,
            piece_bytes: 32 * 1024,
            command_bytes: scrinium_smtp_wire::COMMAND_MAX_BYTES,
            login_line_bytes: 12_288,
            message_bytes: 50 << 20,
            text_line_bytes: 64 * 1024,
            recipients: 1000,
            envelope_bytes: 1 << 20,
            messages: 1000,
            hops: 100,
            errors: 20,
            unknown_recipients: 100,
            idle_commands: 100,
            login_failures: 3,
        }
    }
}

/// How long things may take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTimes {
    /// Until the next command is whole (RFC 5321, section 4.5.3.2.7).
    pub command_ms: u64,
    /// Until somebody has logged in, on a port of submission.
    pub login_ms: u64,
    /// Until more of a text comes.
    pub text_pause_ms: u64,
    /// A whole text, apart from the time for its length.
    pub text_ms: u64,
    /// The slowest text that is taken, in bytes a second: a long one has more time.
    pub text_rate_bytes: u64,
    /// A TLS handshake.
    pub tls_ms: u64,
    /// Until the surroundings have answered a request. A client waits for ten minutes (RFC 5321, section 4.5.3.2.6).
    pub answer_ms: u64,
}

impl Default for ServerTimes {
    fn default() -> Self {
        Self {
            command_ms: 5 * 60_000,
            login_ms: 2 * 60_000,
            text_pause_ms: 3 * 60_000,
            text_ms: 10 * 60_000,
            text_rate_bytes: 1000,
            tls_ms: 60_000,
            answer_ms: 4 * 60_000,
        }
    }
}

/// What all sessions of a port share.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// What the port is for.
    pub service: Service,
    /// Who we are: a domain, as it stands in greetings and `Received` fields.
    pub host: String,
    /// Whether there is a certificate for STARTTLS.
    pub has_certificate: bool,
    /// Whether nothing is taken and nobody logs in without TLS.
    pub requires_tls: bool,
    /// Mechanisms by which people may log in, where [`SaslMechanism::offered`] allows them.
    pub mechanisms: Vec<SaslMechanism>,
    /// Whether tokens of a provider can be checked.
    pub has_tokens: bool,
    /// Where clients of OAUTHBEARER find their provider.
    pub discovery_url: Option<String>,
    /// What becomes of a CR or LF by itself in a text.
    pub bare_ends: BareEnds,
    /// How far ahead a message may wait, in seconds (RFC 4865). Only for submission.
    pub future_release_s: Option<u64>,
    /// Whether addresses of people's computers stay out of `Received` fields.
    pub hides_clients: bool,
    /// Limits.
    pub limits: ServerLimits,
    /// Time limits.
    pub times: ServerTimes,
}

impl ServerOptions {
    /// What is usual for a service.
    #[must_use]
    pub fn new(service: Service, host: &str) -> Self {
        let is_submission = service == Service::Submission;
        let mechanisms = if is_submission { SaslMechanism::ALL.to_vec() } else { Vec::new() };
        Self {
            service,
            host: host.to_owned(),
            has_certificate: false,
            requires_tls: is_submission,
            mechanisms,
            has_tokens: false,
            discovery_url: None,
            bare_ends: BareEnds::Refuse,
            future_release_s: None,
            hides_clients: is_submission,
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
    /// The name that the address has in the DNS, once somebody has looked.
    pub name: Option<String>,
    /// Nobody can listen on the way although nothing is encrypted, as between programs of one machine: people may log in and hand
    /// messages in as over TLS.
    pub is_private: bool,
}

/// What is known of a connection with TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encryption {
    /// The cipher suite's registered name.
    pub cipher: Option<String>,
    /// What SCRAM-SHA-256-PLUS can be bound to.
    pub bindings: ChannelBindings,
}
