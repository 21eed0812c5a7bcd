//! What this crate asks of the rest of the server: who somebody is, and how the server is run.

use std::sync::Arc;

use serde_json::Value;

/// The role that CouchDB gives to server administrators.
const ADMINISTRATOR_ROLE: &str = "_admin";

/// Who asks: a name with roles, or nobody. Clones are cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    name: Option<Arc<str>>,
    roles: Arc<[String]>,
}

impl Identity {
    /// Somebody who has shown who they are. The role `_admin` makes a server administrator.
    #[must_use]
    pub fn new(name: &str, roles: Vec<String>) -> Self {
        Self { name: Some(name.into()), roles: roles.into() }
    }

    /// Somebody who has not said who they are.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// The name, if one was shown.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The name, shared.
    pub(crate) fn shared_name(&self) -> Option<Arc<str>> {
        self.name.clone()
    }

    /// The roles, `_admin` among them for a server administrator.
    #[must_use]
    pub fn roles(&self) -> &[String] {
        &self.roles
    }

    /// Whether this is nobody.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.name.is_none()
    }

    /// Whether this is a server administrator.
    #[must_use]
    pub fn is_administrator(&self) -> bool {
        self.roles.iter().any(|role| role == ADMINISTRATOR_ROLE)
    }
}

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

/// Knows people by their passwords and sessions.
pub trait Authenticator: Send + Sync + 'static {
    /// The person of a name and password that were verified not long ago. Answers at once, from memory;
    /// `None` means only that [`Authenticator::verify`] must be asked.
    fn recall(&self, name: &str, password: &str) -> Option<Identity>;

    /// The person of a name and password, or `None` where they do not fit. Slow on purpose (argon2id),
    /// so it is called on the worker pool.
    ///
    /// # Errors
    /// A sentence for the log, when the directory cannot be read.
    fn verify(&self, name: &str, password: &str) -> Result<Option<Identity>, String>;

    /// Begins a session.
    fn open_session(&self, identity: &Identity) -> SessionToken;

    /// The session of a token, where it is genuine and not too old. Answers at once, from memory.
    fn session(&self, token: &str) -> Option<Session>;

    /// Ends a session; an unknown token is none of anybody's business.
    fn close_session(&self, token: &str);
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
    fn console(&self, command: &str, by: &Identity) -> Result<ConsoleAnswer, String>;

    /// All statistics as `/_stats` shows them.
    fn statistics(&self) -> Value;

    /// All statistics in Prometheus' text format.
    fn prometheus(&self) -> String;

    /// Long jobs under way, as CouchDB's `/_active_tasks` lists them: an array.
    fn active_tasks(&self) -> Value;
}
