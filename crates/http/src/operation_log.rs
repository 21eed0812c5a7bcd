//! A log of what is done to the server, without contents, from which the laboratory makes a workload.
//!
//! A text file. Each start of the server writes a line of its own, then there is a line for each request, with a blank
//! between two fields:
//!
//! ```text
//! # scrinium-operation-log/1 1790000000000
//! 1790000000123 5f3759df0badcafe OPEN_NOTE own 1f2e3d4c5b6a7988 2311 4 200
//! ```
//!
//! That is: when the request came (ms since 1970), who asked, the operation, what kind of database (`own` mail file,
//! mail `box`, `shared`, or `-` for the directory and where there is none), which database, bytes (of the request where
//! it writes, else of the answer; 0 where they are not known beforehand), milliseconds to the answer, its status. People
//! and databases are hashes with a key that is drawn at each start and kept nowhere: they tell the same from another and
//! nothing else.
//!
//! Requests never wait for it. They hand a line to a thread by a bounded queue; what does not fit is counted and left
//! out. A file that is full is renamed, with `.1` at its end, in place of the one before it.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use scrinium_catalog::is_mailbox;
use scrinium_clock::Clock;
use scrinium_statistics::{Counter, Registry};

use crate::operations::Operation;

/// Lines that may wait to be written.
const QUEUE: usize = 8192;

/// What was handed over is in the file after this time.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// The database of people.
const DIRECTORY: &str = "directory";

/// Where the log is, and how large a file of it may become.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct OperationLogOptions {
    pub path: PathBuf,
    pub max_bytes: u64,
}

/// Takes what is done, and never waits.
pub(crate) struct OperationLog {
    sender: Option<SyncSender<String>>,
    clock: Clock,
    key: RandomState,
    left_out: Counter,
}

/// A request, as far as the log says something of it.
pub(crate) struct LoggedRequest<'r> {
    pub(crate) database: Option<&'r str>,
    pub(crate) person: &'r str,
    pub(crate) writes: bool,
    /// The length of its body, where it says so.
    pub(crate) sent_bytes: Option<u64>,
}

/// And its answer.
pub(crate) struct LoggedAnswer {
    pub(crate) operation: Operation,
    pub(crate) status: u16,
    pub(crate) length: Option<u64>,
    /// It is the first revision of a document.
    pub(crate) is_first_revision: bool,
}

/// A request that is being answered.
pub(crate) struct Entry {
    time_ms: u64,
    began: Instant,
    person: u64,
    kind: &'static str,
    database: u64,
    bytes: Option<u64>,
}

impl OperationLog {
    /// Begins a log, if there is to be one. A file that cannot be written is logged as a warning.
    pub(crate) fn begin(options: Option<&OperationLogOptions>, statistics: &Registry, clock: &Clock) -> Self {
        let sender = options.and_then(|options| {
            let (sender, lines) = sync_channel(QUEUE);
            let (options, began_ms) = (options.clone(), clock.now_ms());
            let thread = std::thread::Builder::new().name("operation log".to_owned());
            let begun = thread.spawn(move || {
                if let Err(error) = write_lines(&options, began_ms, &lines) {
                    tracing::warn!(path = %options.path.display(), %error, "the operation log stops: it cannot be written");
                }
            });
            begun.ok().map(|_| sender)
        });
        let left_out = statistics.counter("HTTP.OperationLog.LeftOut");
        Self { sender, clock: clock.clone(), key: RandomState::new(), left_out }
    }

    /// What is about to be done; `None` where nobody wants to know.
    pub(crate) fn entry(&self, request: &LoggedRequest<'_>) -> Option<Entry> {
        self.sender.as_ref()?;
        let (database, person) = (request.database, request.person);
        let kind = match database {
            // People are registered by administrators, which is no user's work.
            None | Some(DIRECTORY) => "-",
            Some(name) if name.strip_prefix("mail/") == Some(person) => "own",
            Some(name) if is_mailbox(name) => "box",
            Some(_) => "shared",
        };
        Some(Entry {
            time_ms: self.clock.now_ms(),
            began: Instant::now(),
            person: self.key.hash_one(("person", person)),
            kind,
            database: self.key.hash_one(("database", database.unwrap_or_default())),
            bytes: request.writes.then(|| request.sent_bytes.unwrap_or(0)),
        })
    }

    /// It has been done.
    pub(crate) fn record(&self, entry: &Entry, answer: &LoggedAnswer) {
        let Some(sender) = &self.sender else { return };
        let operation = match answer.operation {
            // A workload makes as many documents as were made.
            Operation::UpdateNote if answer.is_first_revision => "CREATE_NOTE",
            operation => operation.name(),
        };
        let line = format!(
            "{} {:016x} {operation} {} {:016x} {} {} {}\n",
            entry.time_ms,
            entry.person,
            entry.kind,
            entry.database,
            entry.bytes.or(answer.length).unwrap_or(0),
            entry.began.elapsed().as_millis(),
            answer.status,
        );
        if sender.try_send(line).is_err() {
            self.left_out.add(1);
        }
    }
}

/// Writes until the last who hands over lines has gone.
fn write_lines(
    options: &OperationLogOptions,
    began_ms: u64,
    lines: &Receiver<String>,
) -> std::io::Result<()> {
    let mut log = LogFile::open(options, began_ms)?;
    loop {
        match lines.recv_timeout(FLUSH_EVERY) {
            Ok(line) => log.write(options, &line)?,
            Err(RecvTimeoutError::Timeout) => log.file.flush()?,
            Err(RecvTimeoutError::Disconnected) => return log.file.flush(),
        }
        if log.flushed.elapsed() >= FLUSH_EVERY {
            log.file.flush()?;
            log.flushed = Instant::now();
        }
    }
}

struct LogFile {
    file: BufWriter<File>,
    bytes: u64,
    /// The line that begins each file of this start.
    head: String,
    flushed: Instant,
}

impl LogFile {
    fn open(options: &OperationLogOptions, began_ms: u64) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(&options.path)?;
        let bytes = file.metadata()?.len();
        let head = format!("# scrinium-operation-log/1 {began_ms}\n");
        let mut log = Self { file: BufWriter::new(file), bytes, head: head.clone(), flushed: Instant::now() };
        log.write(options, &head)?;
        Ok(log)
    }

    fn write(&mut self, options: &OperationLogOptions, line: &str) -> std::io::Result<()> {
        if self.bytes.saturating_add(line.len() as u64) > options.max_bytes {
            self.file.flush()?;
            let mut old = options.path.clone().into_os_string();
            old.push(".1");
            std::fs::rename(&options.path, old)?;
            let file = OpenOptions::new().create(true).append(true).open(&options.path)?;
            self.file = BufWriter::new(file);
            self.file.write_all(self.head.as_bytes())?;
            self.bytes = self.head.len() as u64;
        }
        self.file.write_all(line.as_bytes())?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}
