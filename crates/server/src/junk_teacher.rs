//! What people move into and out of Junk teaches rspamd what they take for spam.
//!
//! A move never waits for that: it is put into a bounded queue, and dropped where that is full. What rules, scripts and filters put into
//! Junk teaches nothing, or a filter would learn from itself.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use scrinium_catalog::is_mail_file;
use scrinium_database::{Access, Database, DatabaseError, MoveWatcher, MovedDocument, SpecialUse};
use scrinium_mail::{JUNK, SOURCE_ATTACHMENT};
use scrinium_smtp_server::{FilterFault, Rspamd, RspamdMessage};
use scrinium_statistics::{Counter, Registry};
use scrinium_worker::WorkerPool;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;

use crate::Shutdown;

/// Who reads what is taught.
static TEACHER: Access = Access::of_the_server("teaching rspamd");

/// Moves that may wait.
const WAITING_MAX: usize = 1_000;

/// A longer message is not taught.
const MESSAGE_MAX_BYTES: u64 = 10 << 20;

/// How long to wait before a lesson is given once more to a controller that is starting or busy: its answer says 500 while
/// another of its processes makes or holds the file that it learns into.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(15)];

/// Gives the password of rspamd's controller, if it has one.
type Password = Box<dyn Fn() -> Result<Option<String>, String> + Send + Sync>;

/// Hears of moves.
pub(crate) struct JunkWatcher {
    waiting: Sender<MovedDocument>,
    dropped: Counter,
}

impl MoveWatcher for JunkWatcher {
    fn moved(&self, moved: MovedDocument) {
        if is_mail_file(moved.database.name()) && self.waiting.try_send(moved).is_err() {
            self.dropped.add(1);
        }
    }
}

/// Teaches rspamd what was moved, one message after the other.
pub(crate) struct JunkTeacher {
    rspamd: Rspamd,
    password: Password,
    timeout: Duration,
    workers: WorkerPool,
    waiting: Receiver<MovedDocument>,
    taught: Counter,
    failed: Counter,
}

/// What a move says of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lesson {
    Spam,
    Ham,
}

impl JunkTeacher {
    /// Registers `Rspamd.Taught`, `Rspamd.Failed` and `Rspamd.Dropped`.
    pub(crate) fn new(
        rspamd: Rspamd,
        (password, timeout): (Password, Duration),
        workers: WorkerPool,
        statistics: &Registry,
    ) -> (Arc<JunkWatcher>, Self) {
        let counter = |name: &str| statistics.counter(&format!("Rspamd.{name}"));
        let (sender, waiting) = mpsc::channel(WAITING_MAX);
        let watcher = JunkWatcher { waiting: sender, dropped: counter("Dropped") };
        let (taught, failed) = (counter("Taught"), counter("Failed"));
        (Arc::new(watcher), Self { rspamd, password, timeout, workers, waiting, taught, failed })
    }

    /// Teaches until the server stops.
    pub(crate) fn start(mut self, stopping: Shutdown) -> JoinHandle<()> {
        tokio::spawn(async move {
            loop {
                let moved = tokio::select! {
                    moved = self.waiting.recv() => moved,
                    () = stopping.wait() => return,
                };
                let Some(moved) = moved else { return };
                tokio::select! {
                    () = self.teach(moved) => {}
                    () = stopping.wait() => return,
                }
            }
        })
    }

    async fn teach(&self, moved: MovedDocument) {
        let (database, id) = (moved.database.name().to_owned(), moved.id.clone());
        let found = self.workers.run(move || lesson(&moved)).await;
        let (lesson, message) = match found {
            Ok(Ok(Some(found))) => found,
            // It moved on, was deleted, or was moved between folders that teach nothing.
            Ok(Ok(None) | Err(DatabaseError::NotFound { .. })) => return,
            Ok(Err(error)) => return self.note(&database, &id, &error.to_string()),
            Err(error) => return self.note(&database, &id, &error.to_string()),
        };
        let password = match (self.password)() {
            Ok(password) => password,
            Err(error) => return self.note(&database, &id, &error),
        };
        match self.give(lesson, password.as_deref(), &message).await {
            Ok(is_new) => {
                self.taught.add(u64::from(is_new));
                tracing::debug!(database, id, ?lesson, is_new, "rspamd has learnt a message");
            }
            Err(error) => self.note(&database, &id, &error.to_string()),
        }
    }

    /// Whether it was new to rspamd.
    async fn give(
        &self,
        lesson: Lesson,
        password: Option<&str>,
        message: &RspamdMessage,
    ) -> Result<bool, FilterFault> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let learning = self.rspamd.learn(lesson == Lesson::Spam, password, message);
            let learnt = tokio::time::timeout(self.timeout, learning).await;
            match learnt.unwrap_or(Err(FilterFault::Time)) {
                Err(error) if error.is_temporary() => match pauses.next() {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return Err(error),
                },
                learnt => return learnt,
            }
        }
    }

    fn note(&self, database: &str, id: &str, error: &str) {
        self.failed.add(1);
        tracing::warn!(database, id, error, "rspamd has not learnt a message that somebody moved");
    }
}

/// What a move teaches, if it does, and the message. Blocks.
fn lesson(moved: &MovedDocument) -> Result<Option<(Lesson, RspamdMessage)>, DatabaseError> {
    let database = &moved.database;
    let uses = |folder: &str, name: &str, special_use: SpecialUse| {
        let known = database.folder(folder, None).ok().and_then(|folder| folder.special_use);
        known == Some(special_use) || known.is_none() && folder.eq_ignore_ascii_case(name)
    };
    let is_junk = |folder: &str| uses(folder, JUNK, SpecialUse::Junk);
    let lesson = match (is_junk(&moved.from), is_junk(&moved.to)) {
        (false, true) => Lesson::Spam,
        // Who throws spam away does not say that it is fine.
        (true, false) if !uses(&moved.to, "Trash", SpecialUse::Trash) => Lesson::Ham,
        _ => return Ok(None),
    };
    let message = message_of(database, &moved.id)?;
    Ok(message.map(|message| (lesson, message)))
}

fn message_of(database: &Arc<Database>, id: &str) -> Result<Option<RspamdMessage>, DatabaseError> {
    let reader = database.open_attachment(id, SOURCE_ATTACHMENT, None, &TEACHER)?;
    let length = reader.length;
    if length > MESSAGE_MAX_BYTES {
        return Ok(None);
    }
    let read = move |place: u64, bytes: usize| -> io::Result<Bytes> {
        reader.read(place, bytes).map_err(|error| io::Error::other(error.to_string()))
    };
    Ok(Some(RspamdMessage::new(length, read)))
}
