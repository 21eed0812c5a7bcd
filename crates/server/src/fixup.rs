//! Fixups that the console has begun: one at a time, in the background, and their reports.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use scrinium_catalog::Databases;
use scrinium_maintenance::{Finding, FindingOutcome, FixupOptions, FixupReport};
use scrinium_statistics::{Counter, Registry};
use serde_json::{Value, json};

use crate::console::{FixupOrder, Reply};

/// As of builds of views.
const NICENESS: i32 = 10;

/// Reports that are kept.
const REPORTS_KEPT: usize = 10;

/// Records of what was set aside that one answer tells.
const ASIDE_MAX: usize = 1000;

/// Their values together have at most this many bytes in one answer.
const ASIDE_BYTES_MAX: usize = 8 << 20;

/// What the console's fixups have found.
#[derive(Clone)]
pub(crate) struct Fixups {
    shared: Arc<SharedFixup>,
}

struct SharedFixup {
    runs: Counter,
    documents: Counter,
    repaired: Counter,
    set_aside: Counter,
    left: Counter,
    running: AtomicBool,
    /// The newest first.
    ended: Mutex<VecDeque<Ended>>,
}

struct Ended {
    database: String,
    at: Timestamp,
    result: Result<FixupReport, String>,
}

impl Fixups {
    /// Counts what they do.
    pub(crate) fn new(statistics: &Registry) -> Self {
        let counter = |name: &str| statistics.counter(&format!("Database.Fixup.{name}"));
        let shared = SharedFixup {
            runs: counter("Runs"),
            documents: counter("Documents"),
            repaired: counter("Repaired"),
            set_aside: counter("SetAside"),
            left: counter("Left"),
            running: AtomicBool::new(false),
            ended: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Begins one.
    ///
    /// # Errors
    /// In words: one is running, or no thread can be had.
    pub(crate) fn begin(&self, databases: &Databases, order: &FixupOrder) -> Result<(), String> {
        if order.database != "*" {
            databases.check_name(&order.database).map_err(|error| format!("{}: {error}", order.database))?;
        }
        if self.shared.running.swap(true, Ordering::AcqRel) {
            return Err(
                "a fixup is running; show tasks shows its progress, tell NUMBER quit ends it".to_owned()
            );
        }
        let (fixups, databases, order) = (self.clone(), databases.clone(), order.clone());
        let begun = std::thread::Builder::new().name("fixup".to_owned()).spawn(move || {
            let result = std::thread::scope(|scope| scope.spawn(|| run(&databases, &order)).join());
            let result = result.unwrap_or_else(|_| Err("it ended by a fault of the program".to_owned()));
            fixups.end(&order, result, databases.clock().timestamp());
        });
        begun.map(drop).map_err(|error| {
            self.shared.running.store(false, Ordering::Release);
            format!("cannot start a thread for it: {error}")
        })
    }

    fn end(&self, order: &FixupOrder, result: Result<FixupReport, String>, at: Timestamp) {
        if let Ok(report) = &result {
            self.shared.runs.add(1);
            self.shared.documents.add(report.documents);
            self.shared.repaired.add(report.count(FindingOutcome::Repaired));
            self.shared.set_aside.add(report.count(FindingOutcome::SetAside));
            self.shared.left.add(report.count(FindingOutcome::Left));
        }
        let mut ended = self.shared.ended.lock();
        ended.truncate(REPORTS_KEPT - 1);
        ended.push_front(Ended { database: order.database.clone(), at, result });
        self.shared.running.store(false, Ordering::Release);
    }

    /// The last reports; the newest in full.
    pub(crate) fn show(&self) -> Reply {
        let ended = self.shared.ended.lock();
        let mut text = String::new();
        let mut reports = Vec::new();
        for (place, Ended { database, at, result }) in ended.iter().enumerate() {
            let at = at.strftime("%Y-%m-%d %H:%M:%S");
            let told = match result {
                Err(error) => format!("not done: {error}\n"),
                Ok(report) if place == 0 => report.to_text(),
                Ok(report) => report.to_text().lines().last().unwrap_or_default().to_owned() + "\n",
            };
            text.push_str(&format!("{at}  {database}\n{told}"));
            reports.push(json!({
                "database": database,
                "ended": at.to_string(),
                "error": result.as_ref().err(),
                "report": result.as_ref().ok().filter(|_| place == 0).map(FixupReport::to_json),
            }));
        }
        if reports.is_empty() {
            text.push_str(
                "No fixup has ended since the server was started; load fixup DATABASE begins one.\n",
            );
        }
        Reply { text, data: json!({"reports": reports}) }
    }
}

fn run(databases: &Databases, order: &FixupOrder) -> Result<FixupReport, String> {
    // Those who answer somebody come first; where that may not be said, it is as urgent as anything else.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
    let name = Some(order.database.as_str()).filter(|name| *name != "*");
    let options = FixupOptions { views: order.views, contents: !order.quick, repair: !order.look };
    let report = scrinium_maintenance::fixup(databases, name, options, |finding| tell(finding, order.log));
    let report = report.map_err(|error| error.to_string()).inspect_err(|error| {
        tracing::warn!(database = order.database, error, "the fixup was not done");
    })?;
    tracing::info!(
        database = order.database,
        databases = report.databases,
        documents = report.documents,
        records = report.records,
        repaired = report.count(FindingOutcome::Repaired),
        set_aside = report.count(FindingOutcome::SetAside),
        left = report.count(FindingOutcome::Left),
        "the fixup is done; show fixup shows what it found"
    );
    Ok(report)
}

/// What was put aside or left is worth a line in any case; what was repaired with `-L`.
fn tell(finding: &Finding, all: bool) {
    let Finding { database, kind, subject, detail, outcome } = finding;
    let (kind, word) = (kind.word(), outcome.word());
    match outcome {
        FindingOutcome::Repaired if all => {
            tracing::info!(database, kind, subject, detail, outcome = word, "fixup");
        }
        FindingOutcome::Repaired => {}
        FindingOutcome::SetAside | FindingOutcome::Left => {
            tracing::warn!(database, kind, subject, detail, outcome = word, "fixup");
        }
    }
}

/// What was set aside, of one database or of all, as far as one answer takes.
///
/// # Errors
/// In words.
pub(crate) fn show_aside(databases: &Databases, database: Option<&str>) -> Result<Reply, String> {
    let (mut text, mut records, mut bytes, mut more) = (String::new(), Vec::<Value>::new(), 0, false);
    let listed = scrinium_maintenance::each_set_aside(databases, database, |found| {
        more = records.len() >= ASIDE_MAX || bytes >= ASIDE_BYTES_MAX;
        if !more {
            bytes += found.value.len();
            text.push_str(&format!("{}\n", found.to_line()));
            records.push(found.to_json());
        }
        !more
    });
    listed.map_err(|error| error.to_string())?;
    if records.is_empty() {
        text.push_str("Nothing is set aside.\n");
    }
    if more {
        text.push_str(
            "There is more; scrinium fixup --list-set-aside shows all while the server is stopped.\n",
        );
    }
    Ok(Reply { text, data: json!({"set_aside": records, "more": more}) })
}
