//! Greeting, TLS and logging in. Who comes in is the surroundings' to say.

use scrinium_credentials::sasl::{Ending, ExchangeError, PlainMessage, SaslMechanism, ServerExchange, Step};
use scrinium_pop3_wire::{ClientLine, InitialResponse, Mechanism, Response, ResponseCode, client_line};

use crate::request::{Answer, LoginVerdict, Refusal, Request};
use crate::session::{OpenMaildrop, Pending, ServerSession, SessionState};

/// An exchange of SASL, or a name and a password.
pub(crate) struct Login {
    exchange: ServerExchange,
    stage: Stage,
}

enum Stage {
    Running,
    /// The client is to say something once more before it hears that it failed (RFC 7628, section 3.2.3).
    Failing(Refusal),
    /// SCRAM's last message was sent as a challenge.
    Last(String),
}

impl ServerSession {
    pub(crate) fn greeted(&mut self, answer: Answer) {
        match answer {
            Answer::Accepted => {
                self.state = SessionState::Commands;
                let text = format!("{} is ready", self.options.host);
                self.ok(&text);
            }
            Answer::Refused(refusal) => {
                self.refuse(&refusal);
                self.end_silently();
            }
            _ => {
                self.refuse(&Refusal::trouble());
                self.end_silently();
            }
        }
    }

    pub(crate) fn start_tls(&mut self) {
        if self.encryption.is_some() || !self.options.has_certificate {
            return self.error(None, "The connection cannot be encrypted now");
        }
        if !self.rest().is_empty() {
            self.err(None, "Something was sent behind STLS before the connection was encrypted");
            return self.end_silently();
        }
        self.ok("Begin TLS now");
        self.ask(Pending::StartTls, Request::StartTls);
    }

    pub(crate) fn encrypted(&mut self, answer: Answer) {
        match answer {
            Answer::Encrypted(encryption) => {
                self.encryption = Some(encryption);
                self.user = None;
                self.utf8 = false;
                self.drop_input();
            }
            _ => self.end_silently(),
        }
    }

    /// USER. Whether there is such a person is not told.
    pub(crate) fn user(&mut self, name: &str) {
        if !self.mechanisms().contains(&SaslMechanism::Plain) {
            return self.error(None, "Passwords are not taken in the open: encrypt the connection first");
        }
        self.user = Some(name.to_owned());
        self.ok("And the password?");
    }

    pub(crate) fn pass(&mut self, password: &str) {
        let Some(name) = self.user.take() else { return self.error(None, "USER comes first") };
        let message = PlainMessage { act_as: String::new(), name, password: password.to_owned() }.write();
        self.begin_exchange(SaslMechanism::Plain, Some(&message));
    }

    pub(crate) fn authenticate(&mut self, mechanism: &Mechanism, initial: Option<&InitialResponse>) {
        let known = SaslMechanism::parse(mechanism.as_str());
        match known.filter(|known| self.mechanisms().contains(known)) {
            Some(known) => self.begin_exchange(known, initial.map(|initial| initial.0.as_slice())),
            None => self.error(None, "This way to log in is not offered; CAPA shows those that are"),
        }
    }

    fn begin_exchange(&mut self, mechanism: SaslMechanism, initial: Option<&[u8]>) {
        let exchange = ServerExchange::begin(mechanism, self.bindings());
        let mut login = Login { exchange, stage: Stage::Running };
        let step = login.exchange.start(initial);
        self.login_step(login, step);
    }

    fn login_step(&mut self, login: Login, step: Result<Step, ExchangeError>) {
        match step {
            Ok(Step::Challenge(challenge)) => {
                self.challenge(&challenge);
                self.state = SessionState::Login(Box::new(login));
            }
            Ok(Step::Account(name)) => self.ask(Pending::Account(Box::new(login)), Request::Account(name)),
            Ok(Step::Claim(claim)) => self.ask(Pending::LogIn(Box::new(login)), Request::LogIn(claim)),
            Err(ExchangeError::Random(_)) => self.refuse(&Refusal::trouble()),
            // Which part of the proof is wrong is nobody's to know.
            Err(_) => self.failed(&wrong()),
        }
    }

    fn challenge(&mut self, challenge: &[u8]) {
        let text = ClientLine::Response(challenge.to_vec()).encode();
        Response::Challenge(text).write(&mut self.output);
    }

    pub(crate) fn login_line(&mut self, mut login: Login, line: &[u8]) {
        match (client_line(line), login.stage) {
            (_, Stage::Failing(refusal)) => self.failed(&refusal),
            (Ok(ClientLine::Cancel), _) => self.error(None, "The log-in was given up"),
            (Err(_), _) => self.failed(&wrong()),
            (Ok(ClientLine::Response(_)), Stage::Last(person)) => self.admit(person),
            (Ok(ClientLine::Response(response)), Stage::Running) => {
                login.stage = Stage::Running;
                let step = login.exchange.respond(&response);
                self.login_step(login, step);
            }
        }
    }

    pub(crate) fn account_given(&mut self, mut login: Box<Login>, answer: Answer) {
        match answer {
            Answer::Account(account) => {
                let step = login.exchange.give_account(account);
                self.login_step(*login, step);
            }
            _ => self.refuse(&Refusal::trouble()),
        }
    }

    pub(crate) fn login_decided(&mut self, mut login: Box<Login>, answer: Answer) {
        let refusal = match answer {
            Answer::Login(LoginVerdict::Admitted(person)) => {
                return match login.exchange.end(true, None) {
                    Ending::Success(Some(data)) => {
                        self.challenge(&data);
                        login.stage = Stage::Last(person);
                        self.state = SessionState::Login(login);
                    }
                    _ => self.admit(person),
                };
            }
            Answer::Login(LoginVerdict::Wrong) => wrong(),
            Answer::Login(LoginVerdict::TooMany) => {
                let text = "Too many log-ins have failed; try again in a few minutes";
                Refusal::new(Some(ResponseCode::LoginDelay), text)
            }
            Answer::Login(LoginVerdict::Refused(refusal)) | Answer::Refused(refusal) => refusal,
            _ => return self.refuse(&Refusal::trouble()),
        };
        match login.exchange.end(false, self.options.discovery_url.as_deref()) {
            Ending::Failure(Some(data)) => {
                self.challenge(&data);
                login.stage = Stage::Failing(refusal);
                self.state = SessionState::Login(login);
            }
            _ => self.failed(&refusal),
        }
    }

    fn admit(&mut self, person: String) {
        self.ask(Pending::Open, Request::Open(person.clone()));
        self.person = Some(person);
    }

    /// The answer to the log-in comes with the maildrop (RFC 1939, section 4).
    pub(crate) fn opened(&mut self, answer: Answer) {
        match answer {
            Answer::Opened(maildrop) => {
                let count = maildrop.view.exists();
                self.ok(&format!("{count} messages"));
                self.maildrop = Some(OpenMaildrop {
                    count,
                    bytes: maildrop.bytes,
                    view: Some(maildrop.view),
                    marked: scrinium_mailbox::NumberSet::default(),
                    marked_bytes: 0,
                });
            }
            Answer::Refused(refusal) => {
                self.person = None;
                self.refuse(&refusal);
            }
            _ => {
                self.person = None;
                self.refuse(&Refusal::trouble());
            }
        }
    }

    fn failed(&mut self, refusal: &Refusal) {
        self.refuse(refusal);
        self.login_failures += 1;
        if self.login_failures >= self.limits().login_failures {
            self.end_silently();
        }
    }
}

fn wrong() -> Refusal {
    let text = "The name or the password is wrong. Programs may need a password of their own";
    Refusal::new(Some(ResponseCode::Auth), text)
}
