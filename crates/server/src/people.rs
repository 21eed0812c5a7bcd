//! Who may use the server: the directory behind the HTTP port's questions.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use scrinium_directory::{
    CredentialOptions, Credentials, Directory, LoginError, NameLookup, Person, SessionKeeper,
};
use scrinium_http::{Authenticator, Identity, Session, SessionToken};

use crate::cli::Failure;
use crate::files;

/// The file in the data folder that signs sessions, so that they outlive a restart.
const SECRET_FILE: &str = "session.secret";

const SECRET_BYTES: usize = 32;

/// Knows people by their passwords and sessions.
pub(crate) struct People {
    directory: Arc<Directory>,
    credentials: Credentials,
    sessions: SessionKeeper,
}

impl People {
    pub(crate) fn new(
        directory: &Arc<Directory>,
        data_dir: &Path,
        session_timeout: Duration,
    ) -> Result<Self, Failure> {
        let lookup: Arc<dyn NameLookup> = directory.clone();
        let credentials = Credentials::new(lookup, &CredentialOptions::default()).map_err(Failure::work)?;
        let secret = secret(&data_dir.join(SECRET_FILE))
            .map_err(|error| Failure::Work(format!("cannot keep the secret of sessions: {error}")))?;
        let sessions = SessionKeeper::new(&secret, session_timeout);
        Ok(Self { directory: Arc::clone(directory), credentials, sessions })
    }

    fn token(&self, person: &Person) -> SessionToken {
        SessionToken {
            token: self.sessions.issue(person, now_s()),
            max_age_seconds: self.sessions.timeout().as_secs(),
        }
    }
}

impl Authenticator for People {
    fn recall(&self, name: &str, password: &str) -> Option<Identity> {
        self.credentials.recall(name, password).as_deref().map(identity)
    }

    fn verify(&self, name: &str, password: &str) -> Result<Option<Identity>, String> {
        match self.credentials.check(name, password) {
            Ok(person) => Ok(Some(identity(&person))),
            Err(LoginError::Refused) => Ok(None),
            Err(error @ LoginError::Busy) => Err(error.to_string()),
        }
    }

    fn open_session(&self, identity: &Identity) -> SessionToken {
        match identity.name().map(|name| self.directory.find(name)) {
            Some(scrinium_directory::Found::Person(person)) => self.token(&person),
            // Somebody who left the directory in this moment gets a token that opens nothing.
            _ => SessionToken { token: String::new(), max_age_seconds: 0 },
        }
    }

    fn session(&self, token: &str) -> Option<Session> {
        let person = self.directory.person(&SessionKeeper::claimed_person(token).ok()?)?;
        let session = self.sessions.check(token, &person, now_s()).ok()?;
        Some(Session { identity: identity(&person), renewed: session.renew.then(|| self.token(&person)) })
    }

    fn close_session(&self, _token: &str) {
        // A session is what its token says; the browser is told to forget it.
    }
}

fn identity(person: &Person) -> Identity {
    Identity::new(&person.short_name, person.roles.clone())
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// The secret in the file, which is made if it is missing or too short to be one.
fn secret(path: &Path) -> io::Result<Vec<u8>> {
    match std::fs::read(path) {
        Ok(secret) if secret.len() >= SECRET_BYTES => return Ok(secret),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let secret: [u8; SECRET_BYTES] = rand::random();
    files::write_private(path, &secret)?;
    Ok(secret.to_vec())
}
