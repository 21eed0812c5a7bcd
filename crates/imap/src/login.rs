//! Greeting, TLS and logging in. Who comes in is the surroundings' to say.

use scrinium_credentials::sasl::{
    Ending as ExchangeEnding, ExchangeError, PlainMessage, SaslMechanism, ServerExchange, Step,
};
use scrinium_imap_wire::{ClientLine, InitialResponse, Mechanism, Status, client_line};

use crate::capability::CapabilitySet;
use crate::request::{Answer, LoginVerdict, Refusal, Request};
use crate::session::{ServerSession, SessionState, word};
use crate::task::{Ending, EndingCode, Flow, Task};

/// An exchange of SASL.
pub(crate) struct Login {
    exchange: ServerExchange,
    stage: LoginStage,
}

enum LoginStage {
    Running,
    /// The client is to say something once more before it hears that it failed (RFC 7628, section 3.2.3).
    Failing(Ending),
    /// SCRAM's last message was sent as a challenge; the client says that it has seen it.
    Last(String, CapabilitySet),
}

impl ServerSession {
    pub(crate) fn greeted(&mut self, answer: Answer) -> Flow {
        match answer {
            Answer::Accepted => {
                self.state = SessionState::Commands;
                let text = format!("{} is ready", self.options.host);
                let code = scrinium_imap_wire::ResponseCode::Capability(self.capability_words());
                self.say_status(Status::Ok, Some(code), &text);
            }
            Answer::Refused(refusal) => self.bye(refusal.code, &refusal.text),
            _ => self.bye(word("UNAVAILABLE"), "The server cannot serve now; try again later"),
        }
        Flow::Rest
    }

    pub(crate) fn start_tls(&mut self) -> Flow {
        if self.encryption.is_some() {
            return Ending::bad("The connection is encrypted already").into();
        }
        if !self.options.has_certificate || self.output.is_compressed() {
            return Ending::bad("The connection cannot be encrypted here").into();
        }
        if !self.rest().is_empty() {
            // RFC 9051, section 6.2.1: nothing that was said in the open may be taken for what is said encrypted.
            self.bye(None, "Something was sent behind STARTTLS before the connection was encrypted");
            return Flow::Rest;
        }
        self.finish_command(&Ending::ok("Begin TLS now"));
        Flow::Ask(Request::StartTls, Task::StartTls)
    }

    pub(crate) fn encrypted(&mut self, answer: Answer) -> Flow {
        match answer {
            Answer::Encrypted(encryption) => {
                self.encryption = Some(encryption);
                self.hidden = CapabilitySet::NONE;
                self.drop_input();
            }
            _ => self.end_silently(),
        }
        Flow::Rest
    }

    /// LOGIN (RFC 9051, section 6.2.3).
    pub(crate) fn log_in(&mut self, name: String, password: &[u8]) -> Flow {
        if !self.mechanisms().contains(&SaslMechanism::Plain) {
            let text = "Passwords are not taken in the open: encrypt the connection first";
            return Ending::no(word("PRIVACYREQUIRED"), text).into();
        }
        let Ok(password) = String::from_utf8(password.to_vec()) else {
            return self.failed(wrong());
        };
        let message = PlainMessage { act_as: String::new(), name, password }.write();
        self.begin_exchange(SaslMechanism::Plain, Some(&message))
    }

    pub(crate) fn authenticate(&mut self, mechanism: &Mechanism, initial: Option<&InitialResponse>) -> Flow {
        let known = SaslMechanism::parse(mechanism.as_str());
        let Some(known) = known.filter(|known| self.mechanisms().contains(known)) else {
            let is_ours = known.is_some_and(|known| self.options.mechanisms.contains(&known));
            if is_ours && self.encryption.is_none() {
                return Ending::no(word("PRIVACYREQUIRED"), "Encrypt the connection before you log in so")
                    .into();
            }
            return Ending::no(word("CANNOT"), "This way to log in is not offered").into();
        };
        self.begin_exchange(known, initial.map(|initial| initial.0.as_slice()))
    }

    fn begin_exchange(&mut self, mechanism: SaslMechanism, initial: Option<&[u8]>) -> Flow {
        let exchange = ServerExchange::begin(mechanism, self.bindings());
        let mut login = Login { exchange, stage: LoginStage::Running };
        let step = login.exchange.start(initial);
        self.login_step(login, step)
    }

    fn login_step(&mut self, login: Login, step: Result<Step, ExchangeError>) -> Flow {
        match step {
            Ok(Step::Challenge(challenge)) => {
                self.challenge(&challenge);
                self.state = SessionState::Login(Box::new(login));
                Flow::Rest
            }
            Ok(Step::Account(name)) => Flow::Ask(Request::Account(name), Task::Account(Box::new(login))),
            Ok(Step::Claim(claim)) => Flow::Ask(Request::LogIn(claim), Task::LogIn(Box::new(login))),
            Err(ExchangeError::Random(_)) => Ending::refused(Refusal::trouble()).into(),
            Err(error @ (ExchangeError::TooLong | ExchangeError::Malformed | ExchangeError::Order)) => {
                self.failed(Ending::bad(&format!("The log-in is not valid: {error}")))
            }
            // Which part of the proof is wrong is nobody's to know.
            Err(_) => self.failed(wrong()),
        }
    }

    fn challenge(&mut self, challenge: &[u8]) {
        let text = ClientLine::Response(challenge.to_vec()).encode();
        self.say_go_on(&text);
    }

    /// A line of the client's in an exchange.
    pub(crate) fn login_line(&mut self, mut login: Login, line: &[u8]) -> Flow {
        match (client_line(line), login.stage) {
            // Whatever it says: it has failed.
            (_, LoginStage::Failing(ending)) => self.failed(ending),
            // RFC 9051, section 6.2.2.
            (Ok(ClientLine::Cancel), _) => Ending::bad("The log-in was given up").into(),
            (Err(_), _) => self.failed(Ending::bad("The line is not base64")),
            (Ok(ClientLine::Response(_)), LoginStage::Last(person, hidden)) => self.admit(person, hidden),
            (Ok(ClientLine::Response(response)), LoginStage::Running) => {
                login.stage = LoginStage::Running;
                let step = login.exchange.respond(&response);
                self.login_step(login, step)
            }
        }
    }

    pub(crate) fn account_given(&mut self, mut login: Box<Login>, answer: Answer) -> Flow {
        match answer {
            Answer::Account(account) => {
                let step = login.exchange.give_account(account);
                self.login_step(*login, step)
            }
            answer => self.failed(Ending::of_answer(answer)),
        }
    }

    pub(crate) fn login_decided(&mut self, mut login: Box<Login>, answer: Answer) -> Flow {
        let failed = match answer {
            Answer::Login(LoginVerdict::Admitted(person, hidden)) => {
                return match login.exchange.end(true, None) {
                    // IMAP has no success with data (RFC 4422, section 3.6).
                    ExchangeEnding::Success(Some(data)) => {
                        self.challenge(&data);
                        login.stage = LoginStage::Last(person, hidden);
                        self.state = SessionState::Login(login);
                        Flow::Rest
                    }
                    _ => self.admit(person, hidden),
                };
            }
            Answer::Login(LoginVerdict::Wrong) => wrong(),
            Answer::Login(LoginVerdict::TooMany) => {
                Ending::no(word("LIMIT"), "Too many log-ins have failed; try again in a few minutes")
            }
            Answer::Login(LoginVerdict::Refused(refusal)) => Ending::refused(refusal),
            answer => return Ending::of_answer(answer).into(),
        };
        match login.exchange.end(false, self.options.discovery_url.as_deref()) {
            ExchangeEnding::Failure(Some(data)) => {
                self.challenge(&data);
                login.stage = LoginStage::Failing(failed);
                self.state = SessionState::Login(login);
                Flow::Rest
            }
            _ => self.failed(failed),
        }
    }

    fn admit(&mut self, person: String, hidden: CapabilitySet) -> Flow {
        self.person = Some(person);
        self.hidden_from_person(hidden);
        self.counts.login_failures = 0;
        self.raise_limits();
        Ending::ok("Welcome").with_code(EndingCode::Capabilities).into()
    }

    fn failed(&mut self, ending: Ending) -> Flow {
        self.counts.login_failures += 1;
        if self.counts.login_failures < self.limits().login_failures {
            return ending.into();
        }
        self.finish_command(&ending);
        self.bye(None, "Too many log-ins have failed");
        Flow::Rest
    }

    pub(crate) fn identified(&mut self, answer: &Answer) -> Flow {
        if let Answer::Hide(hidden) = answer {
            self.hidden_from_person(*hidden);
        }
        // Nobody who has not logged in hears what to attack.
        let mut fields = vec![("name".to_owned(), Some("Scrinium".to_owned()))];
        if self.person.is_some() && !self.options.version.is_empty() {
            fields.push(("version".to_owned(), Some(self.options.version.clone())));
        }
        self.say(&scrinium_imap_wire::Response::Id(fields));
        Ending::ok("Pleased to meet you").into()
    }
}

fn wrong() -> Ending {
    let text = "The name or the password is wrong. Programs may need a password of their own";
    Ending::no(word("AUTHENTICATIONFAILED"), text)
}
