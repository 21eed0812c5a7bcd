//! Processes that run functions: whose they are, and what becomes of a call when one is killed.

use std::collections::BTreeSet;

use scrinium_javascript::{Limits, MapEngine, Pool, PoolOptions, ScriptError};

const SOURCE: &str = "function (doc) { emit(doc._id, doc.n); }";

/// The processes of this one that run functions of engines with so much memory, which each test has its own of.
fn processes(memory_bytes: usize) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let text = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let status = String::from_utf8_lossy(&text("status")).into_owned();
        let is_ours = status.contains(&format!("PPid:\t{}\n", std::process::id()));
        let line = String::from_utf8_lossy(&text("cmdline")).into_owned();
        if is_ours && line == format!("scrinium-javascript\0--run-javascript\0{memory_bytes}\0") {
            found.insert(id);
        }
    }
    found
}

fn kill(id: i32) {
    let process = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}

fn pool(memory_bytes: usize, processes_max: usize) -> Pool {
    let limits = Limits { memory_bytes, call_time_ms: 2_000, ..Limits::default() };
    Pool::new(PoolOptions { processes_max, limits, ..PoolOptions::default() })
}

#[test]
fn a_process_has_no_environment_no_files_and_no_rights() {
    let memory_bytes = 33_000_001;
    let pool = pool(memory_bytes, 4);
    let mut engine = MapEngine::new(&pool, [1; 16], &[SOURCE], None);
    engine.map("{}").unwrap()[0].as_ref().unwrap();
    let running = processes(memory_bytes);
    assert_eq!(running.len(), 1, "{running:?}");
    let id = running.first().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    if std::fs::exists("/proc/sys/kernel/seccomp/actions_avail").unwrap() {
        assert!(status.contains("Seccomp:\t2"), "{status}");
    }
    assert!(status.contains("Threads:\t1"), "{status}");
    let limits = std::fs::read_to_string(format!("/proc/{id}/limits")).unwrap();
    for name in ["Max open files", "Max file size", "Max processes", "Max core file size"] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line[name.len()..].split_whitespace().take(2).all(|limit| limit == "0"), "{line}");
    }
    // These only root may look at, since the process is not to be looked into.
    if let Ok(environment) = std::fs::read(format!("/proc/{id}/environ")) {
        assert!(environment.is_empty(), "{environment:?}");
    }
    if let Ok(open) = std::fs::read_dir(format!("/proc/{id}/fd")) {
        let open: BTreeSet<String> =
            open.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        assert_eq!(open, ["0", "1", "2"].map(str::to_owned).into(), "{open:?}");
    }
    drop((engine, pool));
    assert_eq!(processes(memory_bytes), BTreeSet::new(), "they end with their pool");
}

/// One that is killed in the middle changes nothing, and one that cannot be had is reported as that.
#[test]
fn what_a_killed_process_did_not_answer_another_one_does() {
    let memory_bytes = 33_000_002;
    let pool = pool(memory_bytes, 4);
    let slow = "function (doc) { for (var i = 0; i < 20000; i++); emit(doc._id, doc.n); }";
    let documents: Vec<String> =
        (0..300).map(|number| format!(r#"{{"_id": "{number}", "n": {number}}}"#)).collect();
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    let mut engine = MapEngine::new(&pool, [1; 16], &[slow, SOURCE], None);
    let expected = engine.map_many(&documents).unwrap();
    assert!(expected.iter().flatten().all(Result::is_ok));
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..5 {
                std::thread::sleep(std::time::Duration::from_millis(150));
                processes(memory_bytes).into_iter().for_each(kill);
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
            match engine.map_many(&documents) {
                Ok(mapped) => assert_eq!(mapped, expected),
                Err(error) => assert!(matches!(error, ScriptError::Unavailable { .. }), "{error:?}"),
            }
        }
    });
    assert_eq!(engine.map_many(&documents).unwrap(), expected);
    assert!(pool.figures().lost > 0);
}

#[test]
fn databases_never_share_a_process() {
    let memory_bytes = 33_000_003;
    let pool = pool(memory_bytes, 4);
    let run = |database: u8| {
        MapEngine::new(&pool, [database; 16], &[SOURCE], None).map(r#"{"_id": "a", "n": 1}"#).unwrap();
    };
    run(1);
    let first = processes(memory_bytes);
    run(1);
    assert_eq!(processes(memory_bytes), first, "one waits for its database");
    run(2);
    let both = processes(memory_bytes);
    assert!(both.len() == 2 && both.is_superset(&first), "{both:?}");
    for database in 3..9 {
        run(database);
    }
    assert_eq!(processes(memory_bytes).len(), 4, "no more than there may be");
    assert!(processes(memory_bytes).is_disjoint(&both), "those that waited longest gave way");
}

/// However much one database has to do, others have processes.
#[test]
fn a_database_does_not_take_all_processes() {
    let pool = pool(33_000_004, 2);
    let endless = "function (doc) { if (doc.evil) for (;;); emit(1); }";
    std::thread::scope(|scope| {
        let evil = scope.spawn(|| {
            let mut engine = MapEngine::new(&pool, [1; 16], &[endless], None);
            engine.map(r#"{"evil": true}"#).unwrap()[0].is_err()
        });
        let mut other = MapEngine::new(&pool, [2; 16], &[SOURCE], None);
        assert!(other.map("{}").unwrap()[0].is_ok());
        assert!(evil.join().unwrap());
    });
}

/// Who waits for a process holds a thread that others could work with.
#[test]
fn few_threads_wait_for_processes_and_the_others_are_told_at_once() {
    let limits = Limits { memory_bytes: 33_000_005, call_time_ms: 500, ..Limits::default() };
    let pool = Pool::new(PoolOptions { processes_max: 2, waiting_max: 4, limits });
    let endless = "function (doc) { if (doc.evil) for (;;); emit(1); }";
    let map = |database: u8, document: &str| {
        MapEngine::new(&pool, [database; 16], &[endless], None).map(document).map(drop)
    };
    let refused = |result: Result<(), ScriptError>| matches!(result, Err(ScriptError::Unavailable { .. }));
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        let evil = scope.spawn(|| map(1, r#"{"evil": true}"#));
        while pool.figures().busy == 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let waiting: Vec<_> = (0..8).map(|_| scope.spawn(|| (map(1, "{}"), began.elapsed()))).collect();
        let mut waited: Vec<_> = waiting.into_iter().map(|waiting| waiting.join().unwrap()).collect();
        waited.sort_by_key(|(_, elapsed)| *elapsed);
        // Two of them, half of those that may wait at all, wait for the process until it is killed, or for as long as one waits.
        let late = waited.split_off(6);
        assert!(waited.into_iter().all(|(result, _)| refused(result)), "{late:?}");
        assert!(evil.join().unwrap().is_ok(), "a document fails, not the view");
    });
}
