//! Functions that mean harm, in one of two databases, over restarts: other views have what a rebuild gives them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scrinium_database::{DatabaseError, EditMode, InitialAccess, RowQuery};
use scrinium_views::{OpenDatabase, ScriptLimits, ScriptOptions};
use serde_json::{Value, json};

use crate::common::{SERVER, Server, all_rows, edit, put};

const GOOD: &str = "function (doc) { if (doc.word) emit(doc._id, doc.word); }";

/// Each does its harm to the documents whose number it is given, and emits the word of each.
const HOSTILE: [&str; 12] = [
    "for (;;);",
    "for (;;) try { for (;;); } catch (e) {}",
    "for (;;) new Promise(function () { for (;;); });",
    "(function f() { f(); f(); })();",
    "var all = []; for (;;) all.push(new Array(100000).join('x') + all.length);",
    "for (;;) emit('x'.repeat(10000));",
    "Object.prototype.word = doc.word; Array.prototype.word = doc.word;",
    "globalThis.kept = (globalThis.kept || []).concat(doc.word); emit(globalThis.kept);",
    "kept = doc.word;",
    "emit = function () {}; JSON.stringify = function () { return '1'; };",
    "throw { get x() { for (;;); } };",
    "Object.defineProperty(doc, 'word', { get() { for (;;); } });",
];

fn hostile(harm: &str) -> String {
    format!(
        "function (doc) {{ if (!doc.word) return; if (doc.n % 5 === 2) {{ {harm} }} emit(doc._id, doc.word); }}"
    )
}

fn short() -> ScriptOptions {
    let limits = ScriptLimits { call_time_ms: 60, memory_bytes: 16 << 20, ..ScriptLimits::default() };
    ScriptOptions { processes_max: 4, limits, ..ScriptOptions::default() }
}

fn rows(database: &OpenDatabase, design: &str, view: &str) -> Vec<String> {
    let rows = all_rows(database.view(design, view, RowQuery::default(), &SERVER).unwrap()).into_iter();
    rows.map(|row| format!("{} {:?}", row.key.as_str(), row.value.map(|value| value.as_str().to_owned())))
        .collect()
}

fn fill(server: &Server, name: &str, documents: u32) -> OpenDatabase {
    let database = server.databases.create(name, &InitialAccess::Everybody).unwrap();
    let document = |number: u32| {
        edit(&json!({"_id": format!("{number:05}"), "n": number, "word": format!("{name}{number}z")}))
    };
    let edits = (0..documents).map(document).collect();
    database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    database
}

fn errors(database: &OpenDatabase, design: &str) -> Value {
    database.view_info(design, &SERVER).unwrap()["view_index"]["errors"].clone()
}

#[test]
fn one_databases_functions_harm_no_other_views() {
    let mut server = Server::new();
    server.databases.set_script_options(short());
    let (evil, good) = (fill(&server, "evil", 20), fill(&server, "good", 20));
    let expected = |database: &OpenDatabase| rows(database, "good", "words");
    for database in [&evil, &good] {
        put(database, &json!({"_id": "_design/good", "views": {"words": {"map": GOOD}}})).unwrap();
    }
    let views: serde_json::Map<String, Value> = HOSTILE
        .iter()
        .enumerate()
        .map(|(place, harm)| (format!("v{place}"), json!({"map": hostile(harm)})))
        .chain([("beside".to_owned(), json!({"map": GOOD}))])
        .collect();
    put(&evil, &json!({"_id": "_design/evil", "views": views})).unwrap();
    let words = expected(&good);
    assert_eq!(words.len(), 20);
    let of_evil: Vec<Vec<String>> =
        (0..HOSTILE.len()).map(|place| rows(&evil, "evil", &format!("v{place}"))).collect();
    let told = errors(&evil, "evil");
    for (place, (rows, harm)) in of_evil.iter().zip(HOSTILE).enumerate() {
        // The words of one document stand in its rows alone.
        for row in rows {
            let (id, _) = row.split_once(' ').unwrap();
            let other = |number: &u32| {
                !id.contains(&format!("{number:05}")) && row.contains(&format!("evil{number}z"))
            };
            assert_eq!((0..20).find(other), None, "{harm} gave {row}");
            assert!(!row.contains("good"), "{harm} gave {row}");
        }
        assert!(told[format!("v{place}")]["count"].as_u64() >= Some(4), "{harm}: {told}");
    }
    // Stopped four times, but never three in a row.
    assert_eq!((of_evil[0].len(), &told["v0"]["off"]), (16, &Value::Null), "{told}");
    assert!(told["v6"]["last"].as_str().unwrap().contains("cannot be changed"), "{told}");
    assert_eq!(told.get("beside"), None);
    drop((evil, good));

    for round in 0..2 {
        let (evil, good) = (server.databases.get("evil").unwrap(), server.databases.get("good").unwrap());
        assert_eq!(expected(&good), words, "round {round}");
        assert_eq!(expected(&evil).len(), 20, "round {round}");
        assert_eq!(rows(&evil, "evil", "beside"), expected(&evil), "round {round}");
        assert_eq!(errors(&evil, "evil"), told, "what went wrong is known after a restart");
        if round == 0 {
            drop((evil, good));
            server = server.reopen();
            server.databases.set_script_options(short());
        }
    }
    let (evil, good) = (server.databases.get("evil").unwrap(), server.databases.get("good").unwrap());
    for database in [&evil, &good] {
        database.update_all_views(Some("words"), true).unwrap();
        database.update_all_views(Some("beside"), true).unwrap();
    }
    assert_eq!((expected(&good), expected(&evil).len()), (words, 20));
    assert_eq!(rows(&evil, "evil", "beside"), expected(&evil));
}

#[test]
fn a_function_that_is_stopped_three_times_in_a_row_is_switched_off_for_the_build() {
    let server = Server::new();
    server.databases.set_script_options(short());
    let database = fill(&server, "db", 100);
    let endless = "function (doc) { if (doc.n >= 10 && doc.n < 60) for (;;); emit(doc._id, doc.word); }";
    put(&database, &json!({"_id": "_design/d", "views": {"bad": {"map": endless}, "good": {"map": GOOD}}}))
        .unwrap();
    assert_eq!(rows(&database, "d", "bad").len(), 10);
    assert_eq!(rows(&database, "d", "good").len(), 100);
    let told = errors(&database, "d");
    let off = told["bad"]["off"].as_str().unwrap();
    assert!(off.contains("3 times in a row"), "{told}");
    assert_eq!((&told["bad"]["count"], told.get("good")), (&json!(90), None), "{told}");
    // One chance in the next update; and all of them once the view is rebuilt.
    put(&database, &json!({"_id": "x", "word": "x", "n": 0})).unwrap();
    assert_eq!(rows(&database, "d", "bad").len(), 11);
    assert_eq!(errors(&database, "d")["bad"]["off"], Value::Null);
}

#[test]
fn what_a_function_logs_fills_neither_answers_nor_memory() {
    let server = Server::new();
    let database = fill(&server, "db", 60);
    let log = "function (doc) { for (var i = 0; i < 500; i++) log(doc._id + ' ' + 'x'.repeat(1000)); emit(doc._id); }";
    put(&database, &json!({"_id": "_design/d", "views": {"loud": {"map": log}}})).unwrap();
    assert_eq!(rows(&database, "d", "loud").len(), 60);
    let told = database.view_info("d", &SERVER).unwrap()["view_index"]["log"]["loud"].clone();
    let lines = told.as_array().unwrap();
    assert!((1..=20).contains(&lines.len()), "{} lines", lines.len());
    assert!(told.to_string().len() < 64 << 10, "{} bytes", told.to_string().len());
}

/// The processes of this one that run functions.
fn processes() -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let text = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let status = String::from_utf8_lossy(&text("status")).into_owned();
        let is_ours = status.contains(&format!("PPid:\t{}\n", std::process::id()));
        // Of this test alone, by its memory.
        let line = String::from_utf8_lossy(&text("cmdline")).into_owned();
        if is_ours && line.ends_with("--run-javascript\x0023000001\0") {
            found.insert(id);
        }
    }
    found
}

/// Anyone who kills the processes in the middle of a build gets an error or all rows, and all rows the next time.
#[test]
fn a_build_whose_processes_are_killed_comes_to_the_same() {
    let server = Server::new();
    let limits = ScriptLimits { memory_bytes: 23_000_001, ..ScriptLimits::default() };
    server.databases.set_script_options(ScriptOptions {
        processes_max: 4,
        limits,
        ..ScriptOptions::default()
    });
    let database = fill(&server, "db", 2500);
    let slow = "function (doc) { for (var i = 0; i < 3000; i++); if (doc.word) emit(doc._id, doc.word); }";
    let is_over = AtomicBool::new(false);
    for round in 0..2 {
        let map = slow.replace("3000", &format!("{}", 3000 + round));
        let id = format!("_design/d{round}");
        put(&database, &json!({"_id": id, "views": {"v": {"map": map, "reduce": "_count"}}})).unwrap();
        is_over.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(120));
                    for id in processes() {
                        let process = rustix::process::Pid::from_raw(id).unwrap();
                        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
                    }
                }
            });
            let query = RowQuery { reduce: Some(false), ..RowQuery::default() };
            match database.view(&format!("d{round}"), "v", query, &SERVER) {
                Ok(built) => assert_eq!(all_rows(built).len(), 2500),
                Err(error) => assert!(matches!(error, DatabaseError::Unavailable { .. }), "{error:?}"),
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let query = RowQuery { reduce: Some(false), ..RowQuery::default() };
        assert_eq!(all_rows(database.view(&format!("d{round}"), "v", query, &SERVER).unwrap()).len(), 2500);
        assert_eq!(errors(&database, &format!("d{round}")), json!({}), "no document is to blame");
    }
}
