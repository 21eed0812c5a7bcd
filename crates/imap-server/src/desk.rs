//! What a session asks, answered from its person's mail database.

use std::sync::Arc;

use scrinium_accounting::{Account, Accounts, Claim as Held, Resource};
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_credentials::sasl::Claim;
use scrinium_credentials::{Answer as Denial, Protection, Protocol};
use scrinium_database::{DatabaseError, Result};
use scrinium_directory::{Approach, Directory, Login, LoginError, Logins, Person, TokenVerifier};
use scrinium_imap::{
    Answer, CapabilitySet, ContentId, FolderAnswer, FolderOutcome, FolderQuestion, FolderRequest,
    LoginVerdict, MailboxRequest, NewMessage, Refusal, Request,
};
use scrinium_mail::Resolver;
use scrinium_mailbox::Span;
use scrinium_port::Link;
use scrinium_worker::WorkerPool;
use tokio::sync::watch;

use crate::append::{Appending, answer_of, no_target};
use crate::folder;
use crate::mail_file::{MailFile, refusal_of};
use crate::mailboxes;
use crate::message::{Messages, OpenMessage};
use crate::tracker::{FolderTracker, Trackers};
use crate::transfer::deletion;

/// What all sessions share.
pub(crate) struct Surroundings {
    pub(crate) databases: Databases,
    pub(crate) directory: Arc<Directory>,
    pub(crate) resolver: Resolver,
    pub(crate) logins: Arc<Logins>,
    /// Knows the providers whose tokens let people in, if there are any.
    pub(crate) tokens: Option<Arc<dyn TokenVerifier>>,
    pub(crate) accounts: Accounts,
    pub(crate) workers: WorkerPool,
    pub(crate) clock: Clock,
    pub(crate) messages: Messages,
    pub(crate) trackers: Trackers,
    /// The longest message of an APPEND.
    pub(crate) append_bytes: u64,
}

/// A folder that a session has selected.
pub(crate) struct OpenFolder {
    /// As it was called when it was opened.
    pub(crate) name: Arc<str>,
    pub(crate) tracker: Arc<FolderTracker>,
    /// Tells of changes in its database.
    pub(crate) changes: watch::Receiver<u64>,
}

/// One session's questions, one after the other.
pub(crate) struct Desk {
    shared: Arc<Surroundings>,
    link: Arc<Link>,
    admitted: Option<Admitted>,
    folder: Option<OpenFolder>,
    appending: Option<Appending>,
    /// The message whose bytes went out last: the next ones are mostly of the same.
    message: Option<(ContentId, Arc<OpenMessage>)>,
}

/// Somebody who has logged in.
struct Admitted {
    login: Login,
    account: Account,
}

impl Desk {
    pub(crate) fn new(shared: Arc<Surroundings>, link: Arc<Link>) -> Self {
        Self { shared, link, admitted: None, folder: None, appending: None, message: None }
    }

    /// Answers one question. Who does not wait for the answer drops this.
    pub(crate) async fn answer(&mut self, request: Request, protection: Protection) -> Answer {
        match request {
            Request::Greet(_) => Answer::Accepted,
            Request::Account(name) => {
                let name = self.shared.resolver.login_name(&name);
                Answer::Account(self.shared.logins.scram_account(name, Protocol::Imap))
            }
            Request::LogIn(claim) => self.log_in(claim, protection).await,
            Request::Identify(_) => Answer::Hide(CapabilitySet::NONE),
            Request::Mailbox(request) => self.mailbox(*request).await,
            Request::Folder(request) => self.folder(*request).await,
            Request::Content(id, span) => self.content(id, span).await,
            Request::BeginAppend(message) => self.begin_append(*message).await,
            Request::AppendData(piece) => self.append(piece).await,
            Request::FinishAppend => self.finish_append().await,
            Request::AbandonAppend => {
                self.appending = None;
                Answer::Accepted
            }
            // NOTIFY is hidden; and the port itself encrypts.
            Request::Events(_) | Request::StartTls => Answer::Trouble,
        }
    }

    /// Completes when something has changed in the database of the folder that is selected since it was last asked about.
    pub(crate) async fn changed(&mut self) {
        if let Some(folder) = &mut self.folder
            && folder.changes.changed().await.is_ok()
        {
            return;
        }
        // Of a database that is gone there is no news; the next question finds it.
        std::future::pending::<()>().await;
    }

    async fn log_in(&mut self, mut claim: Claim, protection: Protection) -> Answer {
        let shared = Arc::clone(&self.shared);
        let known = |name: String| shared.resolver.login_name(&name).to_owned();
        (claim.name, claim.act_as) = (claim.name.map(known), claim.act_as.map(known));
        let approach = Approach { protocol: Protocol::Imap, protection, address: self.link.peer.address };
        let login = match shared.logins.prove_claim(&claim, shared.tokens.as_deref(), &approach).await {
            Ok(login) => login,
            Err(error) => return Answer::Login(verdict_of(&error)),
        };
        let id = login.person.id.clone();
        // From now on the connection is the person's.
        let account = self.link.account(&login.person.holder(), &shared.accounts);
        self.admitted = Some(Admitted { login, account });
        match self.work(|file, _| file.make_usual()).await {
            Ok(()) => Answer::Login(LoginVerdict::Admitted(id, CapabilitySet::NONE)),
            Err(refusal) => {
                self.admitted = None;
                Answer::Login(LoginVerdict::Refused(refusal))
            }
        }
    }

    /// Who has logged in, as they are now.
    fn person(&self) -> std::result::Result<Arc<Person>, Refusal> {
        let login = self.admitted.as_ref().map(|admitted| &admitted.login);
        let person = login.and_then(|login| self.shared.logins.still_in(login, Protocol::Imap));
        person.ok_or_else(|| {
            Refusal::new(
                "EXPIRED",
                "The account was changed after you logged in; connect once more and log in",
            )
        })
    }

    /// Does something with the person's mail database, on a thread that may wait for the disk. What they may do there is looked up
    /// each time.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MailFile, &Surroundings) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, Refusal> {
        let person = self.person()?;
        let _held = self.hold()?;
        let (shared, workers) = (Arc::clone(&self.shared), self.shared.workers.clone());
        let done = workers.run(move || {
            let file = MailFile::open(&shared.databases, &shared.directory, &person)?;
            work(&file, &shared)
        });
        match done.await {
            Ok(done) => done.map_err(|error| refusal_of(&error)),
            Err(error) => {
                tracing::debug!(%error, "a mail client waits");
                Err(Refusal::new("UNAVAILABLE", "The server is busy; try again in a moment"))
            }
        }
    }

    /// A place among what the person's requests may hold.
    fn hold(&self) -> std::result::Result<Option<Held>, Refusal> {
        let Some(admitted) = &self.admitted else { return Ok(None) };
        let held = admitted.account.claim(Resource::Requests, 1);
        held.map(Some)
            .map_err(|_| Refusal::new("LIMIT", "You ask for too much at once; try again in a moment"))
    }

    async fn mailbox(&mut self, request: MailboxRequest) -> Answer {
        let append_bytes = self.shared.append_bytes;
        let answered = self
            .work(move |file, shared| Ok(mailboxes::answer(file, &shared.trackers, request, append_bytes)))
            .await;
        match answered {
            Ok((answer, opened)) => {
                if let Some(opened) = opened {
                    (self.folder, self.message) = (Some(opened), None);
                }
                answer
            }
            Err(refusal) => Answer::Refused(refusal),
        }
    }

    async fn folder(&mut self, request: FolderRequest) -> Answer {
        let view = request.view.clone();
        let closed = |view| Answer::Folder(Box::new(FolderAnswer { view, outcome: FolderOutcome::Closed }));
        let is_of = |folder: &&mut OpenFolder| u64::from(folder.tracker.folder()) == view.folder();
        let Some(folder) = self.folder.as_mut().filter(is_of) else { return closed(view) };
        // What changes from here on wakes the session once more.
        folder.changes.mark_unchanged();
        let (tracker, name) = (Arc::clone(&folder.tracker), Arc::clone(&folder.name));
        let appending = match request.question {
            FolderQuestion::Replace(_) => self.appending.take(),
            _ => None,
        };
        let answered = self
            .work(move |file, shared| {
                let now_ms = shared.clock.now_ms();
                if let FolderQuestion::Replace(_) = request.question {
                    let appending = appending.unwrap_or_default();
                    return Ok(replace(
                        file,
                        &shared.messages,
                        (&tracker, &name),
                        (request, appending),
                        now_ms,
                    ));
                }
                Ok(folder::answer((file, &shared.messages), (&tracker, &name), request, now_ms))
            })
            .await;
        match answered {
            Ok(answer) => Answer::Folder(Box::new(answer)),
            Err(refusal) => {
                Answer::Folder(Box::new(FolderAnswer { view, outcome: FolderOutcome::Refused(refusal) }))
            }
        }
    }

    async fn content(&mut self, id: ContentId, span: Span) -> Answer {
        let known =
            self.message.as_ref().filter(|(known, _)| *known == id).map(|(_, known)| Arc::clone(known));
        let wanted = id.clone();
        let read = self
            .work(move |file, shared| {
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
                Answer::Content(bytes)
            }
            Err(refusal) if refusal == Refusal::no_mailbox() => Answer::Gone,
            Err(_) => Answer::Trouble,
        }
    }

    async fn begin_append(&mut self, message: NewMessage) -> Answer {
        let mailbox = message.mailbox.as_str().to_owned();
        match self.work(move |file, _| file.folder(&mailbox).map(drop)).await {
            Ok(()) => {}
            Err(refusal) if refusal == Refusal::no_mailbox() => return Answer::Refused(no_target()),
            Err(refusal) => return Answer::Refused(refusal),
        }
        if message.index == 0 {
            self.appending = Some(Appending::default());
        }
        match self.appending.as_mut().map(|appending| appending.begin(message)) {
            Some(Ok(())) => Answer::Accepted,
            Some(Err(error)) => {
                tracing::warn!(%error, "a message of a mail client could not be kept");
                Answer::Trouble
            }
            None => Answer::Trouble,
        }
    }

    async fn append(&mut self, piece: Vec<u8>) -> Answer {
        let Some(mut appending) = self.appending.take() else { return Answer::Trouble };
        let kept = if appending.stays_in_memory(&piece) {
            Ok(appending.push(&piece).map(|()| appending))
        } else {
            let write = move || appending.push(&piece).map(|()| appending);
            self.shared.workers.run(write).await
        };
        match kept {
            Ok(Ok(appending)) => {
                self.appending = Some(appending);
                Answer::Accepted
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "a message of a mail client could not be kept");
                Answer::Refused(Refusal::new("LIMIT", "There is no room for this message at the moment"))
            }
            Err(_) => Answer::Trouble,
        }
    }

    async fn finish_append(&mut self) -> Answer {
        let Some(appending) = self.appending.take() else { return Answer::Trouble };
        let stored = self
            .work(move |file, shared| Ok(answer_of(appending.store(file, shared.clock.now_ms(), Vec::new()))))
            .await;
        stored.unwrap_or_else(Answer::Refused)
    }
}

/// The message that was brought takes the place of another one (RFC 8508), in one batch.
fn replace(
    file: &MailFile,
    messages: &Messages,
    open: (&FolderTracker, &str),
    (request, appending): (FolderRequest, Appending),
    now_ms: u64,
) -> FolderAnswer {
    let FolderRequest { mut view, question, .. } = request;
    let outcome = match question {
        FolderQuestion::Replace(named) => {
            folder::first_of((file, messages), open, (&mut view, &named), now_ms).and_then(|old| {
                let Some(old) = old else {
                    return Ok(FolderOutcome::Refused(Refusal::new("", "There is no such message")));
                };
                let document =
                    file.database.read(&old, &scrinium_database::ReadOptions::default(), &file.access)?;
                let (uid_validity, uids) =
                    appending.store(file, now_ms, vec![deletion(old, document.revision)])?;
                let uid = uids.first().copied().ok_or_else(DatabaseError::missing)?;
                folder::catch_up((file, messages), open, &mut view, now_ms)?;
                Ok(FolderOutcome::Replaced { uid_validity, uid })
            })
        }
        _ => Ok(FolderOutcome::Closed),
    };
    let outcome = outcome.unwrap_or_else(|error| FolderOutcome::Refused(refusal_of(&error)));
    FolderAnswer { view, outcome }
}

/// What the client hears of a log-in that let nobody in (RFC 5530).
fn verdict_of(error: &LoginError) -> LoginVerdict {
    match error {
        // No second step can be asked for here.
        LoginError::Refused | LoginError::SecondStep(_) => LoginVerdict::Wrong,
        LoginError::Locked { .. } => LoginVerdict::TooMany,
        LoginError::Busy { .. } => {
            let text = "Too many log-ins are being checked; try again in a moment";
            LoginVerdict::Refused(Refusal::new("UNAVAILABLE", text))
        }
        LoginError::Denied(denial, protocol) => {
            let code = match denial {
                Denial::Encrypt => "PRIVACYREQUIRED",
                Denial::Disabled | Denial::Ended => "CONTACTADMIN",
                Denial::NotOffered | Denial::NotByThis | Denial::NotAsOther | Denial::BeginAgain => {
                    "AUTHENTICATIONFAILED"
                }
                Denial::Later(_) => return LoginVerdict::TooMany,
                Denial::WrongCredentials => return LoginVerdict::Wrong,
            };
            LoginVerdict::Refused(Refusal::new(code, denial.text(*protocol)))
        }
    }
}
