//! What this crate asks of the rest of the server: who somebody is, and how the server is run.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
pub use scrinium_database::Identity;
use serde_json::Value;

use crate::audit::AuditAction;

/// A session's secret as the `AuthSession` cookie carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionToken {
    /// Letters, digits, `-`, `_`, `.` and `~` only.
    pub token: String,
    /// How long the browser shall keep it.
    pub max_age_seconds: u64,
}

/// A session that is still good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Whose session it is.
    pub identity: Identity,
    /// A newer token, where the one shown will soon be too old.
    pub renewed: Option<SessionToken>,
}

/// What became of a person or a group.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonChange {
    /// What it is.
    pub action: AuditAction,
    /// The document's id.
    pub id: String,
    /// What it was and is, as far as it is no secret.
    pub details: Option<Value>,
}

/// Why somebody could not log in.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum LoginRefusal {
    /// Unknown name or wrong password; which of both is never told.
    #[error("Name or password is incorrect.")]
    Wrong,
    /// Too many attempts with this name came from the same network.
    #[error("Account is temporarily locked due to multiple authentication failures")]
    Locked {
        /// For so much longer.
        retry_after: Duration,
    },
    /// The first proof is right, and a second one is needed.
    #[error("The account has two-step sign-in: a second step is needed.")]
    SecondStep(SecondStep),
    /// The proof is right and not enough, or cannot be used here; a sentence for the person says why.
    #[error("{0}")]
    Denied(String),
    /// The provider that would know does not answer, or too many are asking it.
    #[error("The provider of sign-ins does not answer; try again in a minute.")]
    Away {
        /// When to try again.
        retry_after: Duration,
    },
    /// Too many log-ins are being checked.
    #[error("Too many logins are being checked; try again in a moment.")]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
}

/// What comes next for somebody whose first proof was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondStep {
    /// What the client shows again with the second proof. It is sealed, and opens nothing by itself.
    pub step: String,
    /// What can be shown: `code`, `passkey`, or `set_up` where the person has nothing yet.
    pub by: Vec<&'static str>,
}

/// What somebody shows who begins a session.
#[derive(Clone, Copy)]
pub enum SignIn<'a> {
    /// A name and a password, or an app password.
    Password {
        /// The name.
        name: &'a str,
        /// The password.
        password: &'a str,
    },
    /// After a first step: a code of an authenticator, or a recovery code.
    Code {
        /// [`SecondStep::step`].
        step: &'a str,
        /// The code.
        code: &'a str,
    },
    /// A passkey, alone or after a first step.
    Passkey {
        /// [`SecondStep::step`], if there was a first step.
        step: Option<&'a str>,
        /// The challenge that was given for this log-in.
        challenge: &'a str,
        /// What the browser gave, as JSON.
        response: &'a [u8],
    },
}

/// Whom a proxy names.
#[derive(Clone, Copy)]
pub struct ProxiedName<'a> {
    /// The name.
    pub name: &'a str,
    /// Roles with commas in between.
    pub roles: &'a str,
    /// The HMAC of the name, in hexadecimal.
    pub token: &'a str,
}

/// A sign-in at a provider that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSignIn {
    /// Where the browser is sent.
    pub url: String,
    /// What it shows again when it comes back. It is sealed.
    pub sealed: String,
}

/// Somebody who comes back from a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderReturn {
    /// Who it is.
    pub identity: Identity,
    /// Where they wanted to go: a path of this server.
    pub next: String,
}

/// A sign-in at a provider that is being begun.
pub type ProviderBeginning<'a> =
    Pin<Box<dyn Future<Output = Result<ProviderSignIn, LoginRefusal>> + Send + 'a>>;

/// A sign-in at a provider that is being ended.
pub type ProviderEnding<'a> = Pin<Box<dyn Future<Output = Result<ProviderReturn, LoginRefusal>> + Send + 'a>>;

/// Whose credentials it is about, and who asks.
#[derive(Clone, Copy)]
pub enum CredentialsOf<'a> {
    /// The person's own.
    Own(&'a Identity),
    /// Of somebody else, for an administrator.
    Other {
        /// The administrator.
        by: &'a Identity,
        /// Whose, by any name.
        name: &'a str,
    },
    /// Of somebody who has shown a password, must have a second factor, and has none yet: [`SecondStep::step`].
    FirstStep(&'a str),
}

/// What is to be done with a person's credentials.
pub enum CredentialRequest {
    /// Show what there is.
    List,
    /// Make an app password.
    AddAppPassword {
        /// What the person calls it.
        name: String,
        /// The protocols that it is for; `mail` and `calendars` are several.
        protocols: Vec<String>,
        /// When it ends by itself, in milliseconds since 1970.
        expires_ms: Option<u64>,
    },
    /// Give an app password another name.
    RenameAppPassword {
        /// Which.
        id: String,
        /// The name.
        name: String,
    },
    /// Let an app password open nothing any more.
    RevokeAppPassword {
        /// Which.
        id: String,
    },
    /// Begin with an authenticator.
    BeginTotp,
    /// Take the authenticator that was begun with.
    ConfirmTotp {
        /// What beginning gave.
        begun: String,
        /// A code of it.
        code: String,
    },
    /// Take the authenticator and the recovery codes away.
    RemoveTotp,
    /// Make fresh recovery codes.
    RenewRecoveryCodes,
    /// Begin with a passkey.
    BeginPasskey,
    /// Take a passkey.
    AddPasskey {
        /// What beginning gave.
        challenge: String,
        /// What the person calls it.
        name: String,
        /// What the browser gave, as JSON.
        response: String,
    },
    /// Let an account at the provider be the person's.
    LinkAccount {
        /// What the provider calls it for ever (`sub`).
        subject: String,
    },
    /// Let it be nobody's any more.
    UnlinkAccount {
        /// As above.
        subject: String,
    },
    /// Show the sessions that are in use.
    ListSessions,
    /// End one of them.
    EndSession {
        /// Which.
        id: String,
    },
    /// End all but the one that asks, which goes on as another one.
    EndOtherSessions,
    /// Take a passkey away.
    RemovePasskey {
        /// Its id, in base64url.
        id: String,
    },
}

impl CredentialRequest {
    /// Whether it lets nobody in who could not come in before.
    #[must_use]
    pub const fn is_harmless(&self) -> bool {
        matches!(
            self,
            Self::List
                | Self::RenameAppPassword { .. }
                | Self::RevokeAppPassword { .. }
                | Self::UnlinkAccount { .. }
                | Self::ListSessions
                | Self::EndSession { .. }
        )
    }

    /// The word that the record holds of a change.
    pub(crate) const fn word(&self) -> Option<&'static str> {
        match self {
            Self::List
            | Self::ListSessions
            | Self::BeginTotp
            | Self::BeginPasskey
            | Self::RenameAppPassword { .. } => None,
            Self::EndSession { .. } => Some("session ended"),
            Self::EndOtherSessions => Some("other sessions ended"),
            Self::AddAppPassword { .. } => Some("app password made"),
            Self::RevokeAppPassword { .. } => Some("app password revoked"),
            Self::ConfirmTotp { .. } => Some("authenticator added"),
            Self::RemoveTotp => Some("authenticator removed"),
            Self::RenewRecoveryCodes => Some("recovery codes renewed"),
            Self::AddPasskey { .. } => Some("passkey added"),
            Self::RemovePasskey { .. } => Some("passkey removed"),
            Self::LinkAccount { .. } => Some("provider's account linked"),
            Self::UnlinkAccount { .. } => Some("provider's account unlinked"),
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct CredentialAnswer {
    /// What the client is shown.
    pub shown: Value,
    /// The id of the person whose credentials they are.
    pub person_id: String,
    /// Who goes on by a session of their own, where all from before are over.
    pub session: Option<Identity>,
}

/// Why nothing was done.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum CredentialRefusal {
    /// What was sent cannot be.
    #[error("{0}")]
    Invalid(String),
    /// The one who asks may not do it.
    #[error("{0}")]
    Forbidden(String),
    /// The one who asks has to show again that it is them.
    #[error("For this, sign in again: your session began too long ago.")]
    Stale,
    /// It is not there.
    #[error("{0}")]
    NotFound(String),
    /// A proof is wrong, or came too late.
    #[error("{0}")]
    Login(LoginRefusal),
    /// It could not be stored.
    #[error("{0}")]
    Failed(String),
}

/// A change of credentials that is under way.
pub type CredentialWork<'a> =
    Pin<Box<dyn Future<Output = Result<CredentialAnswer, CredentialRefusal>> + Send + 'a>>;

/// The check of a password that is under way.
pub type Verification<'a> = Pin<Box<dyn Future<Output = Result<Identity, LoginRefusal>> + Send + 'a>>;

/// The hashing of a password that is under way.
pub type Hashing<'a> = Pin<Box<dyn Future<Output = Result<Bytes, LoginRefusal>> + Send + 'a>>;

/// What somebody comes in for: accounts and app passwords may be good for some of it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Documents, and everything that has no word of its own.
    Documents,
    /// Calendars by CalDAV, and what leads to calendars and address books.
    Calendars,
    /// Address books by CardDAV.
    Contacts,
}

/// Knows people by their passwords and sessions.
pub trait Authenticator: Send + Sync + 'static {
    /// The person of a name and password that were verified not long ago. Answers at once, from memory;
    /// `None` means only that [`Authenticator::verify`] must be asked.
    fn recall(&self, name: &str, password: &str, service: Service, from: IpAddr) -> Option<Identity>;

    /// The person of a name and password. Slow on purpose (argon2id), and slower for those who guess; waiting for it
    /// holds no thread.
    fn verify<'a>(
        &'a self,
        name: &'a str,
        password: &'a str,
        service: Service,
        from: IpAddr,
    ) -> Verification<'a>;

    /// The hash of a password that somebody sets for the document `id`, as [`Edit::secret`](scrinium_database::Edit::secret). Slow as
    /// a log-in, in the same queue; waiting for it holds no thread.
    fn hash<'a>(&'a self, id: &'a str, password: &'a str, from: IpAddr) -> Hashing<'a>;

    /// Who begins a session, where a second step can be asked for.
    fn sign_in<'a>(&'a self, shown: SignIn<'a>, from: IpAddr) -> Verification<'a> {
        match shown {
            SignIn::Password { name, password } => self.verify(name, password, Service::Documents, from),
            SignIn::Code { .. } | SignIn::Passkey { .. } => {
                Box::pin(std::future::ready(Err(LoginRefusal::Wrong)))
            }
        }
    }

    /// Whether tokens (`Authorization: Bearer`) are looked at.
    fn takes_tokens(&self) -> bool {
        false
    }

    /// Who shows a token (RFC 6750).
    fn bearer<'a>(&'a self, _token: &'a str, _from: IpAddr) -> Verification<'a> {
        Box::pin(std::future::ready(Err(LoginRefusal::Wrong)))
    }

    /// Whether trusted proxies may say who asks.
    fn takes_proxied(&self) -> bool {
        false
    }

    /// Whom a trusted proxy names: the name, the roles, and the proxy's proof that it may. Answers at once.
    ///
    /// # Errors
    /// [`LoginRefusal`]
    fn proxied(&self, _named: &ProxiedName<'_>, _from: IpAddr) -> Result<Identity, LoginRefusal> {
        Err(LoginRefusal::Wrong)
    }

    /// Whether somebody can sign in with a passkey.
    fn offers_passkeys(&self) -> bool {
        false
    }

    /// What a browser asks an authenticator for: to sign in with a passkey alone, or after the first step that is shown.
    ///
    /// # Errors
    /// Passkeys are not offered, or the first step was too long ago.
    fn passkey_request(&self, _step: Option<&str>) -> Result<Value, LoginRefusal> {
        Err(LoginRefusal::Denied("Passkeys are not offered here.".to_owned()))
    }

    /// Begins a sign-in at the provider; `next` is where the person wants to go then.
    fn begin_at_provider<'a>(&'a self, _next: &'a str) -> ProviderBeginning<'a> {
        Box::pin(std::future::ready(Err(no_provider())))
    }

    /// Ends a sign-in at the provider: what the browser has kept ([`ProviderSignIn::sealed`]), and the query with which it comes back.
    fn end_at_provider<'a>(&'a self, _sealed: &'a str, _query: &'a str, _from: IpAddr) -> ProviderEnding<'a> {
        Box::pin(std::future::ready(Err(no_provider())))
    }

    /// Shows or changes somebody's credentials.
    fn credentials<'a>(
        &'a self,
        _of: CredentialsOf<'a>,
        _request: CredentialRequest,
        _from: IpAddr,
    ) -> CredentialWork<'a> {
        let refusal = CredentialRefusal::NotFound("Nobody's credentials are kept here.".to_owned());
        Box::pin(std::future::ready(Err(refusal)))
    }

    /// Begins a session.
    fn open_session(&self, identity: &Identity) -> SessionToken;

    /// The session of a token, where it is genuine and not too old; `agent` is what the program calls itself. Answers at once, from memory.
    fn session(&self, token: &str, from: IpAddr, agent: &str) -> Option<Session>;

    /// Ends a session for good: its token opens nothing any more, also after a restart. An unknown token is not one of
    /// anybody's business. Blocks.
    ///
    /// # Errors
    /// Where that could not be written down.
    fn close_session(&self, token: &str) -> io::Result<()>;

    /// Whether somebody who was known when a request came still is: neither logged out nor removed, with the same
    /// roles and password. Answers at once, from memory.
    fn holds(&self, _identity: &Identity) -> bool {
        true
    }

    /// What changed of the people and groups in `database`, of one document or of all, and was not given yet: for the
    /// record of the one who has changed it. Blocks.
    fn changed_people(&self, _database: &str, _id: Option<&str>, _by: &Identity) -> Vec<PersonChange> {
        Vec::new()
    }

    /// As [`Authenticator::changed_people`], what changed so long ago that nobody who asks over this port has changed it.
    fn changed_otherwise(&self) -> Vec<PersonChange> {
        Vec::new()
    }

    /// Whether this database has people: [`Authenticator::changed_people`] is asked of it, and passwords are set there.
    fn keeps_people(&self, _database: &str) -> bool {
        false
    }

    /// The database of people that CouchDB's clients know as `_users`.
    fn users_database(&self) -> Option<&str> {
        None
    }

    /// Fields of a person's document that are the person's to set.
    fn own_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// The id of the document of the person who logs in with this name. Answers at once, from memory.
    fn person_document(&self, _name: &str) -> Option<String> {
        None
    }

    /// A number that changes whenever the answer of [`Authenticator::holds`] may have changed for anybody.
    fn changes(&self) -> u64 {
        0
    }
}

fn no_provider() -> LoginRefusal {
    LoginRefusal::Denied("Signing in with a provider is not offered here.".to_owned())
}

/// What the console answers to a command.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsoleAnswer {
    /// The lines that a person reads.
    pub text: String,
    /// The same as data, for commands that have data to show.
    pub data: Option<Value>,
}

/// How the server is watched and told what to do. All methods may block; they are called on the worker pool.
pub trait Administration: Send + Sync + 'static {
    /// Carries out one console command (`show stat`).
    ///
    /// # Errors
    /// A sentence that says what is wrong with the command.
    fn console(&self, command: &str, by: &Identity, from: IpAddr) -> Result<ConsoleAnswer, String>;

    /// Whether a console command shows something and changes nothing, so that those who look on may give it.
    fn only_shows(&self, _command: &str) -> bool {
        false
    }

    /// All statistics as `/_stats` shows them.
    fn statistics(&self) -> Value;

    /// All statistics in Prometheus' text format.
    fn prometheus(&self) -> String;

    /// Long jobs under way, as CouchDB's `/_active_tasks` lists them: an array.
    fn active_tasks(&self) -> Value;

    /// How long changes are held from now on, at most, for a snapshot of the disks; `None`: they are not.
    fn frozen(&self) -> Option<Duration> {
        None
    }
}
