//! A server in a process of its own, with a fresh store, and a discussion database on it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a benchmark stops at the first error"
)]

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Connection, crowd, work};
use crate::discussion::{date, document, id, letters};
use crate::process::{Process, command, used_ticks};
use crate::{folder, scatter};

/// The administrator's password.
pub const PASSWORD: &str = "a password of the benchmark";
const AT_ONCE: u64 = 2000;
/// What a document of the discussion has without a text.
const DOCUMENT_BYTES: usize = 600;
/// What a request that stores documents may bring.
const REQUEST_BYTES: usize = 2 << 20;
/// A compaction that was asked for begins within this time, or found nothing to do.
const BEGUN_WITHIN: Duration = Duration::from_secs(5);
const COMPACTED_WITHIN: Duration = Duration::from_secs(3600);
const SETTLED_WITHIN: Duration = Duration::from_secs(3600);

/// A server is at rest if it used no more than this many hundredths of a second in each of this many looks.
const LOOK: Duration = Duration::from_millis(500);
const QUIET_TICKS: u64 = 2;
const QUIET_LOOKS: u32 = 4;

/// A server that ends, and whose folder goes, when this is dropped.
#[derive(Debug)]
pub struct Server {
    process: Process,
    address: SocketAddr,
    folder: TempDir,
}

impl Server {
    /// Starts the program with configuration keys from its environment, such as `SCRINIUM_MEMORY__BUDGET`, and waits
    /// until it answers.
    ///
    /// # Panics
    /// If it does not within a minute.
    #[must_use]
    pub fn start(program: &str, settings: &[(&str, &str)]) -> Self {
        Self::start_in(folder(), program, settings)
    }

    /// As [`Server::start`], with a folder that a server has used before.
    ///
    /// # Panics
    /// If it does not answer within a minute.
    #[must_use]
    pub fn start_in(folder: TempDir, program: &str, settings: &[(&str, &str)]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut command = command(program, None);
        command.args(["serve", "--data-dir"]).arg(folder.path());
        command.env("SCRINIUM_HTTP__LISTEN", address.to_string());
        command.env("SCRINIUM_ADMIN_PASSWORD", PASSWORD).env("SCRINIUM_TRACING__LEVEL", "warn");
        command.envs(settings.iter().copied()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut process = Process::start(&mut command, Signal::KILL);
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(!process.has_ended(), "the server ended at once");
            assert!(began.elapsed() < Duration::from_secs(60), "the server did not start");
            std::thread::sleep(Duration::from_millis(2));
        }
        Self { process, address, folder }
    }

    /// Kills it with SIGKILL and gives its folder as it is then.
    #[must_use]
    pub fn kill(self) -> TempDir {
        drop(self.process);
        self.folder
    }

    /// Has it end in order, and gives its folder.
    #[must_use]
    pub fn stop(self) -> TempDir {
        self.process.end(Signal::TERM);
        self.folder
    }

    /// A statistic, by its name; 0 if there is none.
    ///
    /// # Panics
    /// If the server does not answer.
    #[must_use]
    pub fn statistic(connection: &mut Connection, name: &str) -> f64 {
        let command = json!({"command": format!("show stat {name}")}).to_string();
        let answer: Value = serde_json::from_str(connection.request("POST", "/_console", &command)).unwrap();
        answer["data"]["statistics"][name].as_f64().unwrap_or_default()
    }

    /// Waits until the compaction of a database that was asked for is done.
    ///
    /// # Panics
    /// If it takes more than an hour.
    pub fn await_compaction(connection: &mut Connection, path: &str) {
        let mut is_running = || connection.request("GET", path, "").contains("\"compact_running\":true");
        let asked = Instant::now();
        while !is_running() && asked.elapsed() < BEGUN_WITHIN {
            std::thread::sleep(Duration::from_millis(5));
        }
        while is_running() {
            assert!(asked.elapsed() < COMPACTED_WITHIN, "the compaction of {path} does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until it has nothing left to do: no compaction is due, and for two seconds its process hardly works.
    ///
    /// # Panics
    /// If it takes more than an hour.
    pub fn settle(&self) {
        let (mut connection, began, mut quiet) = (self.connect(), Instant::now(), 0);
        while quiet < QUIET_LOOKS {
            assert!(began.elapsed() < SETTLED_WITHIN, "the server has not come to rest");
            let before = used_ticks(self.process_id());
            std::thread::sleep(LOOK);
            let works = used_ticks(self.process_id()) - before > QUIET_TICKS;
            let is_due = Self::statistic(&mut connection, "Database.Compact.BytesPending") > 0.0;
            quiet = if works || is_due { 0 } else { quiet + 1 };
        }
    }

    /// Bytes of all files of the databases, without the log.
    ///
    /// # Panics
    /// If there is no store.
    #[must_use]
    pub fn tree_bytes(&self) -> u64 {
        let files = std::fs::read_dir(self.folder().join("store/tree")).unwrap().flatten();
        files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection of the administrator.
    #[must_use]
    pub fn connect(&self) -> Connection {
        Connection::open(self.address, "admin", PASSWORD)
    }

    /// Where it keeps everything.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The number of its process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }
}

/// One operation of this many is an update.
const UPDATE_EVERY: u64 = 5;

/// The view that is read where none is named.
const VIEW: &str = "discussion/_view/all%20documents";

/// How long operations took, in microseconds.
#[derive(Debug, Default)]
pub struct Times {
    /// Pages, or documents, that were read.
    pub reads: Vec<f64>,
    /// Updates of documents.
    pub updates: Vec<f64>,
}

impl Times {
    /// How many operations there were.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.reads.len() + self.updates.len()
    }

    /// All of them.
    #[must_use]
    pub fn all(self) -> Vec<f64> {
        [self.reads, self.updates].concat()
    }

    /// From what clients did: whether it was an update, and how long it took.
    #[must_use]
    pub fn of(done: impl IntoIterator<Item = (bool, f64)>) -> Self {
        let mut times = Self::default();
        for (is_update, took) in done {
            if is_update { &mut times.updates } else { &mut times.reads }.push(took);
        }
        times
    }
}

/// What clients of a discussion read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Pages of the view of all documents.
    Pages,
    /// Documents.
    Documents,
}

/// A database of the discussion's documents, and their revisions.
#[derive(Debug)]
pub struct Discussion {
    /// `/` and its name.
    pub path: String,
    text_bytes: usize,
    revisions: Vec<Mutex<String>>,
}

impl Discussion {
    /// Makes a database with this many documents.
    ///
    /// # Panics
    /// If the server refuses something.
    #[must_use]
    pub fn fill(server: &Server, name: &str, documents: u64) -> Self {
        let mut discussion = Self::with_texts(server, name, 0);
        discussion.grow(server, documents);
        discussion
    }

    /// Makes a database without documents; those that come will each have a text of this many bytes besides the rest.
    ///
    /// # Panics
    /// If the server refuses it.
    #[must_use]
    pub fn with_texts(server: &Server, name: &str, text_bytes: usize) -> Self {
        let path = format!("/{name}");
        server.connect().request("PUT", &path, "");
        Self { path, text_bytes, revisions: Vec::new() }
    }

    /// Document number `number`.
    #[must_use]
    pub fn document(&self, number: u64) -> Value {
        let mut document = document(number);
        if self.text_bytes > 0 {
            document["Text"] = json!(letters(number, self.text_bytes));
        }
        document
    }

    /// How many documents a request stores at most.
    #[must_use]
    pub const fn at_once(&self) -> u64 {
        let fit = (REQUEST_BYTES / (DOCUMENT_BYTES + self.text_bytes)) as u64;
        if fit == 0 {
            1
        } else if fit > AT_ONCE {
            AT_ONCE
        } else {
            fit
        }
    }

    /// Adds documents until there are this many.
    ///
    /// # Panics
    /// If the server refuses something.
    pub fn grow(&mut self, server: &Server, documents: u64) {
        let at_once = self.at_once();
        let starts: Vec<u64> = (self.documents()..documents).step_by(at_once as usize).collect();
        // One makes documents while the other's are stored.
        let writers = starts.len().min(2);
        let write = |writer: usize| {
            let mut connection = server.connect();
            let parts = starts.iter().skip(writer).step_by(writers);
            let part = |start: u64| start..documents.min(start + at_once);
            parts.map(|start| (*start, self.store(&mut connection, part(*start)))).collect()
        };
        let mut stored: Vec<(u64, Vec<String>)> = std::thread::scope(|scope| {
            let write = &write;
            let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
            threads.into_iter().flat_map(|thread| -> Vec<_> { thread.join().unwrap() }).collect()
        });
        stored.sort();
        self.revisions.extend(stored.into_iter().flat_map(|(_, revisions)| revisions).map(Mutex::new));
    }

    fn store(&self, connection: &mut Connection, numbers: Range<u64>) -> Vec<String> {
        let list: Vec<Value> = numbers.map(|number| self.document(number)).collect();
        let body = json!({"docs": list}).to_string();
        let answer = connection.request("POST", &format!("{}/_bulk_docs", self.path), &body);
        let results: Vec<Value> = serde_json::from_str(answer).unwrap();
        results.iter().map(|result| result["rev"].as_str().unwrap().to_owned()).collect()
    }

    /// How many there are.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.revisions.len() as u64
    }

    /// Gives a document another date, as one who has it open: no look at it before. Clients may share a database.
    ///
    /// # Panics
    /// If the server refuses it.
    pub fn update(&self, connection: &mut Connection, random: u64) {
        let number = random % self.documents();
        let mut revision = self.revisions[number as usize].lock().unwrap();
        let mut next = self.document(number);
        next["_rev"] = json!(*revision);
        next["Date"] = json!(date(scatter(random)));
        let answer = connection.request("PUT", &format!("{}/{}", self.path, id(number)), &next.to_string());
        *revision = revision_of(answer);
    }

    /// Reads 30 entries of a view, addressed as `discussion/_view/all%20documents`.
    ///
    /// # Panics
    /// If there are no entries there.
    pub fn read_page<'a>(&self, connection: &'a mut Connection, view: &str, parameters: &str) -> &'a str {
        let path = format!("{}/_design/{view}?limit=30&{parameters}", self.path);
        let answer = connection.request("GET", &path, "");
        assert!(answer.contains("\"id\":"), "{path}: {answer}");
        answer
    }

    /// One operation: an update, or a read at a random place. Whether it was an update.
    ///
    /// # Panics
    /// If the server refuses it.
    pub fn operate(&self, connection: &mut Connection, reads: Reads, random: u64) -> bool {
        let is_update = random.is_multiple_of(UPDATE_EVERY);
        let random = scatter(random);
        if is_update {
            self.update(connection, random);
        } else if reads == Reads::Pages {
            let start = random % (self.documents() - 30);
            self.read_page(connection, VIEW, &format!("start={start}"));
        } else {
            let path = format!("{}/{}", self.path, id(random % self.documents()));
            connection.request("GET", &path, "");
        }
        is_update
    }

    /// This many clients work with these think times while `meanwhile` runs.
    #[must_use]
    pub fn load<M>(
        &self,
        server: &Server,
        (clients, reads): (u64, Reads),
        think: Duration,
        seed: u64,
        meanwhile: impl FnOnce() -> M,
    ) -> (Times, M) {
        let client = |number: u64, end: &AtomicBool| {
            let mut connection = server.connect();
            let seed = scatter(seed << 16 ^ number);
            work(think, end, seed, |random| self.operate(&mut connection, reads, random))
        };
        let (done, meant) = crowd(clients, client, meanwhile);
        (Times::of(done.into_iter().flatten()), meant)
    }

    /// Stores a design document and waits until its views are built; gives its revision.
    ///
    /// # Panics
    /// If the server refuses it.
    pub fn build(&self, connection: &mut Connection, design: &Value) -> String {
        let path = format!("{}/{}", self.path, design["_id"].as_str().unwrap());
        let revision = revision_of(connection.request("PUT", &path, &design.to_string()));
        let view = design["views"].as_object().unwrap().keys().next().unwrap().replace(' ', "%20");
        connection.request("GET", &format!("{path}/_view/{view}?limit=0&update=true"), "");
        revision
    }

    /// Removes a design document and its indexes.
    ///
    /// # Panics
    /// If the server refuses it.
    pub fn remove(&self, connection: &mut Connection, design: &Value, revision: &str) {
        let path = format!("{}/{}?rev={revision}", self.path, design["_id"].as_str().unwrap());
        connection.request("DELETE", &path, "");
        connection.request("POST", &format!("{}/_view_cleanup", self.path), "");
    }
}

fn revision_of(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["rev"].as_str().unwrap().to_owned()
}
