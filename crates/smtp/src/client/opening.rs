//! How a session opens: greeting, STARTTLS, log-in.

use scrinium_credentials::sasl::{ClientExchange, ClientSecret, SaslMechanism};
use scrinium_smtp_wire::{
    Argument, Capabilities, Capability, ClientLine, ClientName, Command, Domain, Greeting, InitialResponse,
    Mechanism, Reply, server_challenge,
};

use crate::client::options::{LoginSecret, Protocol, TlsPolicy};
use crate::client::outcome::{Reason, Said};
use crate::client::session::{ClientSession, Phase, Sent};

impl ClientSession {
    pub(super) fn hello(&mut self, greeting: Greeting) {
        let name = match Domain::parse(self.options.host.as_bytes()) {
            Ok(domain) => ClientName::Domain(domain),
            Err(_) => match Argument::new(&self.options.host) {
                Some(name) => ClientName::Odd(name),
                None => {
                    return self.fail(Said::own(
                        Reason::Protocol,
                        (4, 3, 5),
                        "The name of this host is not valid",
                    ));
                }
            },
        };
        self.write(&Command::Hello(greeting, name), Sent::Hello(greeting));
    }

    pub(super) fn opening_reply(&mut self, sent: Sent, reply: &Reply) {
        match sent {
            Sent::Greeting if reply.code() == 220 => self.greet(),
            Sent::Hello(greeting) if reply.is_success() => {
                self.capabilities = match greeting {
                    Greeting::Helo => Capabilities::default(),
                    Greeting::Ehlo | Greeting::Lhlo => Capabilities::of(reply),
                };
                self.greeted();
            }
            // RFC 5321, section 3.2: a server that does not know EHLO.
            Sent::Hello(Greeting::Ehlo)
                if reply.is_permanent()
                    && self.options.protocol == Protocol::Smtp
                    && self.options.tls != TlsPolicy::Required
                    && self.options.login.is_none() =>
            {
                self.hello(Greeting::Helo);
            }
            Sent::StartTls if reply.code() == 220 => self.phase = Phase::Tls,
            Sent::StartTls if self.options.tls != TlsPolicy::Required => self.log_in(),
            Sent::StartTls => {
                let text = format!("The server refuses to encrypt the connection: {}", reply.text());
                self.fail(Said::own(Reason::NoTls, (4, 7, 4), &text));
            }
            Sent::LogIn => self.login_reply(sent, reply),
            Sent::Cancel => self.login_failed("The log-in was given up"),
            _ => self.fail(Said::by(sent.step(), reply)),
        }
    }

    fn greeted(&mut self) {
        let wants_tls = !self.is_encrypted && self.options.tls != TlsPolicy::Never;
        if wants_tls && self.capabilities.has(&Capability::StartTls) {
            return self.write(&Command::StartTls, Sent::StartTls);
        }
        if !self.is_encrypted && self.options.tls == TlsPolicy::Required {
            let text = "The server does not offer to encrypt the connection, and it must be";
            return self.fail(Said::own(Reason::NoTls, (4, 7, 4), text));
        }
        self.log_in();
    }

    fn log_in(&mut self) {
        let Some(login) = self.options.login.clone() else {
            self.phase = Phase::Idle;
            return;
        };
        let offered: Vec<SaslMechanism> = SaslMechanism::ALL
            .into_iter()
            .filter(|known| self.capabilities.can_authenticate(known.name()))
            .collect();
        let secret = match &login.secret {
            LoginSecret::Password(password) => ClientSecret::Password(password),
            LoginSecret::Token(token) => ClientSecret::Token(token),
        };
        let begun = ClientExchange::begin(&offered, &login.name, secret, self.is_encrypted, &self.bindings);
        let mut exchange = match begun {
            Ok(exchange) => exchange,
            Err(error) => return self.login_failed(&error.to_string()),
        };
        let Ok(mechanism) = Mechanism::parse(exchange.mechanism().name().as_bytes()) else { return };
        let initial = exchange.initial().map(InitialResponse);
        self.exchange = Some(exchange);
        self.write(&Command::Authenticate(mechanism, initial), Sent::LogIn);
    }

    fn login_reply(&mut self, sent: Sent, reply: &Reply) {
        let Some(mut exchange) = self.exchange.take() else { return self.login_failed("There is no log-in") };
        if reply.code() == 334 {
            let text = reply.lines().first().map(String::as_str).unwrap_or_default();
            let response = server_challenge(text.as_bytes())
                .ok()
                .and_then(|challenge| exchange.respond(&challenge).ok());
            let (line, next) = match response {
                Some(response) => (ClientLine::Response(response), Sent::LogIn),
                // RFC 4954, section 4.
                None => (ClientLine::Cancel, Sent::Cancel),
            };
            self.output.extend_from_slice(line.encode().as_bytes());
            self.output.extend_from_slice(b"\r\n");
            self.in_flight.push_back(next);
            self.exchange = Some(exchange);
            return;
        }
        if !reply.is_success() {
            return self.fail(Said { reason: Reason::LogIn, ..Said::by(sent.step(), reply) });
        }
        if !exchange.may_succeed() {
            return self.login_failed("The server did not show that it knows the password");
        }
        self.phase = Phase::Idle;
    }

    fn login_failed(&mut self, text: &str) {
        self.fail(Said::own(Reason::LogIn, (4, 7, 0), text));
    }
}
