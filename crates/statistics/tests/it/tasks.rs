//! The table of tasks tells progress, rate, time left and how each task ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use scrinium_clock::{Clock, ManualClock};
use scrinium_statistics::{PauseError, TaskState, Tasks};
use serde_json::json;

/// A table whose clock starts at 1,000,000 s and is moved by hand.
fn table() -> (Tasks, ManualClock) {
    let manual = Clock::manual(1_000_000_000);
    (Tasks::with_clock(&manual.clock()), manual)
}

#[test]
fn progress_is_shown_as_couchdb_shows_it() {
    let (tasks, clock) = table();
    let task = tasks.start("indexer", Some("mail/ann"), Some(200));
    task.detail("design_document", "_design/mail");
    clock.advance(Duration::from_secs(10));
    task.progress(50);
    let _import = tasks.start("import", None, None);
    assert_eq!(
        tasks.active_tasks(),
        json!([
            {
                "design_document": "_design/mail", "node": "_local", "pid": "<1>", "type": "indexer",
                "database": "mail/ann", "changes_done": 50, "total_changes": 200, "progress": 25,
                "eta_seconds": 30,
                "started_on": 1_000_000, "updated_on": 1_000_010,
            },
            {
                "node": "_local", "pid": "<2>", "type": "import", "changes_done": 0,
                "started_on": 1_000_010, "updated_on": 1_000_010,
            },
        ])
    );
}

#[test]
fn the_rate_is_the_recent_one_and_falls_when_a_task_stalls() {
    let (tasks, clock) = table();
    let task = tasks.start("indexer", None, Some(10_000));
    let mut done = 0;
    for second in 0..60 {
        clock.advance(Duration::from_secs(1));
        done += if second < 30 { 10 } else { 100 };
        task.progress(done);
    }
    let status = tasks.running().remove(0);
    assert_eq!((status.done, status.rate), (3300, 100.0));
    assert_eq!(status.remaining, Some(Duration::from_secs(67)));
    clock.advance(Duration::from_secs(15));
    let stalled = tasks.running().remove(0);
    assert_eq!((stalled.rate, stalled.remaining), (50.0, Some(Duration::from_secs(134))));
}

#[test]
fn a_task_that_can_pause_is_told_to_and_the_pause_does_not_count() {
    let (tasks, clock) = table();
    let indexer = tasks.start("indexer", None, None);
    let unable = PauseError::Unable { kind: "indexer".to_owned() };
    assert_eq!(tasks.pause(indexer.id(), true), Err(unable));
    assert_eq!(tasks.pause(99, true), Err(PauseError::NotRunning));
    let task = tasks.start("database_compaction", Some("mail/ann"), Some(1000));
    task.allow_pause();
    clock.advance(Duration::from_secs(10));
    task.progress(100);
    tasks.pause(task.id(), true).unwrap();
    assert!(task.is_paused());
    let status = tasks.running().remove(1);
    assert_eq!((status.paused, status.remaining), (true, None));
    assert_eq!(tasks.active_tasks()[1]["paused"], true);
    clock.advance(Duration::from_secs(1000));
    tasks.pause(task.id(), false).unwrap();
    assert!(!task.is_paused());
    clock.advance(Duration::from_secs(10));
    task.progress(200);
    let status = tasks.running().remove(1);
    assert_eq!((status.paused, status.remaining), (false, Some(Duration::from_secs(80))));
}

#[test]
fn every_end_is_remembered_and_the_history_is_bounded() {
    let (tasks, _) = table();
    tasks.start("import", None, None).finish();
    tasks.start("import", None, None).fail("no such file: inbox.mbox");
    let asked = tasks.start("compact", None, None);
    assert!(tasks.cancel(asked.id()) && asked.is_cancelled());
    assert!(tasks.running()[0].cancel_requested);
    drop(asked);
    drop(tasks.start("compact", None, None));
    let states: Vec<TaskState> = tasks.ended().into_iter().map(|task| task.state).collect();
    assert_eq!(
        states,
        [
            TaskState::Failed("it ended without a result".to_owned()),
            TaskState::Cancelled,
            TaskState::Failed("no such file: inbox.mbox".to_owned()),
            TaskState::Finished,
        ]
    );
    assert!(!tasks.cancel(1), "it is no longer running");
    for _ in 0..1000 {
        tasks.start("import", None, None).finish();
    }
    assert_eq!((tasks.running().len(), tasks.ended().len()), (0, 256));
    assert_eq!(tasks.ended()[0].id, 1004, "newest first");
}

#[test]
fn threads_report_into_one_task() {
    let (tasks, _) = table();
    let task = tasks.start("import", None, Some(8000));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..1000).for_each(|_| task.advance(1)));
        }
    });
    assert_eq!(tasks.running()[0].percent(), Some(100));
}

/// For a moment a task was neither running nor ended, and who waited for it took the server for another one.
#[test]
fn a_task_that_ends_is_known_at_every_moment() {
    let tasks = Tasks::new();
    let asked = tasks.clone();
    let known = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&known);
    tasks.on_end(move |ended| {
        let lists = asked.running().into_iter().chain(asked.ended());
        counted.fetch_add(lists.filter(|task| task.id == ended.id).count() as u64, Ordering::Relaxed);
    });
    tasks.start("a", None, None).finish();
    assert_eq!(known.load(Ordering::Relaxed), 1, "somebody who hears that it ended finds it");
    assert_eq!((tasks.running().len(), tasks.ended().len()), (0, 1));

    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let begun = Arc::new(AtomicU64::new(tasks.start("b", None, None).id()));
        let (latest, stopped) = (Arc::clone(&begun), Arc::clone(&stop));
        let table = &tasks;
        scope.spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let task = table.start("c", None, None);
                latest.store(task.id(), Ordering::Relaxed);
                task.finish();
            }
        });
        for _ in 0..2000 {
            let id = begun.load(Ordering::Relaxed);
            let (running, ended) = (tasks.running(), tasks.ended());
            // Of those that ended long ago nobody asks.
            let is_recent = begun.load(Ordering::Relaxed) < id + 200;
            let is_known = running.iter().chain(&ended).any(|task| task.id == id);
            assert!(is_known || !is_recent, "{id}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}
