//! Logging in by an exchange of SASL, for ports whose protocol has it: mail and LDAP. The port decodes what the client sends,
//! gives it to a [`SaslLogin`], and sends what each [`SaslReply`] says.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use scrinium_credentials::sasl::{
    ChannelBindings, Claim, ClaimedProof, Ending, ExchangeError, SaslMechanism, ScramAccount, ServerExchange,
    Step,
};
use scrinium_credentials::token::{TokenError, VerifiedToken};
use scrinium_credentials::{Candidate, Proof, Protection, Protocol};
use thiserror::Error;

use crate::{Approach, Login, LoginError, Logins, Person};

/// A token that is being verified.
pub type TokenVerification<'a> = Pin<Box<dyn Future<Output = Result<VerifiedToken, TokenError>> + Send + 'a>>;

/// Knows the providers whose access tokens let people in.
pub trait TokenVerifier: Send + Sync {
    /// Verifies an access token of one of them. It may have to fetch keys, for a bounded time.
    fn verify<'a>(&'a self, token: &'a str) -> TokenVerification<'a>;

    /// Where a client finds its provider, for one whose token was refused.
    fn discovery_url(&self) -> Option<&str> {
        None
    }
}

/// What an exchange goes on over.
#[derive(Clone, Debug)]
pub struct SaslConnection {
    /// By what, and from where, the client comes.
    pub approach: Approach,
    /// What the exchange can be bound to.
    pub bindings: ChannelBindings,
}

/// What the port sends.
#[derive(Debug)]
pub enum SaslReply {
    /// A challenge; the client's response is for [`SaslLogin::respond`].
    Challenge(Vec<u8>),
    /// The person was let in. `data` goes along with the success, or, where the protocol cannot do that, as a challenge that the
    /// client answers with nothing (RFC 4422, section 3.6).
    Accepted {
        /// Who was let in.
        login: Login,
        /// What goes along.
        data: Option<Vec<u8>>,
    },
    /// Nobody was let in. `data` is a last challenge, whatever is answered to it.
    Refused {
        /// Why.
        error: SaslError,
        /// What is sent first.
        data: Option<Vec<u8>>,
    },
}

/// Why nobody was let in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SaslError {
    /// The proof does not let anybody in.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The exchange does not follow its mechanism.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
}

/// An exchange that is under way.
pub struct SaslLogin<'l> {
    logins: &'l Logins,
    tokens: Option<&'l dyn TokenVerifier>,
    approach: Approach,
    exchange: ServerExchange,
}

impl Logins {
    /// What a port offers over a connection: nothing that shows a secret where somebody can listen, and no tokens where no
    /// provider is known.
    #[must_use]
    pub fn mechanisms(&self, connection: &SaslConnection, has_tokens: bool) -> Vec<SaslMechanism> {
        let is_protected = connection.approach.protection == Protection::Protected;
        let mut offered = SaslMechanism::offered(is_protected, &connection.bindings, has_tokens);
        if self.credentials().gate().scram_iterations().is_none() {
            offered.retain(|mechanism| {
                !matches!(mechanism, SaslMechanism::ScramSha256 | SaslMechanism::ScramSha256Plus)
            });
        }
        offered
    }

    /// Begins an exchange. `tokens` knows the providers, if there are any.
    #[must_use]
    pub fn begin_sasl<'l>(
        &'l self,
        mechanism: SaslMechanism,
        connection: SaslConnection,
        tokens: Option<&'l dyn TokenVerifier>,
    ) -> SaslLogin<'l> {
        let SaslConnection { approach, bindings } = connection;
        SaslLogin { logins: self, tokens, approach, exchange: ServerExchange::begin(mechanism, bindings) }
    }

    /// What SCRAM needs of a prepared name, for a protocol that goes through the exchange itself: something also where nobody has
    /// that name.
    #[must_use]
    pub fn scram_account(&self, name: &str, protocol: Protocol) -> ScramAccount {
        let credentials = self.credentials();
        let person = credentials.person(name);
        let candidate = person.as_ref().map(|person| Candidate {
            id: &person.id,
            names: &[],
            credentials: &person.credentials,
            standing: person.account,
        });
        let now_ms = credentials.clock().now_ms();
        credentials.gate().scram_account(name, candidate.as_ref(), protocol, now_ms)
    }

    /// The person of what a client has claimed in an exchange. `tokens` knows the providers, if there are any. Waiting holds no
    /// thread.
    ///
    /// # Errors
    /// [`LoginError`]
    pub async fn prove_claim(
        &self,
        claim: &Claim,
        tokens: Option<&dyn TokenVerifier>,
        approach: &Approach,
    ) -> Result<Login, LoginError> {
        let (name, act_as) = (claim.name.as_deref(), claim.act_as.as_deref());
        match (&claim.proof, name) {
            (ClaimedProof::Password(password), Some(name)) => {
                let recalled = match act_as {
                    None => self.recall(name, password, approach),
                    Some(_) => None,
                };
                match recalled {
                    Some(login) => Ok(login),
                    None => self.prove(name, act_as, Proof::Password(password), approach).await,
                }
            }
            (ClaimedProof::Scram(proof), Some(name)) => {
                self.prove(name, act_as, Proof::Scram(proof), approach).await
            }
            (ClaimedProof::Token(token), name) => {
                let Some(tokens) = tokens else { return Err(LoginError::Refused) };
                match tokens.verify(token).await {
                    Ok(token) => self.with_token(&token, name, approach).await,
                    Err(error) => {
                        tracing::info!(address = %approach.address, %error, "a token was refused");
                        Err(LoginError::Refused)
                    }
                }
            }
            (_, None) => Err(LoginError::Refused),
        }
    }

    /// The person of a log-in as they are now, for a connection that lasts: `None` once they have another password or other roles,
    /// may not use the protocol any more, or the app password that let them in does not hold.
    #[must_use]
    pub fn still_in(&self, login: &Login, protocol: Protocol) -> Option<Arc<Person>> {
        let credentials = self.credentials();
        let person = credentials.records().person(&login.person.id)?;
        let now_ms = credentials.clock().now_ms();
        let account = &person.account;
        let may_come = !account.is_disabled
            && account.expires_ms.is_none_or(|end_ms| now_ms < end_ms)
            && account.protocols.has(protocol)
            && person.standing() == login.person.standing();
        let holds = login.app_password.as_deref().is_none_or(|id| {
            let stored = person.credentials.app_password(id);
            stored.is_some_and(|stored| stored.is_valid(now_ms) && stored.is_for(protocol, now_ms))
        });
        (may_come && holds).then_some(person)
    }

    /// The person of a token that was verified. `name` is who the client says that it is, if it has said so.
    ///
    /// # Errors
    /// [`LoginError`]
    pub async fn with_token(
        &self,
        token: &VerifiedToken,
        name: Option<&str>,
        approach: &Approach,
    ) -> Result<Login, LoginError> {
        let linked = || {
            let person = self.credentials().linked_person(token.issuer(), token.subject())?;
            Some(person.short_name.clone())
        };
        let name = name.map(str::to_owned).or_else(linked).or_else(|| token.name().map(str::to_owned));
        let name = name.unwrap_or_else(|| token.subject().to_owned());
        self.prove(&name, None, Proof::Token(token), approach).await
    }
}

impl SaslLogin<'_> {
    /// The first step, with the initial response of a client that has sent one.
    pub async fn start(&mut self, initial: Option<&[u8]>) -> SaslReply {
        let step = self.exchange.start(initial);
        self.go_on(step).await
    }

    /// Takes a response of the client, decoded.
    pub async fn respond(&mut self, response: &[u8]) -> SaslReply {
        let step = self.exchange.respond(response);
        self.go_on(step).await
    }

    async fn go_on(&mut self, step: Result<Step, ExchangeError>) -> SaslReply {
        let step = match step {
            Ok(Step::Account(name)) => self.give_account(&name),
            other => other,
        };
        match step {
            Ok(Step::Challenge(challenge)) => SaslReply::Challenge(challenge),
            Ok(Step::Claim(claim)) => {
                let login = self.logins.prove_claim(&claim, self.tokens, &self.approach).await;
                self.end(login)
            }
            // It asks for the account of a name once.
            Ok(Step::Account(_)) => SaslReply::Refused { error: ExchangeError::Order.into(), data: None },
            Err(error) => SaslReply::Refused { error: error.into(), data: None },
        }
    }

    fn give_account(&mut self, name: &str) -> Result<Step, ExchangeError> {
        let account = self.logins.scram_account(name, self.approach.protocol);
        self.exchange.give_account(account)
    }

    fn end(&mut self, login: Result<Login, LoginError>) -> SaslReply {
        let discovery = self.tokens.and_then(TokenVerifier::discovery_url);
        match (self.exchange.end(login.is_ok(), discovery), login) {
            (Ending::Success(data), Ok(login)) => SaslReply::Accepted { login, data },
            (Ending::Failure(data) | Ending::Success(data), Err(error)) => {
                SaslReply::Refused { error: error.into(), data }
            }
            (Ending::Failure(data), Ok(_)) => SaslReply::Refused { error: LoginError::Refused.into(), data },
        }
    }
}
