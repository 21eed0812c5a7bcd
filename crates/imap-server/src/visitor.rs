//! Somebody at a port: until they log in nobody, and then a person whose rights are looked up at each question.

use std::sync::Arc;

use scrinium_accounting::Account;
use scrinium_credentials::sasl::{Claim, ScramAccount};
use scrinium_credentials::{Answer as Denial, Protection, Protocol};
use scrinium_database::Result;
use scrinium_directory::{Approach, Found, Login, LoginError, NameLookup, Person};
use scrinium_imap::{ContentId, Refusal};
use scrinium_mailbox::Span;
use scrinium_port::{Link, Secrecy};

use crate::mail_file::{MailFile, Place, refusal_of};
use crate::message::OpenMessage;
use crate::opening::{may_open, opened};
use crate::surroundings::{Opening, Surroundings};

/// What a client hears who is not served: as IMAP has it.
pub(crate) type Refused<T> = std::result::Result<T, Refusal>;

pub(crate) struct Visitor {
    pub(crate) shared: Arc<Surroundings>,
    link: Arc<Link>,
    protocol: Protocol,
    admitted: Option<Admitted>,
    /// The message whose bytes went out last: the next ones are mostly of the same.
    message: Option<(ContentId, Arc<OpenMessage>)>,
}

/// Somebody who has logged in.
struct Admitted {
    login: Login,
    account: Account,
    /// In whose name, if not their own.
    opened: Option<Arc<Person>>,
}

impl Visitor {
    pub(crate) fn new(shared: Arc<Surroundings>, link: Arc<Link>, protocol: Protocol) -> Self {
        Self { shared, link, protocol, admitted: None, message: None }
    }

    /// The keys of a name for SCRAM, also of one that nobody has.
    pub(crate) fn scram_account(&self, name: &str) -> ScramAccount {
        let name = self.shared.resolver.login_name(name);
        self.shared.logins.scram_account(name, self.protocol)
    }

    /// Lets somebody in.
    ///
    /// # Errors
    /// Why they are not let in.
    pub(crate) async fn log_in(
        &mut self,
        mut claim: Claim,
        secrecy: &Secrecy,
    ) -> std::result::Result<Arc<Person>, LoginError> {
        let shared = Arc::clone(&self.shared);
        let known = |name: String| shared.resolver.login_name(&name).to_owned();
        (claim.name, claim.act_as) = (claim.name.map(known), claim.act_as.map(known));
        // Where nobody may, the gate refuses it.
        let watch = shared.opened_by_others.as_ref().filter(|_| self.protocol == Protocol::Imap);
        let name = watch.and_then(|_| claim.act_as.take());
        let protection = if secrecy.is_protected() { Protection::Protected } else { Protection::Open };
        let approach = Approach { protocol: self.protocol, protection, address: self.link.peer.address };
        let login = shared.logins.prove_claim(&claim, shared.tokens.as_deref(), &approach).await?;
        let opened = match name {
            Some(name) => opened(&*shared.directory, &login.person, &name)?,
            None => None,
        };
        if let (Some(of), Some(watch)) = (&opened, watch) {
            watch(&Opening { by: &login.person.short_name, of: &of.id, address: self.link.peer.address });
        }
        let person = Arc::clone(opened.as_ref().unwrap_or(&login.person));
        // From now on the connection is that of the one who has logged in.
        let account = self.link.account(&login.person.holder(), &shared.accounts);
        self.admitted = Some(Admitted { login, account, opened });
        Ok(person)
    }

    pub(crate) fn forget(&mut self) {
        self.admitted = None;
    }

    /// Who has logged in, as they are now.
    fn person(&self) -> Refused<Arc<Person>> {
        let person = self.admitted.as_ref().and_then(|admitted| {
            let by = self.shared.logins.still_in(&admitted.login, self.protocol)?;
            let Some(opened) = &admitted.opened else { return Some(by) };
            // They may be another one by now, or one whose mail nobody else opens.
            match self.shared.directory.find(&opened.short_name) {
                Found::Person(now) if now.id == opened.id && may_open(&by, &now) => Some(now),
                _ => None,
            }
        });
        person.ok_or_else(|| {
            Refusal::new(
                "EXPIRED",
                "The account was changed after you logged in; connect once more and log in",
            )
        })
    }

    /// Does something for the person who has logged in, on a thread that may wait for the disk.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Person>, &Surroundings) -> Result<T> + Send + 'static,
    ) -> Refused<T> {
        // Whose turn it is not yet waits, as news for many sessions of one person do; a connection asks for one thing at a time.
        let thread = match &self.admitted {
            Some(admitted) => Some(admitted.account.thread().await),
            None => None,
        };
        let person = self.person()?;
        let (shared, workers) = (Arc::clone(&self.shared), self.shared.workers.clone());
        let work = move || {
            let _thread = thread;
            work(&person, &shared)
        };
        match workers.run(work).await {
            Ok(done) => done.map_err(|error| refusal_of(&error)),
            Err(error) => {
                tracing::debug!(%error, "a mail client waits");
                Err(Refusal::new("UNAVAILABLE", "The server is busy; try again in a moment"))
            }
        }
    }

    /// The same with a database. What the person may do there is looked up each time.
    pub(crate) async fn work_in<T: Send + 'static>(
        &self,
        place: Place,
        work: impl FnOnce(&MailFile, &Surroundings) -> Result<T> + Send + 'static,
    ) -> Refused<T> {
        self.work(move |person, shared| work(&MailFile::open(shared, person, &place)?, shared)).await
    }

    /// Bytes of a message in the form of clients; `None` if it is there no more.
    pub(crate) async fn content(
        &mut self,
        place: Place,
        id: ContentId,
        span: Span,
    ) -> Refused<Option<Vec<u8>>> {
        let known =
            self.message.as_ref().filter(|(known, _)| *known == id).map(|(_, known)| Arc::clone(known));
        let wanted = id.clone();
        let read = self
            .work_in(place, move |file, shared| {
                let message = match known {
                    Some(message) => message,
                    None => Arc::new(shared.messages.open(&file.database, &wanted, &file.access)?),
                };
                let bytes = message.read(span)?;
                Ok((message, bytes))
            })
            .await;
        match read {
            Ok((message, bytes)) => {
                self.message = Some((id, message));
                Ok(Some(bytes))
            }
            Err(refusal) if refusal == Refusal::no_mailbox() => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// The next message comes from elsewhere.
    pub(crate) fn close_message(&mut self) {
        self.message = None;
    }
}

/// Why a log-in let nobody in.
pub(crate) enum Denied {
    /// The proof is wrong, or nobody has the name.
    Wrong,
    /// There were too many failures.
    TooMany,
    /// Something that the client may hear, with the word of RFC 5530 for it.
    Told(&'static str, String),
}

/// What a client may hear of a log-in that let nobody in.
pub(crate) fn denied(error: &LoginError) -> Denied {
    match error {
        // No second step can be asked for here.
        LoginError::Refused | LoginError::SecondStep(_) => Denied::Wrong,
        LoginError::Locked { .. } => Denied::TooMany,
        LoginError::Busy { .. } => {
            let text = "Too many log-ins are being checked; try again in a moment";
            Denied::Told("UNAVAILABLE", text.to_owned())
        }
        LoginError::Denied(denial, protocol) => {
            let code = match denial {
                Denial::Encrypt => "PRIVACYREQUIRED",
                Denial::Disabled | Denial::Ended => "CONTACTADMIN",
                Denial::NotOffered | Denial::NotByThis | Denial::NotAsOther | Denial::BeginAgain => {
                    "AUTHENTICATIONFAILED"
                }
                Denial::Later(_) => return Denied::TooMany,
                Denial::WrongCredentials => return Denied::Wrong,
            };
            Denied::Told(code, denial.text(*protocol).to_owned())
        }
    }
}
