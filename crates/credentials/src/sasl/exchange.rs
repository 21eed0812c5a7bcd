//! The server's side of an exchange, whatever its mechanism.

use crate::names::{LONGEST_PASSWORD, prepare_name};
use crate::sasl::bearer::{bearer_failure, read_oauthbearer, read_xoauth2};
use crate::sasl::plain::PlainMessage;
use crate::sasl::scram::{ScramAccount, ScramProof, ScramServer};
use crate::sasl::{ChannelBindings, ExchangeError, LONGEST_MESSAGE, SaslMechanism};

/// What the server does next.
#[derive(Debug)]
pub enum Step {
    /// Send this challenge, and give the client's response to [`ServerExchange::respond`].
    Challenge(Vec<u8>),
    /// Look the person of this prepared name up, and give [`crate::Gate::scram_account`] to
    /// [`ServerExchange::give_account`], also where there is nobody.
    Account(String),
    /// Ask [`crate::Gate::decide`] about this, and then [`ServerExchange::end`].
    Claim(Claim),
}

/// What a client has said in an exchange.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    /// The name, prepared; `None` where a token alone was shown.
    pub name: Option<String>,
    /// Whom the client wants to act as, where it has said somebody.
    pub act_as: Option<String>,
    /// How it proves who it is.
    pub proof: ClaimedProof,
}

/// A proof as it came in an exchange.
#[derive(PartialEq, Eq)]
pub enum ClaimedProof {
    /// A password or an app password.
    Password(String),
    /// The outcome of SCRAM.
    Scram(ScramProof),
    /// A token, which nobody has verified yet.
    Token(String),
}

/// Passwords and tokens are no log's to show.
impl std::fmt::Debug for ClaimedProof {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Password(_) => formatter.write_str("Password(…)"),
            Self::Scram(proof) => formatter.debug_tuple("Scram").field(proof).finish(),
            Self::Token(_) => formatter.write_str("Token(…)"),
        }
    }
}

/// What is sent when it is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The person comes in. With data, the protocol sends it along with its success, or, where it cannot, as a challenge that the
    /// client answers with nothing (RFC 4422, section 3.6).
    Success(Option<Vec<u8>>),
    /// The log-in failed. With data, it is sent as a last challenge; whatever the client then answers, it hears that log-in
    /// failed.
    Failure(Option<Vec<u8>>),
}

/// An exchange.
#[derive(Debug)]
pub struct ServerExchange {
    mechanism: SaslMechanism,
    state: State,
    /// SCRAM's last word where the person comes in.
    server_final: Option<String>,
}

#[derive(Debug)]
enum State {
    /// Nothing was sent yet.
    Begun,
    /// LOGIN has asked for the name, and then for the password.
    LoginName,
    LoginPassword(String),
    /// SCRAM waits for its first message, for keys, for its last message.
    ScramFirst(ScramServer),
    ScramAccount(ScramServer),
    ScramLast(ScramServer),
    Over,
}

impl ServerExchange {
    /// Begins an exchange on a connection with these bindings.
    #[must_use]
    pub fn begin(mechanism: SaslMechanism, bindings: ChannelBindings) -> Self {
        let state = match mechanism {
            SaslMechanism::ScramSha256 => State::ScramFirst(ScramServer::new(false, bindings)),
            SaslMechanism::ScramSha256Plus => State::ScramFirst(ScramServer::new(true, bindings)),
            _ => State::Begun,
        };
        Self { mechanism, state, server_final: None }
    }

    /// Which mechanism it is.
    #[must_use]
    pub const fn mechanism(&self) -> SaslMechanism {
        self.mechanism
    }

    /// The first step: with the initial response of a client that has sent one, or without.
    ///
    /// # Errors
    /// [`ExchangeError`]
    pub fn start(&mut self, initial: Option<&[u8]>) -> Result<Step, ExchangeError> {
        match (initial, self.mechanism) {
            (Some(response), SaslMechanism::Login) => {
                if !matches!(self.state, State::Begun) {
                    return Err(ExchangeError::Order);
                }
                // An empty one asks for the name as well.
                if response.is_empty() {
                    return self.start(None);
                }
                self.state = State::LoginName;
                self.respond(response)
            }
            (Some(response), _) => self.respond(response),
            // Outlook knows these two words alone.
            (None, SaslMechanism::Login) => {
                if !matches!(self.state, State::Begun) {
                    return Err(ExchangeError::Order);
                }
                self.state = State::LoginName;
                Ok(Step::Challenge(b"Username:".to_vec()))
            }
            // RFC 4422, section 5: a client that goes first is asked by an empty challenge.
            (None, _) => Ok(Step::Challenge(Vec::new())),
        }
    }

    /// Takes a response of the client, decoded from base64.
    ///
    /// # Errors
    /// [`ExchangeError`]; the exchange is over then.
    pub fn respond(&mut self, response: &[u8]) -> Result<Step, ExchangeError> {
        let state = std::mem::replace(&mut self.state, State::Over);
        if response.len() > LONGEST_MESSAGE {
            return Err(ExchangeError::TooLong);
        }
        match state {
            State::Begun => self.only_message(response).map(Step::Claim),
            State::LoginName => {
                let name = text_of(response)?;
                self.state = State::LoginPassword(prepare_name(name).map_err(|_| ExchangeError::Name)?);
                Ok(Step::Challenge(b"Password:".to_vec()))
            }
            State::LoginPassword(name) => {
                let password = text_of(response)?;
                match password.len() {
                    0 => Err(ExchangeError::Malformed),
                    1..=LONGEST_PASSWORD => {
                        let proof = ClaimedProof::Password(password.to_owned());
                        Ok(Step::Claim(Claim { name: Some(name), act_as: None, proof }))
                    }
                    _ => Err(ExchangeError::TooLong),
                }
            }
            State::ScramFirst(mut scram) => {
                let name = scram.first(response)?;
                self.state = State::ScramAccount(scram);
                Ok(Step::Account(name))
            }
            State::ScramLast(mut scram) => {
                let verdict = scram.last(response)?;
                self.server_final = Some(verdict.server_final);
                let act_as = prepared(verdict.act_as)?;
                let proof = ClaimedProof::Scram(verdict.proof);
                Ok(Step::Claim(Claim { name: Some(verdict.name), act_as, proof }))
            }
            State::ScramAccount(_) | State::Over => Err(ExchangeError::Order),
        }
    }

    /// Takes what [`Step::Account`] asked for.
    ///
    /// # Errors
    /// [`ExchangeError::Order`] where nothing was asked for.
    pub fn give_account(&mut self, account: ScramAccount) -> Result<Step, ExchangeError> {
        let State::ScramAccount(mut scram) = std::mem::replace(&mut self.state, State::Over) else {
            return Err(ExchangeError::Order);
        };
        let challenge = scram.account(account)?;
        self.state = State::ScramLast(scram);
        Ok(Step::Challenge(challenge))
    }

    /// What is sent when it is decided whether the person comes in. `discovery_url` is where a client of OAUTHBEARER finds
    /// its provider.
    #[must_use]
    pub fn end(&mut self, is_admitted: bool, discovery_url: Option<&str>) -> Ending {
        self.state = State::Over;
        let server_final = self.server_final.take().map(String::into_bytes);
        match (is_admitted, self.mechanism) {
            (true, _) => Ending::Success(server_final),
            (false, SaslMechanism::OauthBearer) => {
                Ending::Failure(Some(bearer_failure(false, discovery_url)))
            }
            (false, SaslMechanism::Xoauth2) => Ending::Failure(Some(bearer_failure(true, None))),
            // `server-error` (RFC 5802, section 7): a name that nobody has gets the same one.
            (false, SaslMechanism::ScramSha256 | SaslMechanism::ScramSha256Plus)
                if server_final.is_some() =>
            {
                Ending::Failure(Some(b"e=invalid-proof".to_vec()))
            }
            (false, _) => Ending::Failure(None),
        }
    }

    fn only_message(&self, message: &[u8]) -> Result<Claim, ExchangeError> {
        match self.mechanism {
            SaslMechanism::OauthBearer => read_oauthbearer(message),
            SaslMechanism::Xoauth2 => read_xoauth2(message),
            SaslMechanism::Plain => {
                let message = PlainMessage::parse(message)?;
                let name = prepare_name(&message.name).map_err(|_| ExchangeError::Name)?;
                let act_as = if message.act_as.is_empty() { None } else { Some(message.act_as) };
                let proof = ClaimedProof::Password(message.password);
                Ok(Claim { name: Some(name), act_as: prepared(act_as)?, proof })
            }
            _ => Err(ExchangeError::Order),
        }
    }
}

fn prepared(name: Option<String>) -> Result<Option<String>, ExchangeError> {
    name.map(|name| prepare_name(&name)).transpose().map_err(|_| ExchangeError::Name)
}

fn text_of(response: &[u8]) -> Result<&str, ExchangeError> {
    let text = std::str::from_utf8(response).map_err(|_| ExchangeError::Malformed)?;
    // Some clients of LOGIN end what they send with a NUL.
    let text = text.strip_suffix('\0').unwrap_or(text);
    if text.contains('\0') { Err(ExchangeError::Malformed) } else { Ok(text) }
}
