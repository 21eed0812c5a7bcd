//! What a session of IMAP asks, answered from the databases that its person may see.

use std::sync::Arc;

use futures_util::future::select_all;
use roaring::RoaringBitmap;
use scrinium_credentials::Protocol;
use scrinium_credentials::sasl::Claim;
use scrinium_database::{DatabaseError, ReadOptions};
use scrinium_directory::LoginError;
use scrinium_imap::{
    Answer, EventQuestion, FolderAnswer, FolderOutcome, FolderQuestion, FolderRequest, LoginVerdict,
    MailboxRequest, NewMessage, Refusal, Request,
};
use scrinium_imap_wire::SearchKey;
use scrinium_port::{Link, Secrecy};
use tokio::sync::watch;

use crate::append::{Appending, answer_of, no_target};
use crate::folder::{self, Ground};
use crate::hiding::Hiding;
use crate::mail_file::{MailFile, Place, refusal_of};
use crate::mailboxes;
use crate::notify::{self, Before, News, Watched};
use crate::surroundings::Surroundings;
use crate::tracker::FolderTracker;
use crate::transfer::deletion;
use crate::visitor::{Denied, Visitor, denied};
use crate::words;

/// A folder that a session has selected.
pub(crate) struct FolderHandle {
    /// In which database it is.
    pub(crate) place: Place,
    /// As it was called when it was opened.
    pub(crate) name: Arc<str>,
    pub(crate) tracker: Arc<FolderTracker>,
    /// That of what was tracked when it was opened.
    pub(crate) epoch: u64,
}

/// The same, with news of it.
pub(crate) struct OpenFolder {
    pub(crate) handle: Arc<FolderHandle>,
    /// Tells of changes in its database.
    pub(crate) changes: watch::Receiver<u64>,
}

/// One session's questions, one after the other.
pub(crate) struct Desk {
    visitor: Visitor,
    /// The longest message of an APPEND.
    append_bytes: u64,
    hiding: Arc<Hiding>,
    folder: Option<OpenFolder>,
    appending: Option<Appending>,
    /// What was looked for last, and where it can be.
    found: Option<(Vec<SearchKey>, Arc<RoaringBitmap>)>,
    /// What was told of mailboxes that NOTIFY watches, with news of the person's own database.
    watched: Option<(Watched, Vec<watch::Receiver<u64>>)>,
}

impl Desk {
    pub(crate) fn new(
        shared: Arc<Surroundings>,
        link: Arc<Link>,
        (append_bytes, hiding): (u64, Arc<Hiding>),
    ) -> Self {
        let visitor = Visitor::new(shared, link, Protocol::Imap);
        Self { visitor, append_bytes, hiding, folder: None, appending: None, found: None, watched: None }
    }

    /// Answers one question. Who does not wait for the answer drops this.
    pub(crate) async fn answer(&mut self, request: Request, secrecy: &Secrecy) -> Answer {
        match request {
            Request::Greet(_) => Answer::Accepted,
            Request::Account(name) => Answer::Account(self.visitor.scram_account(&name)),
            Request::LogIn(claim) => self.log_in(claim, secrecy).await,
            Request::Identify(fields) => Answer::Hide(self.hiding.hidden_from_client(&fields)),
            Request::Mailbox(request) => self.mailbox(*request).await,
            Request::Folder(request) => self.folder(*request).await,
            Request::Content(id, span) => {
                let Some(folder) = &self.folder else { return Answer::Gone };
                match self.visitor.content(folder.handle.place.clone(), id, span).await {
                    Ok(Some(bytes)) => Answer::Content(bytes),
                    Ok(None) => Answer::Gone,
                    Err(_) => Answer::Trouble,
                }
            }
            Request::BeginAppend(message) => self.begin_append(*message).await,
            Request::AppendData(piece) => self.append(piece).await,
            Request::FinishAppend => self.finish_append().await,
            Request::AbandonAppend => {
                self.appending = None;
                Answer::Accepted
            }
            Request::Events(question) => self.events(*question).await,
            // The port itself encrypts.
            Request::StartTls => Answer::Trouble,
        }
    }

    /// Completes when something has changed in the database of the folder that is selected since it was last asked about; or, where
    /// others are watched as well, in one of theirs.
    pub(crate) async fn changed(&mut self, watches_others: bool) {
        let selected = self.folder.as_mut().map(|folder| &mut folder.changes);
        let own = self.watched.as_mut().map(|(_, changes)| changes).filter(|_| watches_others);
        tokio::select! {
            () = has_changed(selected) => {}
            () = any_has_changed(own) => {}
        }
    }

    async fn events(&mut self, question: EventQuestion) -> Answer {
        let before = self.watched.take().map(|(watched, _)| watched).filter(|_| question.cursor.is_some());
        let selected = self.folder.as_ref().map(|folder| folder.handle.place.clone());
        let before = Before { watched: before, append_limit: self.append_bytes, selected };
        let cursor = question.cursor.unwrap_or(0).saturating_add(1);
        let looked =
            self.visitor.work(move |person, shared| notify::news(shared, person, &question, before)).await;
        match looked {
            Ok(News { events, is_more, watched, changes }) => {
                self.watched = Some((watched, changes));
                Answer::Events { events, cursor, is_more }
            }
            Err(refusal) => Answer::Refused(refusal),
        }
    }

    async fn log_in(&mut self, claim: Claim, secrecy: &Secrecy) -> Answer {
        let person = match self.visitor.log_in(claim, secrecy).await {
            Ok(person) => person,
            Err(error) => return Answer::Login(verdict_of(&error)),
        };
        match self.visitor.work_in(Place::Own, |file, _| file.make_usual()).await {
            Ok(()) => {
                let hidden = self.hiding.hidden_from_person(&person.short_name);
                Answer::Login(LoginVerdict::Admitted(person.id.clone(), hidden))
            }
            Err(refusal) => {
                self.visitor.forget();
                Answer::Login(LoginVerdict::Refused(refusal))
            }
        }
    }

    async fn mailbox(&mut self, request: MailboxRequest) -> Answer {
        let append_bytes = self.append_bytes;
        let answered = self
            .visitor
            .work(move |person, shared| mailboxes::answer(shared, person, request, append_bytes))
            .await;
        match answered {
            Ok((answer, opened)) => {
                if let Some(opened) = opened {
                    self.folder = Some(opened);
                    self.visitor.close_message();
                }
                answer
            }
            Err(refusal) => Answer::Refused(refusal),
        }
    }

    async fn folder(&mut self, request: FolderRequest) -> Answer {
        let view = request.view.clone();
        let ended = |view, outcome| Answer::Folder(Box::new(FolderAnswer { view, outcome }));
        let is_of = |folder: &&mut OpenFolder| u64::from(folder.handle.tracker.folder()) == view.folder();
        let Some(folder) = self.folder.as_mut().filter(is_of) else {
            return ended(view, FolderOutcome::Closed);
        };
        // What changes from here on wakes the session once more.
        folder.changes.mark_unchanged();
        let open = Arc::clone(&folder.handle);
        let candidates = self.candidates(&open, &request).await;
        let appending = match request.question {
            FolderQuestion::Replace(_) => Some(self.appending.take().unwrap_or_default()),
            _ => None,
        };
        let answered = self
            .visitor
            .work(move |person, shared| {
                let file = MailFile::open(shared, person, &open.place)?;
                let candidates = candidates.as_deref();
                let ground = Ground { shared, person, file: &file, open: &open, candidates };
                Ok(match appending {
                    Some(appending) => replace(&ground, request, appending),
                    None => folder::answer(&ground, request),
                })
            })
            .await;
        match answered {
            Ok(answer) => Answer::Folder(Box::new(answer)),
            // Somebody may read here no more, or the database is gone.
            Err(refusal) if refusal == Refusal::no_mailbox() => ended(view, FolderOutcome::Closed),
            Err(refusal) => ended(view, FolderOutcome::Refused(refusal)),
        }
    }

    /// Where the messages can be that a search for words looks for; `None`: anywhere. It is asked for once for all steps of a search.
    async fn candidates(
        &mut self,
        open: &Arc<FolderHandle>,
        request: &FolderRequest,
    ) -> Option<Arc<RoaringBitmap>> {
        let (FolderQuestion::Search(question) | FolderQuestion::Thread(question, _)) = &request.question
        else {
            return None;
        };
        if request.view.exists() <= words::READ_WHOLE {
            return None;
        }
        let known = self.found.take().filter(|(keys, _)| *keys == question.keys && question.cursor.is_some());
        let found = match known {
            Some((_, found)) => found,
            None => Arc::new(words::candidates(&self.visitor, open, &question.keys).await?),
        };
        self.found = Some((question.keys.clone(), Arc::clone(&found)));
        Some(found)
    }

    async fn begin_append(&mut self, message: NewMessage) -> Answer {
        let mailbox = message.mailbox.as_str().to_owned();
        let looked = self
            .visitor
            .work(move |person, shared| {
                let (file, name) = MailFile::of_mailbox(shared, person, &mailbox)?;
                file.folder(name)?;
                file.check_author()
            })
            .await;
        match looked {
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
            self.visitor.shared.workers.run(write).await
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
        let place = appending.place();
        let stored = self
            .visitor
            .work_in(place, move |file, shared| {
                Ok(answer_of(appending.store(file, shared.clock.now_ms(), Vec::new())))
            })
            .await;
        match stored {
            Ok(answer) => answer,
            Err(refusal) if refusal == Refusal::no_mailbox() => Answer::Refused(no_target()),
            Err(refusal) => Answer::Refused(refusal),
        }
    }
}

/// Completes with the next change. Of a database that is gone there is no news; the next question finds it.
async fn has_changed(changes: Option<&mut watch::Receiver<u64>>) {
    if let Some(changes) = changes
        && changes.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// The same of several.
async fn any_has_changed(all: Option<&mut Vec<watch::Receiver<u64>>>) {
    let each: Vec<_> =
        all.into_iter().flatten().map(|changes| Box::pin(has_changed(Some(changes)))).collect();
    if each.is_empty() {
        std::future::pending::<()>().await;
    }
    select_all(each).await;
}

/// The message that was brought takes the place of another one (RFC 8508), in one batch.
fn replace(ground: &Ground<'_>, request: FolderRequest, appending: Appending) -> FolderAnswer {
    let FolderRequest { mut view, question, .. } = request;
    let file = ground.file;
    let outcome = match question {
        FolderQuestion::Replace(named) => {
            folder::first_of(ground, &mut view, &named).and_then(|old| {
                let Some(old) = old else {
                    return Ok(FolderOutcome::Refused(Refusal::new("", "There is no such message")));
                };
                let document = file.database.read(&old, &ReadOptions::default(), &file.access)?;
                let besides = vec![deletion(old, document.revision)];
                let (uid_validity, uids) = appending.store(file, ground.shared.clock.now_ms(), besides)?;
                let uid = uids.first().copied().ok_or_else(DatabaseError::missing)?;
                // The view is brought up to what was done.
                folder::begin(ground, &mut view)?;
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
    match denied(error) {
        Denied::Wrong => LoginVerdict::Wrong,
        Denied::TooMany => LoginVerdict::TooMany,
        Denied::Told(code, text) => LoginVerdict::Refused(Refusal::new(code, &text)),
    }
}
