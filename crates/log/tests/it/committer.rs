//! Many submitters, one order: answers, groups, bounds, and what happens when something fails.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, ThreadId};
use std::time::Duration;

use crate::common::{Disk, Fault, open, options, read_all, record};
use bytes::Bytes;
use scrinium_log::{Apply, Commit, Committer, Log, LogError, LogOptions, Sequence};
use scrinium_statistics::Registry;

type Applied = Arc<Mutex<Vec<(u64, Vec<Bytes>)>>>;

/// Notes every group; before that, waits for a word at the gate if there is one.
struct Notes {
    applied: Applied,
    gate: Option<Receiver<Result<(), String>>>,
}

impl Apply for Notes {
    type Error = std::io::Error;

    fn apply(&mut self, first: Sequence, records: &[Bytes]) -> std::io::Result<()> {
        if let Some(gate) = &self.gate {
            let word = gate.recv().unwrap_or(Ok(()));
            assert_ne!(word, Err("panic".to_owned()), "as the test asked");
            word.map_err(std::io::Error::other)?;
        }
        self.applied.lock().unwrap().push((first.0, records.to_vec()));
        Ok(())
    }

    fn make_durable(&mut self) -> std::io::Result<Sequence> {
        Err(std::io::Error::other("nothing but the log makes records durable"))
    }

    fn apply_unlogged(&mut self, _: &mut dyn Iterator<Item = &Bytes>) -> std::io::Result<()> {
        Err(std::io::Error::other("nothing but the log makes records durable"))
    }
}

fn start(log: Log) -> (Committer, Applied, Registry) {
    let (applied, statistics) = (Applied::default(), Registry::new());
    let notes = Notes { applied: applied.clone(), gate: None };
    (Committer::start(log, notes, &statistics), applied, statistics)
}

fn start_gated(log: Log) -> (Committer, Applied, Sender<Result<(), String>>) {
    let applied = Applied::default();
    let (gate, receiver) = channel();
    let notes = Notes { applied: applied.clone(), gate: Some(receiver) };
    (Committer::start(log, notes, &Registry::new()), applied, gate)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park_timeout(Duration::from_secs(20)),
        }
    }
}

fn is_failed<T: std::fmt::Debug>(answer: &Result<T, LogError>) -> bool {
    matches!(answer, Err(LogError::Failed { .. }))
}

#[test]
fn answers_orders_and_applies_what_many_submit() {
    let disk = Disk::new();
    disk.run_threads();
    let (log, _) = open(&disk).unwrap();
    let (committer, applied, statistics) = start(log);
    std::thread::scope(|scope| {
        for writer in 0..16_u64 {
            let committer = &committer;
            scope.spawn(move || {
                let mut last = 0;
                for index in 0..60_u64 {
                    let record = record(writer << 32 | index, 100);
                    let sequence = match writer % 3 {
                        0 => committer.submit(record).unwrap().wait(),
                        1 => block_on(committer.submit(record).unwrap()),
                        _ => committer.commit(record),
                    };
                    let sequence = sequence.unwrap().0;
                    assert!(sequence > last && committer.last_synced().0 >= sequence);
                    last = sequence;
                }
            });
        }
    });
    let snapshot = statistics.snapshot();
    assert_eq!(snapshot.counters["Log.Records"], 960);
    assert_eq!(snapshot.counters["Log.Syncs"], snapshot.operations["LOG_SYNC"].count);
    assert!(snapshot.counters["Log.Bytes"] > 96_000 && snapshot.gauges["Log.Extents"] > 6.0);
    assert!(snapshot.gauges["Log.GroupSize.Max"] >= snapshot.gauges["Log.GroupSize.Average"]);
    committer.stop();
    let applied = applied.lock().unwrap();
    let mut all = Vec::new();
    for (first, records) in applied.iter() {
        assert_eq!(*first, all.len() as u64 + 1);
        all.extend(records.iter().cloned());
    }
    let mut next = [0_u32; 16];
    for bytes in &all {
        let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        let writer = (number >> 32) as usize;
        assert_eq!(number as u32, next[writer], "a submitter's records keep their order");
        next[writer] += 1;
    }
    let (log, _) = open(&disk).unwrap();
    assert!(read_all(&log, Sequence(1)).unwrap() == (1..).zip(all).collect::<Vec<_>>());
}

#[test]
fn what_waits_shares_a_group_that_is_cut_at_a_few_megabytes_and_the_queue_is_bounded() {
    let disk = Disk::new();
    let large =
        LogOptions { extent_bytes: 16 << 20, queue_bytes: 12 << 20, max_record_bytes: 8 << 20, ..options() };
    let (log, _) = Log::open_on(Arc::new(disk), large).unwrap();
    let (committer, applied, gate) = start_gated(log);
    let submitted = AtomicU64::new(0);
    let sizes = [1_000_000; 20].into_iter().chain([8 << 20]).chain([0; 1000]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let commits: Vec<Commit> = sizes
                .map(|size| {
                    submitted.fetch_add(1, Ordering::SeqCst);
                    committer.submit(Bytes::from(vec![1; size])).unwrap()
                })
                .collect();
            for commit in commits {
                commit.wait().unwrap();
            }
        });
        // The first group is being applied; the queue takes 12 more megabytes and then makes us wait.
        while submitted.load(Ordering::SeqCst) < 10 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        assert!(submitted.load(Ordering::SeqCst) <= 17, "{submitted:?}");
        drop(gate);
    });
    committer.stop();
    let applied = applied.lock().unwrap();
    for (_, records) in applied.iter() {
        let bytes: usize = records.iter().map(Bytes::len).sum();
        assert!(bytes <= 4 << 20 || records.len() == 1, "{} records of {bytes} bytes", records.len());
    }
    assert!(applied.iter().any(|(_, records)| records.len() > 100));
    assert_eq!(applied.iter().map(|(_, records)| records.len()).sum::<usize>(), 1021);
}

#[test]
fn a_failed_sync_is_never_repeated_and_ends_all_commits() {
    let disk = Disk::new();
    let (log, _) = open(&disk).unwrap();
    let (committer, applied, gate) = start_gated(log);
    let first = committer.submit(record(1, 100)).unwrap();
    while committer.last_synced().0 < 1 {
        std::thread::yield_now();
    }
    disk.fail_after(0, Fault::Sync);
    let syncs = disk.syncs();
    let group: Vec<Commit> = (2..6).map(|number| committer.submit(record(number, 100)).unwrap()).collect();
    drop(gate);
    assert_eq!(first.wait().unwrap(), Sequence(1));
    for commit in group {
        let answer = commit.wait();
        assert!(matches!(answer, Err(LogError::Io { action: "sync", .. })), "{answer:?}");
    }
    assert!(is_failed(&committer.submit(record(6, 100))));
    assert!(matches!(committer.failure(), Some(LogError::Failed { .. })));
    committer.release_before(Sequence(1));
    committer.stop();
    assert_eq!(disk.syncs(), syncs + 1);
    assert_eq!(applied.lock().unwrap().len(), 1);
    let (log, recovery) = open(&disk.cut_power(3)).unwrap();
    assert_eq!(read_all(&log, Sequence(1)).unwrap()[0], (1, record(1, 100)));
    assert!(recovery.next.0 == 2 || recovery.next.0 == 6);
}

#[test]
fn a_failed_write_and_a_failed_or_panicking_application_end_all_commits() {
    for word in ["write", "refuse", "panic"] {
        let disk = Disk::new();
        let (log, _) = open(&disk).unwrap();
        let (committer, applied, gate) = start_gated(log);
        let first = committer.submit(record(1, 100)).unwrap();
        while committer.last_synced().0 < 1 {
            std::thread::yield_now();
        }
        let waiting: Vec<Commit> =
            (2..40).map(|number| committer.submit(record(number, 8000)).unwrap()).collect();
        match word {
            "write" => disk.fail_after(0, Fault::Write),
            word => gate.send(Err(word.to_owned())).unwrap(),
        }
        drop(gate);
        let first = first.wait();
        assert_eq!(first.is_ok(), word == "write", "{first:?}");
        for commit in waiting {
            let answer = block_on(commit);
            assert!(matches!(answer, Err(LogError::Failed { .. } | LogError::Io { .. })), "{answer:?}");
        }
        assert!(is_failed(&committer.submit(record(2, 100))));
        assert!(committer.failure().is_some_and(|failure| failure.to_string().contains("restart")));
        committer.stop();
        assert!(applied.lock().unwrap().len() <= 1);
        let (log, _) = open(&disk).unwrap();
        assert!(read_all(&log, Sequence(1)).unwrap()[0] == (1, record(1, 100)));
    }
}

/// Notes on which threads groups were applied; fails when told to.
struct Threads(Arc<Mutex<Vec<ThreadId>>>, Arc<Mutex<Option<&'static str>>>);

impl Apply for Threads {
    type Error = std::io::Error;

    fn apply(&mut self, _: Sequence, _: &[Bytes]) -> std::io::Result<()> {
        let word = *self.1.lock().unwrap();
        assert_ne!(word, Some("panic"), "as the test asked");
        self.0.lock().unwrap().push(std::thread::current().id());
        word.map_or(Ok(()), |word| Err(std::io::Error::other(word)))
    }

    fn make_durable(&mut self) -> std::io::Result<Sequence> {
        Err(std::io::Error::other("nothing but the log makes records durable"))
    }

    fn apply_unlogged(&mut self, _: &mut dyn Iterator<Item = &Bytes>) -> std::io::Result<()> {
        Err(std::io::Error::other("nothing but the log makes records durable"))
    }
}

#[test]
fn a_lone_writer_does_the_work_itself_and_its_failure_is_that_of_all() {
    for word in ["refuse", "panic"] {
        let (threads, words) = (Arc::default(), Arc::default());
        let (log, _) = open(&Disk::new()).unwrap();
        let apply = Threads(Arc::clone(&threads), Arc::clone(&words));
        let committer = Committer::start(log, apply, &Registry::new());
        for number in 1..40 {
            assert_eq!(committer.commit(record(number, 100)).unwrap(), Sequence(number));
        }
        assert!(threads.lock().unwrap().iter().all(|thread| *thread == std::thread::current().id()));
        assert_eq!(committer.submit(record(40, 100)).unwrap().wait().unwrap(), Sequence(40));
        assert_ne!(threads.lock().unwrap().last(), Some(&std::thread::current().id()));
        committer.commit(record(41, 100)).unwrap();
        *words.lock().unwrap() = Some(word);
        let failed = std::thread::scope(|scope| scope.spawn(|| committer.commit(record(42, 100))).join());
        assert_eq!(failed.is_err(), word == "panic");
        assert!(failed.map_or(true, |answer| is_failed(&answer)));
        assert!(
            is_failed(&committer.submit(record(43, 100))) && is_failed(&committer.commit(record(43, 100)))
        );
        committer.stop();
    }
}

#[test]
fn a_full_disk_refuses_until_there_is_space_and_loses_nothing() {
    for threads in [false, true] {
        let disk = Disk::new();
        if threads {
            disk.run_threads();
        }
        let (log, _) = open(&disk).unwrap();
        let (committer, applied, statistics) = start(log);
        disk.set_capacity(Some(3 * crate::common::EXTENT_BYTES as usize + 8192));
        let mut accepted = Vec::new();
        let refused = loop {
            let bytes = record(accepted.len() as u64, 5000);
            match committer.submit(bytes.clone()).unwrap().wait() {
                Ok(sequence) => assert_eq!(sequence.0, accepted.len() as u64 + 1),
                Err(error) => break error,
            }
            accepted.push(bytes);
        };
        assert!(
            matches!(refused, LogError::Full { needed_bytes: crate::common::EXTENT_BYTES, .. }),
            "{refused:?}"
        );
        assert_eq!(accepted.len(), 6);
        // A record that would still fit may build on the one that was refused.
        for _ in 0..3 {
            let answer = committer.submit(record(9, 10)).unwrap().wait();
            assert!(matches!(answer, Err(LogError::Full { .. })), "{answer:?}");
        }
        assert!(committer.failure().is_none());
        assert!(!disk.names().contains(&"extent.new".to_owned()), "half an extent keeps no space");
        // Released extents are space enough: they are reused, not made again.
        committer.release_before(Sequence(4));
        let bytes = record(6, 5000);
        assert_eq!(committer.submit(bytes.clone()).unwrap().wait().unwrap(), Sequence(7));
        accepted.push(bytes);
        disk.set_capacity(None);
        for number in 7..20 {
            accepted.push(record(number, 5000));
            committer.submit(record(number, 5000)).unwrap().wait().unwrap();
        }
        committer.stop();
        assert_eq!(statistics.snapshot().counters["Log.Records"], 20);
        let count: usize = applied.lock().unwrap().iter().map(|(_, records)| records.len()).sum();
        assert_eq!(count, 20);
        let (log, recovery) = open(&disk).unwrap();
        assert_eq!((recovery.first.0, recovery.next.0), (3, 21));
        let expected: Vec<_> = (1..).zip(accepted).skip(2).collect();
        assert!(read_all(&log, recovery.first).unwrap() == expected);
    }
}

/// EMFILE, ENFILE and ENOMEM (open(2)), for a moment or for longer.
#[test]
fn a_lack_of_file_handles_stops_nothing_for_good() {
    for (errno, times, refused) in [(24, 3, false), (23, 3, false), (12, 3, false), (24, 30, true)] {
        let disk = Disk::new();
        let (log, _) = open(&disk).unwrap();
        let (committer, _, _) = start(log);
        committer.submit(record(1, 8000)).unwrap().wait().unwrap();
        disk.refuse_handles(errno, times);
        // It needs another extent.
        let answers: Vec<_> =
            (2..5).map(|number| committer.submit(record(number, 8000)).unwrap().wait()).collect();
        assert_eq!(answers.iter().any(Result::is_err), refused, "{errno} {times}: {answers:?}");
        for error in answers.into_iter().filter_map(Result::err) {
            assert!(matches!(error, LogError::Scarce { .. }), "{error:?}");
        }
        assert!(committer.failure().is_none());
        while disk.handles_are_refused() {
            drop(committer.submit(record(5, 8000)).unwrap().wait());
        }
        let stored = committer.submit(record(6, 8000)).unwrap().wait().unwrap();
        committer.stop();
        let (log, recovery) = open(&disk).unwrap();
        assert_eq!(recovery.next.0, stored.0 + 1);
        let all = read_all(&log, recovery.first).unwrap();
        assert_eq!(all.last(), Some(&(stored.0, record(6, 8000))));
    }
}

#[test]
fn what_waits_behind_a_refused_record_is_refused_with_it() {
    let disk = Disk::new();
    let (log, _) = open(&disk).unwrap();
    let (committer, _, gate) = start_gated(log);
    let first = committer.submit(record(1, 8000)).unwrap();
    while committer.last_synced().0 < 1 {
        std::thread::yield_now();
    }
    // By the time the third one could be tried, there would be space.
    disk.be_full_for(1);
    let waiting: Vec<Commit> = (2..5).map(|number| committer.submit(record(number, 8000)).unwrap()).collect();
    drop(gate);
    assert_eq!(first.wait().unwrap(), Sequence(1));
    for commit in waiting {
        let answer = commit.wait();
        assert!(matches!(answer, Err(LogError::Full { .. })), "{answer:?}");
    }
    assert_eq!(committer.submit(record(2, 8000)).unwrap().wait().unwrap(), Sequence(2));
}

#[test]
fn a_failure_while_preparing_in_the_background_is_made_good() {
    // Making a new log takes six syncs; what follows, until somebody appends, is the background's.
    for syncs in 6..9 {
        let disk = Disk::new();
        disk.run_threads();
        disk.fail_after(syncs, Fault::Sync);
        let (mut log, _) = open(&disk).unwrap();
        while disk.fault_is_pending() {
            std::thread::yield_now();
        }
        for number in 1..6 {
            assert_eq!(log.append(&[record(number, 8000)]).unwrap(), Sequence(number));
        }
        let disk = disk.cut_power(syncs);
        drop(log);
        let (log, _) = open(&disk).unwrap();
        assert_eq!(read_all(&log, Sequence(1)).unwrap().len(), 5);
    }
}

#[test]
fn stopping_writes_what_waits() {
    let disk = Disk::new();
    let (log, _) = open(&disk).unwrap();
    let (committer, _, gate) = start_gated(log);
    let commits: Vec<Commit> = (0..50).map(|number| committer.submit(record(number, 700)).unwrap()).collect();
    assert!(matches!(
        committer.submit(record(1, 9000)),
        Err(LogError::TooLarge { bytes: 9000, limit_bytes: 8192 })
    ));
    drop(gate);
    committer.stop();
    for (number, commit) in (1..).zip(commits) {
        assert_eq!(commit.wait().unwrap(), Sequence(number));
    }
    let (_, recovery) = open(&disk).unwrap();
    assert_eq!(recovery.next, Sequence(51));
}

#[test]
fn a_commit_wakes_the_task_that_asked_last_and_can_be_dropped() {
    let disk = Disk::new();
    let (log, _) = open(&disk).unwrap();
    let (committer, _, gate) = start_gated(log);
    let mut commit = pin!(committer.submit(record(1, 10)).unwrap());
    drop(committer.submit(record(2, 10)).unwrap());
    let counters = [Arc::new(Woken::default()), Arc::new(Woken::default())];
    for counter in &counters {
        let waker = Waker::from(counter.clone());
        assert!(commit.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(gate);
    committer.stop();
    let woken = counters.each_ref().map(|counter| counter.0.load(Ordering::SeqCst));
    assert_eq!(woken, [0, 1]);
    assert_eq!(block_on(commit).unwrap(), Sequence(1));
}

#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
