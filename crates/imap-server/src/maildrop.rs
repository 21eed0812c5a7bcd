//! What a session of POP3 asks, answered from its person's inbox.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_credentials::Protocol;
use scrinium_credentials::sasl::Claim;
use scrinium_database::{Database, DatabaseError, Result};
use scrinium_directory::Person;
use scrinium_imap::ContentId as Content;
use scrinium_mail::INBOX;
use scrinium_mailbox::{FolderView, NumberSet, Selection};
use scrinium_pop3::{
    Answer, ContentId, Entry, LoginVerdict, Maildrop, MaildropAnswer, MaildropOutcome, MaildropQuestion,
    Refusal, Request,
};
use scrinium_pop3_wire::ResponseCode;
use scrinium_port::{Link, Secrecy};

use crate::desk::FolderHandle;
use crate::folder::{self, Ground};
use crate::mail_file::{MailFile, Place, mailbox_of};
use crate::surroundings::Surroundings;
use crate::transfer;
use crate::visitor::{Denied, Visitor, denied};

/// Messages that are deleted as one batch.
const DELETED_AT_ONCE: u32 = 500;

/// Databases whose inbox a session of POP3 has: nobody else gets it meanwhile (RFC 1939, section 8).
#[derive(Clone, Default)]
pub(crate) struct Maildrops(Arc<Mutex<HashSet<[u8; 16]>>>);

/// A maildrop that is a session's until this is dropped.
struct Hold {
    all: Maildrops,
    database: [u8; 16],
}

impl Maildrops {
    /// `None`: another session has it.
    fn take(&self, database: &Database) -> Option<Hold> {
        let database = database.uuid();
        self.0.lock().insert(database).then(|| Hold { all: self.clone(), database })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.database);
    }
}

/// One session's questions, one after the other.
pub(crate) struct MaildropDesk {
    visitor: Visitor,
    open: Option<(Arc<FolderHandle>, Hold)>,
}

/// A maildrop that was opened, with what keeps it for this session.
type Opened = (Maildrop, FolderHandle, Hold);

impl MaildropDesk {
    pub(crate) fn new(shared: Arc<Surroundings>, link: Arc<Link>) -> Self {
        Self { visitor: Visitor::new(shared, link, Protocol::Pop3), open: None }
    }

    /// Answers one question. Who does not wait for the answer drops this.
    pub(crate) async fn answer(&mut self, request: Request, secrecy: &Secrecy) -> Answer {
        match request {
            Request::Greet(_) => Answer::Accepted,
            Request::Account(name) => Answer::Account(self.visitor.scram_account(&name)),
            Request::LogIn(claim) => self.log_in(claim, secrecy).await,
            Request::Open(_) => self.open().await,
            Request::Maildrop(question) => self.about(*question).await,
            Request::Content(ContentId(id), span) => {
                match self.visitor.content(Place::Own, Content(id), span).await {
                    Ok(Some(bytes)) => Answer::Content(bytes),
                    Ok(None) => Answer::Gone,
                    Err(_) => Answer::Trouble,
                }
            }
            Request::Release => {
                self.open = None;
                Answer::Accepted
            }
            // The port itself encrypts.
            Request::StartTls => Answer::Trouble,
        }
    }

    async fn log_in(&mut self, claim: Claim, secrecy: &Secrecy) -> Answer {
        Answer::Login(match self.visitor.log_in(claim, secrecy).await {
            Ok(person) => LoginVerdict::Admitted(person.id.clone()),
            Err(error) => match denied(&error) {
                Denied::Wrong => LoginVerdict::Wrong,
                Denied::TooMany => LoginVerdict::TooMany,
                Denied::Told(word, text) => LoginVerdict::Refused(told(word, &text)),
            },
        })
    }

    async fn open(&mut self) -> Answer {
        match self.visitor.work(open).await {
            Ok(Some((maildrop, handle, hold))) => {
                self.open = Some((Arc::new(handle), hold));
                Answer::Opened(Box::new(maildrop))
            }
            Ok(None) => {
                let text = "Another program is reading this mail by POP3; try again when it is done";
                Answer::Refused(Refusal::new(Some(ResponseCode::InUse), text))
            }
            Err(refusal) => Answer::Refused(told_of(&refusal)),
        }
    }

    async fn about(&mut self, question: MaildropQuestion) -> Answer {
        let (MaildropQuestion::Entries(view, ..) | MaildropQuestion::Delete(view, _)) = &question;
        let before = view.clone();
        let answer = |view, outcome| Answer::Maildrop(Box::new(MaildropAnswer { view, outcome }));
        let Some((open, _)) = &self.open else { return Answer::Trouble };
        let open = Arc::clone(open);
        let answered = self
            .visitor
            .work(move |person, shared| {
                let file = MailFile::open(shared, person, &open.place)?;
                about(&Ground { shared, person, file: &file, open: &open, candidates: None }, question)
            })
            .await;
        match answered {
            Ok((view, outcome)) => answer(view, outcome),
            Err(refusal) => answer(before, MaildropOutcome::Refused(told_of(&refusal))),
        }
    }
}

/// Opens the inbox of a person. `None`: another session has it. Blocks.
fn open(person: &Arc<Person>, shared: &Surroundings) -> Result<Option<Opened>> {
    let file = MailFile::open(shared, person, &Place::Own)?;
    file.make_usual()?;
    let Some(hold) = shared.maildrops.take(&file.database) else { return Ok(None) };
    let info = file.folder(&mailbox_of(INBOX))?;
    let tracker = shared.trackers.of(&file, info.number)?;
    let tracked = tracker.up_to_date()?;
    let view = FolderView::new(u64::from(info.number), info.uid_validity, tracked.state);
    let maildrop = Maildrop { view, bytes: info.bytes };
    let handle = FolderHandle { place: Place::Own, name: info.name.into(), tracker, epoch: tracked.epoch };
    Ok(Some((maildrop, handle, hold)))
}

/// Answers a question about messages. Blocks.
fn about(ground: &Ground<'_>, question: MaildropQuestion) -> Result<(FolderView, MaildropOutcome)> {
    let (mut view, numbers, limit, deletes) = match question {
        MaildropQuestion::Entries(view, numbers, limit) => (view, numbers, limit, false),
        MaildropQuestion::Delete(view, numbers) => (view, numbers, DELETED_AT_ONCE, true),
    };
    let begun = folder::begin(ground, &mut view)?;
    let (desk, tracked) = begun.ok_or_else(DatabaseError::missing)?;
    let is_one = numbers.count() == 1;
    let step = folder::step(&tracked, &view, &Selection::Numbers(numbers), limit);
    let rest = match step.rest {
        Some(Selection::Numbers(rest)) => rest,
        Some(Selection::Uids(_)) | None => NumberSet::default(),
    };
    let found = desk.found(&step.picked)?;
    if deletes {
        let ids = found.into_iter().map(|found| found.member.id).collect();
        transfer::remove(ground.file, &desk.info.name, ids)?;
        return Ok((view, MaildropOutcome::Deleted { rest }));
    }
    let mut entries = Vec::with_capacity(found.len());
    for found in &found {
        let entry = desk.entry(found, &tracked)?;
        let mut bytes = entry.bytes;
        if is_one {
            // It may be fetched next: then its length is that of what comes.
            match ground.shared.messages.open(&ground.file.database, &entry.content, &ground.file.access) {
                Ok(message) => bytes = message.bytes(),
                Err(DatabaseError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            }
        }
        let content = ContentId(entry.content.0);
        entries.push(Entry { number: entry.number, uid: entry.uid, bytes, content });
    }
    Ok((view, MaildropOutcome::Entries { entries, rest }))
}

fn told_of(refusal: &scrinium_imap::Refusal) -> Refusal {
    let word = match &refusal.code {
        Some(scrinium_imap_wire::ResponseCode::Word(word)) => word.as_str(),
        _ => "",
    };
    told(word, &refusal.text)
}

/// A refusal with IMAP's word for it (RFC 5530), as POP3 says it (RFC 3206).
fn told(word: &str, text: &str) -> Refusal {
    let code = match word {
        "AUTHENTICATIONFAILED" | "PRIVACYREQUIRED" | "EXPIRED" => Some(ResponseCode::Auth),
        "CONTACTADMIN" => Some(ResponseCode::SystemPermanent),
        "UNAVAILABLE" | "LIMIT" | "INUSE" | "SERVERBUG" => Some(ResponseCode::SystemTemporary),
        _ => None,
    };
    Refusal::new(code, text)
}
