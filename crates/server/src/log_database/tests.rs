//! The log database without its thread: the tests say when a round is.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod keeping;
mod views;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use scrinium_clock::ManualClock;
use scrinium_database::{Access, DatabaseOptions, RowQuery};
use scrinium_http::{Observer, Operated, Used};
use scrinium_statistics::Tasks;
use scrinium_store::{Store, StoreOptions};
use tempfile::TempDir;
use tracing_subscriber::layer::SubscriberExt;

use super::usage::PAIRS_MAX;
use super::writer::Writer;
use super::*;

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a test");

const HOUR: Duration = Duration::from_secs(3600);

/// A log database in a folder of its own, and no thread: the test says when a round is, and what the time is then.
struct World {
    store: Store,
    databases: Databases,
    statistics: Registry,
    log: LogDatabase,
    clock: ManualClock,
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let (folder, statistics) = (tempfile::tempdir().unwrap(), Registry::new());
        let clock = Clock::manual(1_800_000_000_000);
        let (store, databases) = open(folder.path(), &statistics, 0, &clock);
        let log = LogDatabase::new(&statistics, store.clock());
        log.shared.names.server.set("here".to_owned()).unwrap();
        Self { store, databases, statistics, log, clock, folder }
    }

    fn writer(&self, now: Timestamp) -> Writer {
        let (databases, statistics) = (self.databases.clone(), self.statistics.clone());
        let keep = Box::new(|| Keep { documents: HOUR, mail: HOUR, hourly: HOUR, audit: HOUR });
        let mut writer = Writer::new(
            self.log.clone(),
            LogParts { databases, statistics, name: "log".to_owned(), keep },
            now,
        );
        writer.open().unwrap();
        writer
    }

    /// All documents but design documents, in the order of their ids.
    fn documents(&self) -> Vec<Value> {
        let query = RowQuery { include_documents: true, ..RowQuery::default() };
        let mut rows = self.databases.get("log").unwrap().all_documents(query, &SERVER).unwrap();
        let rows = rows.next_rows(usize::MAX).unwrap().into_iter();
        let documents = rows.map(|row| serde_json::from_str(&row.document.unwrap()).unwrap());
        documents.filter(|document: &Value| !document["_id"].as_str().unwrap().starts_with('_')).collect()
    }

    fn of(&self, class: Class) -> Vec<Value> {
        self.documents().into_iter().filter(|document| document["Form"] == class.form()).collect()
    }

    /// The ids and values of a view's rows.
    fn view(&self, design: &str, name: &str) -> Vec<(String, String)> {
        let query = RowQuery { reduce: Some(false), ..RowQuery::default() };
        let mut rows = self.databases.get("log").unwrap().view(design, name, query, &SERVER).unwrap();
        let rows = rows.next_rows(usize::MAX).unwrap().into_iter();
        rows.map(|row| (row.id.unwrap(), row.value.unwrap().into())).collect()
    }

    /// A time of the day on which these tests take place.
    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minutes * 60).unwrap()
    }

    fn event(&self, text: &str) {
        self.log.record(Class::Event, || fields_of(json!({"Level": "info", "Source": "test", "Text": text})));
    }
}

fn open(folder: &Path, statistics: &Registry, reserve_bytes: u64, clock: &ManualClock) -> (Store, Databases) {
    let mut options = StoreOptions::new(folder);
    options.budget_bytes = Some(32 << 20);
    options.log_extent_bytes = 1 << 20;
    options.reserve_bytes = reserve_bytes;
    options.clock = clock.clock();
    let store = Store::open(options, statistics).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    (store, databases)
}

#[test]
fn what_is_told_is_stored_once_and_what_is_over_a_limit_is_counted() {
    let world = World::new();
    let mut writer = world.writer(World::at(0));
    world.log.shared.per_minute.store(4, Ordering::Relaxed);
    let layer = tracing_subscriber::registry().with(EventLayer(world.log.clone()));
    tracing::subscriber::with_default(layer, || {
        for number in 0..10 {
            world.clock.advance(Duration::from_millis(1));
            tracing::info!(target: "somewhere", number, name = "n", "told");
            tracing::debug!(target: "somewhere", "not told");
        }
        quietly(|| tracing::error!(target: "somewhere", "told by the writer"));
    });
    quietly(|| {
        (0..3).for_each(|_| writer.round(World::at(0)));
        writer.round(World::at(60));
    });
    let events = world.of(Class::Event);
    let told = events.iter().filter(|event| event["Text"] == "told").count();
    assert_eq!(told, 4);
    let first = &events[0];
    assert_eq!((&first["Level"], &first["Server"]), (&json!("info"), &json!("here")));
    assert_eq!(first["Source"], "somewhere");
    assert_eq!(first["Fields"], json!({"number": 0, "name": "n"}));
    let last = events.last().unwrap();
    assert_eq!(last["Text"], "6 events were left out of the log database");
    assert_eq!(events.len(), 5);
    let counters = world.statistics.snapshot().counters;
    assert_eq!(counters["LogDatabase.LeftOut"], 6);
    assert_eq!(counters["LogDatabase.Written"], world.documents().len() as u64);
}

#[test]
fn an_idle_server_writes_its_statistics_and_nothing_else() {
    let world = World::new();
    let mut writer = world.writer(World::at(0));
    let tasks = Tasks::new();
    world.databases.set_tasks(&tasks);
    let log = world.log.clone();
    tasks.on_end(move |task| log.task_run(task));
    let layer = tracing_subscriber::registry().with(EventLayer(world.log.clone()));
    tracing::subscriber::with_default(layer, || {
        quietly(|| (0..180).for_each(|minute| writer.round(World::at(minute))));
    });
    quietly(|| writer.end(World::at(180)));
    let mut forms: BTreeMap<String, usize> = BTreeMap::new();
    for document in world.documents() {
        *forms.entry(document["Form"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let expected =
        [("HourlyStatistics", 2), ("Statistics", 179)].map(|(form, count)| (form.to_owned(), count));
    // 1,800,000,000 is the beginning of an hour.
    assert_eq!(forms, BTreeMap::from(expected));
}

#[test]
fn usage_is_added_up_by_person_and_database_and_bounded() {
    let world = World::new();
    let mut writer = world.writer(World::at(0));
    let used = |database: &str, person, writes| {
        world.log.used(&Used { database, person, writes, received_bytes: 7, sent_bytes: 100 });
    };
    (0..3).for_each(|_| used("mail/ada", Some("ada"), false));
    used("mail/ada", Some("ada"), true);
    used("mail/ada", None, false);
    (0..PAIRS_MAX).for_each(|number| used(&format!("d{number}"), Some("bob"), true));
    quietly(|| writer.end(World::at(20)));
    let lines = world.of(Class::Usage);
    assert_eq!(lines.len(), PAIRS_MAX + 1, "those of all that could not be told apart are one line");
    let line = |database: &str, person: &str| {
        let found = lines.iter().find(|line| line["Database"] == database && line["Person"] == person);
        let found = found.unwrap();
        ["Reads", "Writes", "ReceivedBytes", "SentBytes"].map(|field| found[field].as_u64().unwrap())
    };
    assert_eq!(line("mail/ada", "ada"), [3, 1, 28, 400]);
    assert_eq!(line("mail/ada", ""), [1, 0, 7, 100]);
    assert_eq!(line("", ""), [0, 2, 14, 200]);
    assert_eq!(lines[0]["Since"], time_text(World::at(0)));
}

#[test]
fn slow_operations_have_a_threshold() {
    let world = World::new();
    let mut writer = world.writer(World::at(0));
    let operated = |milliseconds| {
        let elapsed = Duration::from_millis(milliseconds);
        let waited = Duration::from_millis(5);
        world.log.operated(&Operated {
            operation: "OPEN_NOTE",
            database: "a",
            person: Some("ada"),
            elapsed,
            waited,
        });
    };
    operated(100_000);
    let mut settings = Settings::default();
    settings.log_database.slow_after = Duration::from_millis(500);
    world.log.set(&settings);
    operated(499);
    operated(500);
    quietly(|| writer.end(World::at(1)));
    let [slow] = <[Value; 1]>::try_from(world.of(Class::Slow)).unwrap();
    let fields = ["Operation", "Database", "Person", "Milliseconds", "WaitMilliseconds"]
        .map(|name| slow[name].clone());
    assert_eq!(json!(fields), json!(["OPEN_NOTE", "a", "ada", 500, 5]));
}

#[test]
fn a_full_disk_is_told_once_and_what_fits_into_memory_is_stored_later() {
    let mut world = World::new();
    world.event("before");
    quietly(|| world.writer(World::at(0)).end(World::at(0)));
    let World { store, databases, statistics, log, clock, folder } = world;
    drop(databases);
    store.close().unwrap();
    let (store, databases) = open(folder.path(), &statistics, 1 << 60, &clock);
    world = World { store, databases, statistics, log, clock, folder };
    let mut writer = world.writer(World::at(0));
    let told = world.log.clone();
    // Of what the writer tells, the layer records nothing: it is counted by one of its own.
    let counted = Arc::new(AtomicU64::new(0));
    let subscriber =
        tracing_subscriber::registry().with(Warnings(Arc::clone(&counted))).with(EventLayer(told));
    tracing::subscriber::with_default(subscriber, || {
        for number in 0..30_000 {
            world.event(&number.to_string());
        }
        quietly(|| (1..10).for_each(|minute| writer.round(World::at(minute))));
        quietly(|| writer.end(World::at(10)));
    });
    assert_eq!(counted.load(Ordering::Relaxed), 1 + 1, "when it begins, and when it is tried a last time");
    assert_eq!(world.documents().len(), 1);
    assert!(world.log.shared.queue.lock().len() <= 10_000);
    let elsewhere = World::new();
    writer.parts.databases = elsewhere.databases;
    let World { store, databases, statistics, log, clock, folder } = world;
    drop(databases);
    store.close().unwrap();
    let (store, databases) = open(folder.path(), &statistics, 0, &clock);
    writer.parts.databases = databases.clone();
    world = World { store, databases, statistics, log, clock, folder };
    quietly(|| {
        writer.end(World::at(11));
        writer.round(World::at(12));
    });
    let events = world.of(Class::Event);
    let texts: Vec<&str> = events.iter().map(|event| event["Text"].as_str().unwrap()).collect();
    let numbers: Vec<&&str> = texts.iter().filter(|text| text.parse::<u32>().is_ok()).collect();
    assert_eq!(numbers.len(), 10_000, "each once");
    assert!(texts.contains(&"20000 events were left out of the log database"), "{:?}", texts.last());
}

/// Counts warnings.
struct Warnings(Arc<AtomicU64>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        let is_own = event.metadata().target().contains("log_database");
        if is_own && *event.metadata().level() == tracing::Level::WARN {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}
