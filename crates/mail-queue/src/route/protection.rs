//! How well a connection must be protected, and what happens when it cannot be.

use super::rules::RelayHost;
use crate::outcome::Stage;

/// What an administrator's rule asks of the connections to a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsRule {
    /// TLS where the server offers it, with any certificate.
    #[default]
    Opportunistic,
    /// TLS with any certificate, or no message.
    Required,
    /// TLS with a certificate for the host, or no message.
    Verified,
    /// No TLS: for a server whose TLS is broken, and on one's own wires.
    Off,
}

/// The mode of a policy (RFC 8461, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum StsMode {
    Enforce,
    Testing,
    None,
}

/// A domain's policy for those who send to it (MTA-STS, RFC 8461).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StsPolicy {
    /// Its mode.
    pub mode: StsMode,
    /// Its hosts: names, and `*.` with a name.
    pub hosts: Vec<String>,
}

impl StsPolicy {
    /// Whether it names this host: `*.` stands for exactly one label (RFC 8461, section 4.1).
    #[must_use]
    pub fn allows(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        self.hosts.iter().any(|pattern| match pattern.strip_prefix("*.") {
            Some(parent) => host.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent)),
            None => pattern.eq_ignore_ascii_case(host),
        })
    }
}

/// A name and a password for a relay host. The password is the caller's to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Who.
    pub name: String,
    /// Under which name the password is kept.
    pub secret: String,
}

/// What a connection must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// No TLS.
    Plain,
    /// TLS if the server has it, whatever its certificate.
    Opportunistic,
    /// TLS, whatever the certificate.
    Encrypted,
    /// TLS, and a certificate for the host that a known authority signed.
    Verified,
}

/// What decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProtectionInputs<'a> {
    /// The administrator's rule.
    pub rule: TlsRule,
    /// The relay host, if the destination is one.
    pub relay: Option<&'a RelayHost>,
    /// The domain's policy, if it has one that is still valid.
    pub policy: Option<&'a StsPolicy>,
    /// The message has REQUIRETLS (RFC 8689).
    pub require_tls: bool,
    /// The message has the header `TLS-Required: no` (RFC 8689, section 5), which is not for policies of our own.
    pub tls_optional: bool,
}

/// How the connection to a host is to be protected; `None` if the domain's policy does not allow this host.
#[must_use]
pub fn choose_protection(inputs: &ProtectionInputs<'_>, host: &str) -> Option<Protection> {
    let of_rule = match inputs.rule {
        TlsRule::Off => Protection::Plain,
        TlsRule::Opportunistic => Protection::Opportunistic,
        TlsRule::Required => Protection::Encrypted,
        TlsRule::Verified => Protection::Verified,
    };
    // A password goes to nobody whose name is not proved.
    if let Some(relay) = inputs.relay {
        let of_relay = match &relay.login {
            Some(_) if !relay.allow_plain_login => Protection::Verified,
            _ => Protection::Plain,
        };
        let of_message = if inputs.require_tls { Protection::Verified } else { Protection::Plain };
        return Some(stronger(stronger(of_rule, of_relay), of_message));
    }
    if inputs.require_tls {
        return Some(Protection::Verified);
    }
    let Some(policy) = inputs.policy.filter(|policy| policy.mode == StsMode::Enforce) else {
        return Some(of_rule);
    };
    if inputs.tls_optional || inputs.rule == TlsRule::Off {
        return Some(of_rule);
    }
    policy.allows(host).then(|| stronger(of_rule, Protection::Verified))
}

fn stronger(one: Protection, other: Protection) -> Protection {
    let strength = |protection| match protection {
        Protection::Plain => 0,
        Protection::Opportunistic => 1,
        Protection::Encrypted => 2,
        Protection::Verified => 3,
    };
    if strength(other) > strength(one) { other } else { one }
}

/// What a round does after TLS could not be had from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The same host without TLS, on a new connection.
    Plain,
    /// The next host.
    NextHost,
}

/// What follows when STARTTLS or the handshake failed. Only where TLS is a favour is there a way without it.
#[must_use]
pub fn after_tls_trouble(protection: Protection, stage: Stage) -> Fallback {
    if protection == Protection::Opportunistic && stage == Stage::StartTls {
        Fallback::Plain
    } else {
        Fallback::NextHost
    }
}
