//! The pool's limits hold, whatever happens to jobs and to those who wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use futures_util::future::join_all;
use proptest::prelude::*;
use scrinium_statistics::Registry;
use scrinium_worker::{WorkerError, WorkerOptions, WorkerPool};

const LONG: Duration = Duration::from_secs(60);

fn pool(threads: usize, admitted: usize, waiting: usize, wait: Duration) -> (WorkerPool, Registry) {
    let statistics = Registry::new();
    (WorkerPool::new(&WorkerOptions { threads, admitted, waiting, wait }, &statistics), statistics)
}

/// Lets other futures run until `done` holds.
async fn until(done: impl Fn() -> bool) {
    for _ in 0..20_000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("waited too long");
}

#[tokio::test]
async fn never_more_threads_than_allowed() {
    let (pool, statistics) = pool(3, 100, 1000, LONG);
    let (running, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let jobs = (0..200).map(|number| {
        let (running, peak) = (running.clone(), peak.clone());
        pool.run(move || {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(200));
            running.fetch_sub(1, Ordering::SeqCst);
            number
        })
    });
    let results: Vec<usize> = join_all(jobs).await.into_iter().map(|result| result.unwrap()).collect();
    assert_eq!(results, (0..200).collect::<Vec<_>>());
    assert!(peak.load(Ordering::SeqCst) <= 3);
    let snapshot = statistics.snapshot();
    assert_eq!(snapshot.counters["Server.Trans.Total"], 200);
    assert_eq!(snapshot.gauges["Server.Trans.PerMinute"], 200.0);
    assert_eq!(snapshot.operations["POOL_WAIT"].count, 200);
    assert!(snapshot.gauges["Server.Pool.Running.Peak"] <= 3.0);
    assert_eq!(snapshot.gauges["Server.Trans.Admitted"], 0.0);
}

#[tokio::test]
async fn a_full_line_is_busy_and_a_place_given_back_goes_to_the_first_in_line() {
    let (pool, statistics) = pool(1, 1, 1, LONG);
    let first = pool.admit().await.unwrap();
    let second = tokio::spawn({
        let pool = pool.clone();
        async move { pool.run(|| "second").await }
    });
    until(|| statistics.snapshot().gauges["Server.Trans.Waiting"] == 1.0).await;
    let refused = pool.run(|| "third").await;
    assert_eq!(
        refused,
        Err(WorkerError::Busy { running: 1, waiting: 1, retry_after: Duration::from_secs(1) })
    );
    assert_eq!(first.run(|| "first").await, Ok("first"));
    drop(first);
    assert_eq!(second.await.unwrap(), Ok("second"));
    assert_eq!(statistics.snapshot().counters["Server.Trans.Refused"], 1);
}

#[tokio::test]
async fn waiting_ends_after_the_time_set() {
    let (pool, _) = pool(1, 1, 10, Duration::from_millis(20));
    let _held = pool.admit().await.unwrap();
    let refused = pool.run(|| ()).await;
    assert!(matches!(refused, Err(WorkerError::Busy { running: 1, .. })), "{refused:?}");
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_thread_goes_on() {
    let (pool, statistics) = pool(1, 1, 10, LONG);
    let unlucky = |luck: &'static str| assert_eq!(luck, "good", "no {luck}");
    let panicked = pool.run(move || unlucky("bad")).await;
    let message = "assertion `left == right` failed: no bad\n  left: \"bad\"\n right: \"good\"";
    assert_eq!(panicked, Err(WorkerError::Panicked { message: message.to_owned() }));
    assert_eq!(pool.run(|| 7).await, Ok(7));
    let snapshot = statistics.snapshot();
    assert_eq!(snapshot.counters["Server.Pool.Panics"], 1);
    assert_eq!(snapshot.gauges["Server.Pool.Threads"], 1.0);
}

#[tokio::test]
async fn a_job_nobody_waits_for_is_skipped_but_one_begun_keeps_its_place() {
    let (pool, statistics) = pool(1, 10, 10, LONG);
    let (go, wait) = mpsc::channel::<()>();
    let begun = tokio::spawn({
        let pool = pool.clone();
        async move { pool.run(move || wait.recv_timeout(LONG)).await }
    });
    until(|| statistics.snapshot().gauges["Server.Pool.Running"] == 1.0).await;
    let ran = Arc::new(AtomicUsize::new(0));
    let skipped = tokio::spawn({
        let (pool, ran) = (pool.clone(), ran.clone());
        async move { pool.run(move || ran.fetch_add(1, Ordering::SeqCst)).await }
    });
    until(|| statistics.snapshot().gauges["Server.Pool.Queued"] == 1.0).await;
    begun.abort();
    skipped.abort();
    assert!(begun.await.is_err() && skipped.await.is_err());
    assert_eq!(statistics.snapshot().gauges["Server.Trans.Admitted"], 2.0);
    go.send(()).unwrap();
    assert!(pool.drained(LONG).await);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn closing_refuses_new_work_and_lets_the_old_end() {
    let (pool, statistics) = pool(1, 1, 10, LONG);
    let admission = pool.admit().await.unwrap();
    let in_line = tokio::spawn({
        let pool = pool.clone();
        async move { pool.run(|| ()).await }
    });
    until(|| statistics.snapshot().gauges["Server.Trans.Waiting"] == 1.0).await;
    pool.close();
    assert_eq!(in_line.await.unwrap(), Err(WorkerError::Closed));
    assert_eq!(pool.run(|| ()).await, Err(WorkerError::Closed));
    assert!(!pool.drained(Duration::ZERO).await);
    assert_eq!(admission.run(|| 1).await, Ok(1));
    drop(admission);
    assert!(pool.drained(LONG).await);
}

#[tokio::test]
async fn threads_end_with_the_pool() {
    let (pool, statistics) = pool(4, 100, 100, LONG);
    join_all((0..50).map(|_| pool.run(|| std::thread::sleep(Duration::from_micros(100))))).await;
    assert!(statistics.snapshot().gauges["Server.Pool.Threads"] >= 1.0);
    drop(pool);
    assert_eq!(statistics.snapshot().gauges["Server.Pool.Threads"], 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Any sequence of changes of the limits, under load, ends with the limit that was set last.
    #[test]
    fn limits_change_while_running(limits in prop::collection::vec((1_usize..8, 1_usize..8), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (pool, statistics) = pool(2, 4, 10_000, LONG);
            let load = tokio::spawn({
                let pool = pool.clone();
                async move { join_all((0..300).map(|_| pool.run(std::thread::yield_now))).await }
            });
            for (threads, admitted) in &limits {
                pool.set_threads(*threads);
                pool.set_admitted(*admitted);
                tokio::task::yield_now().await;
            }
            for result in load.await.unwrap() {
                prop_assert_eq!(result, Ok(()));
            }
            pool.set_waiting(0);
            let (_, admitted) = limits[limits.len() - 1];
            let mut held = Vec::new();
            while let Ok(admission) = pool.admit().await {
                held.push(admission);
                prop_assert!(held.len() <= admitted);
            }
            prop_assert_eq!(held.len(), admitted);
            prop_assert_eq!(statistics.snapshot().gauges["Server.Trans.Admitted"], admitted as f64);
            Ok(())
        })?;
    }
}

/// A thread that worked just now has what it needs in the caches; the others end when nothing needs them.
#[tokio::test]
async fn jobs_one_after_another_are_done_by_the_same_thread() {
    let (pool, statistics) = pool(4, 100, 100, LONG);
    let together = Arc::new(std::sync::Barrier::new(4));
    let waits = (0..4).map(|_| {
        let together = together.clone();
        pool.run(move || {
            together.wait();
        })
    });
    join_all(waits).await;
    let mut threads = std::collections::BTreeSet::new();
    for _ in 0..20 {
        // Then each thread waits again.
        until(|| statistics.snapshot().gauges["Server.Pool.Running"] == 0.0).await;
        threads.insert(format!("{:?}", pool.run(|| std::thread::current().id()).await.unwrap()));
    }
    assert_eq!(threads.len(), 1, "{threads:?}");
}
