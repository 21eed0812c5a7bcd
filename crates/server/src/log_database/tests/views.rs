//! The views, as docs/operate/log-database.md describes them, and what a day costs.

use scrinium_mail::{Mailboxes, Resolver, Routed, RoutedState, Router, RouterOptions};
use scrinium_maintenance::{CompactOrder, Compactor};
use scrinium_statistics::TaskState;
use scrinium_worker::{WorkerOptions, WorkerPool};

use super::*;

const PAGE: &str = include_str!("../../../../../docs/operate/log-database.md");

/// Records of every class.
fn fill(world: &World) {
    world.event("told");
    world.log.routed(&Routed {
        id: "memo",
        from: "ada",
        message_id: "<1@here>",
        state: RoutedState::Dead,
        delivered: 2,
        handed_over: 0,
        failed: 1,
        reason: Some("nobody is called eve"),
        attempts: 0,
        elapsed: Duration::from_millis(12),
    });
    let tasks = Tasks::new();
    let log = world.log.clone();
    tasks.on_end(move |task| log.task_run(task));
    let task = tasks.start("fixup", Some("mail/ada"), Some(3));
    task.advance(2);
    task.fail("damaged");
    assert_eq!(tasks.ended()[0].state, TaskState::Failed("damaged".to_owned()));
    world.log.set(&Settings::default());
    let second = Duration::from_secs(1);
    world.log.operated(&Operated {
        operation: "OPEN_NOTE",
        database: "mail/ada",
        person: Some("ada"),
        elapsed: second,
        waited: Duration::ZERO,
    });
    world.log.used(&Used {
        database: "mail/ada",
        person: Some("ada"),
        writes: true,
        received_bytes: 1,
        sent_bytes: 2,
    });
    world.statistics.counter("HTTP.Requests").add(5);
    world.statistics.gauge("Server.Users", || 3.0);
}

#[test]
fn views_show_the_columns_that_the_document_names() {
    let world = World::new();
    let mut writer = world.writer(World::at(59));
    fill(&world);
    quietly(|| {
        writer.round(World::at(60));
        writer.end(World::at(60));
    });
    let expected = [
        ("events", json!(["info", "test", "told", "here"])),
        ("mail_routing", json!(["dead", "ada", 2, 1, 12, "nobody is called eve"])),
        ("task_runs", json!(["fixup", "mail/ada", "failed", 2, "damaged"])),
        ("slow_operations", json!(["mail/ada", "OPEN_NOTE", "ada", 1000, 0])),
        ("usage_by_user", json!(["ada", "mail/ada", 0, 1, 1, 2])),
        ("usage_by_database", json!(["mail/ada", "ada", 0, 1, 1, 2])),
        ("statistics", json!([3, "", 5, "", "", "", "", "here"])),
        ("statistics_by_hour", json!([3, "", 5, "", "", "", "", "here"])),
    ];
    for (view, values) in expected {
        let rows = world.view("log", view);
        assert_eq!(rows.len(), 1, "{view}");
        let row: Map<String, Value> = serde_json::from_str(&rows[0].1).unwrap();
        let titles: Vec<&str> = row.keys().map(String::as_str).collect();
        let line = format!("| `{view}` | {} |", titles.join(", "));
        assert!(PAGE.contains(&line), "docs/operate/log-database.md has no line\n{line}");
        let varies = |title: &str| {
            ["Date", "Time", "Process bytes", "Buffer pool bytes", "Log bytes"].contains(&title)
                || (view == "task_runs" && title == "Milliseconds")
        };
        let shown: Vec<&Value> =
            row.iter().filter(|(title, _)| !varies(title)).map(|(_, value)| value).collect();
        assert_eq!(json!(shown), values, "{view}");
        if view != "usage_by_user" && view != "usage_by_database" && !view.starts_with("statistics") {
            assert!(row["Time"].as_str().unwrap().starts_with("20"), "{view}");
        }
    }
}

/// Documents, and bytes on disk once the database is compacted, without indexes.
fn size(world: &World) -> (u64, u64) {
    Compactor::of(&world.databases).compact("log", &CompactOrder::default()).unwrap();
    let database = world.databases.get("log").unwrap();
    let (info, sizes) = (database.info().unwrap(), database.sizes().unwrap());
    (info.document_count - 1, sizes.file_bytes)
}

/// The statistics of a server, without those of its ports.
fn register(world: &World) -> (WorkerPool, Router) {
    world.databases.register_statistics(&world.statistics);
    Compactor::of(&world.databases).register_statistics(&world.statistics);
    let workers = WorkerPool::new(&WorkerOptions::default(), &world.statistics);
    let directory = scrinium_directory::Directory::open(&world.databases).unwrap();
    let mailboxes = Mailboxes::open(&world.databases, 4, &world.statistics).unwrap();
    let lookup: Arc<dyn scrinium_directory::NameLookup> = Arc::new(directory);
    let resolver = Resolver::new(lookup, &["localhost".to_owned()]);
    let router =
        Router::open(&world.databases, &mailboxes, resolver, RouterOptions::default(), &world.statistics);
    for number in 0..40 {
        world.statistics.counter(&format!("Other.Counter{number}")).add(number * 1000);
    }
    for operation in
        ["OPEN_DB", "OPEN_NOTE", "UPDATE_NOTE", "OPEN_COLLECTION", "READ_ENTRIES", "MAIL_DEPOSIT"]
    {
        world.statistics.operation(operation).record(Duration::from_micros(700));
    }
    (workers, router.unwrap())
}

/// An idle hour of 61 documents, and one in which as many events, memos and slow operations come as are kept by default.
/// The page names the figures for a day of them.
#[test]
fn a_day_takes_what_the_document_says() {
    let world = World::new();
    let _parts = register(&world);
    let mut writer = world.writer(World::at(-1));
    world.event("the first");
    quietly(|| {
        writer.round(World::at(-1));
        writer.round(World::at(0));
    });
    let before = size(&world);
    quietly(|| (1..=60).for_each(|minute| writer.round(World::at(minute))));
    let idle = size(&world);
    let (documents, bytes) = ((idle.0 - before.0) * 24, idle.1.saturating_sub(before.1) * 24);
    println!("idle: {documents} documents, {bytes} bytes a day");
    assert_eq!(documents, 1464);
    assert!(PAGE.contains("1,464 documents"));
    assert!(bytes < 8 << 20, "{bytes} bytes a day on an idle server");

    for number in 0..9_900_u64 {
        let milliseconds = Duration::from_micros(number.wrapping_mul(2_654_435_761) % 9_000_000);
        let id = blake3_like(number);
        world.log.routed(&Routed {
            id: &id,
            from: "Ada Lovelace/Engine",
            message_id: &format!("<{id}@mail.example.com>"),
            state: RoutedState::Delivered,
            delivered: number % 4 + 1,
            handed_over: 0,
            failed: 0,
            reason: None,
            attempts: 0,
            elapsed: milliseconds,
        });
    }
    quietly(|| writer.end(World::at(60)));
    let busy = size(&world);
    let each = (busy.1 - idle.1) / 9_900;
    println!("a memo: {each} bytes");
    assert_eq!(busy.0 - idle.0, 9_900);
    assert!(each < 400, "{each} bytes for each memo");
}

/// A text of 32 hexadecimal digits that does not compress.
fn blake3_like(number: u64) -> String {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    format!("{mixed:016x}{:016x}", mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9))
}
