//! Logging in (RFC 4954): how the messages of SASL go over the wire. Who comes in is the surroundings' to say.

use scrinium_credentials::sasl::{Ending, ExchangeError, SaslMechanism, ServerExchange, Step};
use scrinium_smtp_wire::{ClientLine, InitialResponse, Mechanism, Reply, client_line};

use crate::server::request::{LoginVerdict, Request};
use crate::server::session::{Pending, ServerSession, SessionState, reply};

impl ServerSession {
    pub(super) fn authenticate(&mut self, mechanism: &Mechanism, response: Option<&InitialResponse>) {
        if let Some(reply) = self.no_login_now(mechanism) {
            return self.error(&reply);
        }
        let Some(known) = SaslMechanism::parse(mechanism.as_str()) else { return };
        let mut exchange = Box::new(ServerExchange::begin(known, self.bindings()));
        let step = exchange.start(response.map(|response| response.0.as_slice()));
        self.login_step(exchange, step);
    }

    fn no_login_now(&self, mechanism: &Mechanism) -> Option<Reply> {
        if self.options.mechanisms.is_empty() {
            return Some(reply(
                502,
                (5, 5, 1),
                "Nobody logs in here; use the port for submission, 465 or 587",
            ));
        }
        if self.hello.is_none() {
            return Some(reply(503, (5, 5, 1), "Greet with EHLO first"));
        }
        if self.person.is_some() {
            // RFC 4954, section 4.
            return Some(reply(503, (5, 5, 1), "You have logged in already"));
        }
        if self.transaction.is_some() {
            return Some(reply(503, (5, 5, 1), "A message has begun; send RSET first"));
        }
        let known = SaslMechanism::parse(mechanism.as_str());
        let offered = self.mechanisms();
        if known.is_some_and(|known| offered.contains(&known)) {
            return None;
        }
        let is_open = !self.is_protected();
        let is_ours = known.is_some_and(|known| self.options.mechanisms.contains(&known));
        if is_open && is_ours && (self.options.requires_tls || known.is_some_and(SaslMechanism::shows_secret))
        {
            return Some(reply(538, (5, 7, 11), "Encrypt the connection with STARTTLS before you log in so"));
        }
        Some(reply(504, (5, 5, 4), "This way to log in is not offered; EHLO shows those that are"))
    }

    fn login_step(&mut self, exchange: Box<ServerExchange>, step: Result<Step, ExchangeError>) {
        match step {
            Ok(Step::Challenge(challenge)) => {
                self.challenge(&challenge);
                self.state = SessionState::Login(exchange);
            }
            Ok(Step::Account(name)) => {
                self.state = SessionState::Commands;
                self.ask(Pending::Account(exchange), Request::Account(name));
            }
            Ok(Step::Claim(claim)) => {
                self.state = SessionState::Commands;
                self.ask(Pending::LogIn(exchange), Request::LogIn(claim));
            }
            Err(ExchangeError::Random(_)) => {
                self.state = SessionState::Commands;
                self.say(&reply(454, (4, 7, 0), "Nobody can log in now; try again later"));
            }
            Err(error) => {
                self.state = SessionState::Commands;
                let reply = match error {
                    ExchangeError::TooLong => reply(500, (5, 5, 6), &error.to_string()),
                    ExchangeError::Malformed | ExchangeError::Order => {
                        reply(501, (5, 5, 2), &error.to_string())
                    }
                    // Which part of the proof is wrong is nobody's to know.
                    _ => wrong(),
                };
                self.login_failed(&reply);
            }
        }
    }

    fn challenge(&mut self, challenge: &[u8]) {
        let text = ClientLine::Response(challenge.to_vec()).encode();
        self.say_line(&format!("334 {text}"));
    }

    /// A line of the client's in an exchange.
    pub(super) fn login_line(&mut self, line: &[u8]) {
        let state = std::mem::replace(&mut self.state, SessionState::Commands);
        if line.len() > self.limits().login_line_bytes {
            return self.login_failed(&reply(500, (5, 5, 6), "The line is too long for a log-in"));
        }
        let response = match (client_line(line), state) {
            // Whatever it says: it has failed.
            (_, SessionState::LoginFailing(reply)) => return self.login_failed(&reply),
            (Ok(ClientLine::Cancel), _) => {
                // RFC 4954, section 4.
                return self.error(&reply(501, (5, 7, 0), "The log-in was given up"));
            }
            (Err(error), _) => return self.login_failed(&reply(501, (5, 5, 2), &error.to_string())),
            (Ok(ClientLine::Response(_)), SessionState::LoginEnding(person)) => return self.admit(person),
            (Ok(ClientLine::Response(response)), SessionState::Login(exchange)) => (response, exchange),
            (Ok(ClientLine::Response(_)), _) => return,
        };
        let (response, mut exchange) = response;
        let step = exchange.respond(&response);
        self.login_step(exchange, step);
    }

    pub(super) fn account_given(&mut self, mut exchange: Box<ServerExchange>, answer: crate::Answer) {
        match answer {
            crate::Answer::Account(account) => {
                let step = exchange.give_account(account);
                self.login_step(exchange, step);
            }
            crate::Answer::Refused(refusal) => self.login_failed(&refusal.reply()),
            _ => self.say(&reply(454, (4, 7, 0), "Nobody can log in now; try again later")),
        }
    }

    pub(super) fn login_decided(&mut self, mut exchange: Box<ServerExchange>, answer: crate::Answer) {
        let refused = match answer {
            crate::Answer::Login(LoginVerdict::Admitted(person)) => {
                return match exchange.end(true, None) {
                    // SMTP has no success with data (RFC 4422, section 3.6).
                    Ending::Success(Some(data)) => {
                        self.challenge(&data);
                        self.state = SessionState::LoginEnding(person);
                    }
                    _ => self.admit(person),
                };
            }
            crate::Answer::Login(LoginVerdict::Wrong) => wrong(),
            crate::Answer::Login(LoginVerdict::TooMany) => {
                reply(454, (4, 7, 0), "Too many log-ins have failed; try again in a few minutes")
            }
            crate::Answer::Login(LoginVerdict::Refused(refusal)) | crate::Answer::Refused(refusal) => {
                refusal.reply()
            }
            _ => return self.say(&reply(454, (4, 7, 0), "Nobody can log in now; try again later")),
        };
        match exchange.end(false, self.options.discovery_url.as_deref()) {
            Ending::Failure(Some(data)) => {
                self.challenge(&data);
                self.state = SessionState::LoginFailing(refused);
            }
            _ => self.login_failed(&refused),
        }
    }

    fn admit(&mut self, person: String) {
        self.person = Some(person);
        self.counts.login_failures = 0;
        self.say(&reply(235, (2, 7, 0), "Welcome"));
    }

    fn login_failed(&mut self, failed: &Reply) {
        self.counts.login_failures = self.counts.login_failures.saturating_add(1);
        if self.counts.login_failures < self.limits().login_failures {
            return self.error(failed);
        }
        self.say(failed);
        self.close(&reply(421, (4, 7, 0), "Too many log-ins have failed; the connection is closed"));
    }
}

fn wrong() -> Reply {
    reply(535, (5, 7, 8), "The name or the password is wrong. Programs may need a password of their own")
}
