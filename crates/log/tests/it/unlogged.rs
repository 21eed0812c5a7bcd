//! Records that stay out of the log, and a log of limited size.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Disk, EXTENT_BYTES, open, options, read_all, record};
use bytes::Bytes;
use scrinium_log::{Apply, Committer, Log, LogError, LogOptions, Sequence};
use scrinium_statistics::Registry;

/// What was done, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Done {
    Logged(u64, Vec<Bytes>),
    Unlogged(Vec<Bytes>),
}

#[derive(Clone, Default)]
struct Notes {
    done: Arc<Mutex<Vec<Done>>>,
    refuses: Arc<AtomicBool>,
}

impl Notes {
    fn permitted(&self) -> std::io::Result<()> {
        if self.refuses.load(Ordering::SeqCst) {
            Err(std::io::Error::other("as the test asked"))
        } else {
            Ok(())
        }
    }
}

impl Apply for Notes {
    type Error = std::io::Error;

    fn apply(&mut self, first: Sequence, records: &[Bytes]) -> std::io::Result<()> {
        self.done.lock().unwrap().push(Done::Logged(first.0, records.to_vec()));
        Ok(())
    }

    fn make_durable(&mut self) -> std::io::Result<Sequence> {
        self.permitted()?;
        let done = self.done.lock().unwrap();
        let last = done.iter().rev().find_map(|done| match done {
            Done::Logged(first, records) => Some(first + records.len() as u64 - 1),
            Done::Unlogged(_) => None,
        });
        Ok(Sequence(last.unwrap_or(0)))
    }

    fn apply_unlogged(&mut self, records: &mut dyn Iterator<Item = &Bytes>) -> std::io::Result<()> {
        self.permitted()?;
        self.done.lock().unwrap().push(Done::Unlogged(records.cloned().collect()));
        Ok(())
    }
}

fn number(record: &Bytes) -> u64 {
    u64::from_le_bytes(record[..8].try_into().unwrap())
}

/// Each of many threads submits records of one kind, and sees its own in order; only the logged ones are in the log.
#[test]
fn both_kinds_keep_their_order_and_share_one_committer() {
    let disk = Disk::new();
    disk.run_threads();
    let (log, _) = open(&disk).unwrap();
    let (notes, statistics) = (Notes::default(), Registry::new());
    let committer = Committer::start(log, notes.clone(), &statistics);
    std::thread::scope(|scope| {
        for writer in 0..12_u64 {
            let committer = &committer;
            scope.spawn(move || {
                let submit = |index: u64| match writer % 2 {
                    0 => committer.submit(record(writer << 32 | index, 60)).unwrap(),
                    _ => committer.submit_unlogged(None, record(writer << 32 | index, 60)).unwrap(),
                };
                for index in (0..100).step_by(2) {
                    let (first, second) = (submit(index), submit(index + 1));
                    second.wait().unwrap();
                    first.wait().unwrap();
                }
            });
        }
    });
    committer.stop();
    let mut next = [0_u64; 12];
    let mut logged = Vec::new();
    let done = notes.done.lock().unwrap();
    for done in done.iter() {
        let (kind, records) = match done {
            Done::Logged(first, records) => {
                assert_eq!(*first, logged.len() as u64 + 1);
                logged.extend(records.iter().cloned());
                (0, records)
            }
            Done::Unlogged(records) => (1, records),
        };
        for record in records {
            let (writer, index) = ((number(record) >> 32) as usize, number(record) & 0xffff_ffff);
            assert_eq!((writer % 2, index), (kind, next[writer]));
            next[writer] += 1;
        }
    }
    assert_eq!(next, [100; 12]);
    let (log, _) = open(&disk).unwrap();
    assert!(read_all(&log, Sequence(1)).unwrap() == (1..).zip(logged).collect::<Vec<_>>());
    let counters = statistics.snapshot().counters;
    assert_eq!((counters["Log.Records"], counters["Log.Unlogged.Records"]), (600, 600));
    assert!(counters["Log.Unlogged.Groups"] <= 600);
}

#[test]
fn a_failure_past_the_log_ends_commits_of_both_kinds() {
    let disk = Disk::new();
    let (log, _) = open(&disk).unwrap();
    let notes = Notes::default();
    let committer = Committer::start(log, notes.clone(), &Registry::new());
    let failures = committer.failures();
    committer.submit_unlogged(Some(failures), record(1, 10)).unwrap().wait().unwrap();
    notes.refuses.store(true, Ordering::SeqCst);
    let answer = committer.submit_unlogged(Some(failures), record(2, 10)).unwrap().wait();
    assert!(matches!(answer, Err(LogError::Failed { .. })), "{answer:?}");
    assert!(matches!(committer.submit(record(3, 10)), Err(LogError::Failed { .. })));
    assert!(committer.failures() > failures);
}

/// However much is written, the log takes no more than it may; who commits waits while it is emptied, and is refused
/// only while it cannot be.
#[test]
fn a_log_of_limited_size_is_emptied_while_commits_wait() {
    let disk = Disk::new();
    disk.run_threads();
    let max_bytes = 3 * EXTENT_BYTES + 100;
    let limited = LogOptions { max_bytes: Some(max_bytes), spare_extents: 5, ..options() };
    let open = || Log::open_on(Arc::new(disk.clone()), limited.clone());
    let (log, _) = open().unwrap();
    let (notes, statistics) = (Notes::default(), Registry::new());
    let committer = Committer::start(log, notes.clone(), &statistics);
    let mut written = 0;
    let mut write = |count: u64| -> Result<(), LogError> {
        for _ in 0..count {
            committer.commit(record(written + 1, 900))?;
            written += 1;
        }
        Ok(())
    };
    write(400).unwrap();
    let used = disk.used_bytes() as u64;
    // The control file has two blocks.
    assert!(used <= max_bytes + 8192, "{used} bytes are used of {max_bytes}");
    assert!(statistics.snapshot().counters["Log.Waits"] >= 2);
    assert!(statistics.snapshot().gauges["Log.Size"] <= max_bytes as f64);
    notes.refuses.store(true, Ordering::SeqCst);
    let refused = write(400).unwrap_err();
    assert!(matches!(refused, LogError::AtLimit { .. }) && refused.to_string().contains("as the test asked"));
    notes.refuses.store(false, Ordering::SeqCst);
    write(100).unwrap();
    committer.stop();
    let applied: Vec<u64> = notes
        .done
        .lock()
        .unwrap()
        .iter()
        .flat_map(|done| match done {
            Done::Logged(_, records) => records.iter().map(number).collect::<Vec<_>>(),
            Done::Unlogged(_) => Vec::new(),
        })
        .collect();
    assert_eq!(applied, (1..=written).collect::<Vec<_>>());
    let (log, recovery) = open().unwrap();
    assert_eq!(recovery.next, Sequence(written + 1));
    drop(log);
    let too_small = LogOptions { max_bytes: Some(2 * EXTENT_BYTES), ..options() };
    assert!(matches!(Log::open_on(Arc::new(disk), too_small), Err(LogError::Options { .. })));
}
