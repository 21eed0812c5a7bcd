//! Several servers agree on a group before it is written.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Disk, EXTENT_BYTES, Fault, open, read_all, record};
use bytes::Bytes;
use scrinium_log::{Agree, Apply, Commit, Committer, Log, LogError, NotAgreed, Sequence};
use scrinium_statistics::Registry;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Agreed,
    Refused,
    Unknown,
    Panic,
    /// Agreed, and then the log's device fails.
    AgreedAndBroken,
}

/// The number of the first record of each group, and the group.
type Asked = Arc<Mutex<Vec<(u64, Vec<Bytes>)>>>;

/// Notes what was asked, and answers as the test wants it.
#[derive(Clone)]
struct Agreement {
    asked: Asked,
    word: Arc<Mutex<Word>>,
    applied: Arc<AtomicUsize>,
    disk: Disk,
    group_bytes: usize,
}

fn agreement(disk: &Disk) -> Agreement {
    Agreement {
        asked: Arc::default(),
        word: Arc::new(Mutex::new(Word::Agreed)),
        applied: Arc::default(),
        disk: disk.clone(),
        group_bytes: 1 << 20,
    }
}

impl Agreement {
    fn will(&self, word: Word) {
        *self.word.lock().unwrap() = word;
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn start(&self, log: Log) -> Committer {
        Committer::start_agreed(log, self.clone(), self.clone(), &Registry::new())
    }
}

impl Agree for Agreement {
    fn agree(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), NotAgreed> {
        let applied = self.applied.load(Ordering::SeqCst) as u64;
        assert_eq!(first.0, applied + 1, "all that was agreed on before is applied");
        self.asked.lock().unwrap().push((first.0, records.to_vec()));
        let cause = || Arc::new(std::io::Error::other("as the test asked"));
        let word = *self.word.lock().unwrap();
        match word {
            Word::Agreed => Ok(()),
            Word::Refused => Err(NotAgreed::Refused(cause())),
            Word::Unknown => Err(NotAgreed::Unknown(cause())),
            Word::Panic => panic!("as the test asked"),
            Word::AgreedAndBroken => {
                self.disk.fail_after(0, Fault::Write);
                Ok(())
            }
        }
    }

    fn group_bytes(&self) -> usize {
        self.group_bytes
    }
}

impl Apply for Agreement {
    type Error = std::io::Error;

    fn apply(&mut self, _: Sequence, records: &[Bytes]) -> std::io::Result<()> {
        self.applied.fetch_add(records.len(), Ordering::SeqCst);
        Ok(())
    }

    fn make_durable(&mut self) -> std::io::Result<Sequence> {
        Err(std::io::Error::other("nothing but the log makes records durable"))
    }

    fn apply_unlogged(&mut self, _: &mut dyn Iterator<Item = &Bytes>) -> std::io::Result<()> {
        Err(std::io::Error::other("nothing stays out of the log"))
    }
}

/// Through the queue, and as a lone writer.
fn commit(committer: &Committer, alone: bool, bytes: Bytes) -> Result<Sequence, LogError> {
    if alone { committer.commit(bytes) } else { committer.submit(bytes)?.wait() }
}

#[test]
fn each_group_is_agreed_on_before_it_is_written_and_under_its_number() {
    for alone in [false, true] {
        let disk = Disk::new();
        let agreement = agreement(&disk);
        let committer = agreement.start(open(&disk).unwrap().0);
        for number in 1..20 {
            assert_eq!(commit(&committer, alone, record(number, 100)).unwrap(), Sequence(number));
        }
        let epoch = committer.failures();
        let unlogged = committer.submit_unlogged(Some(epoch), record(20, 100)).unwrap();
        assert_eq!(unlogged.wait().unwrap(), Sequence(20), "nothing stays out of the log");
        committer.stop();
        let asked: Vec<(u64, Bytes)> = agreement
            .asked
            .lock()
            .unwrap()
            .iter()
            .flat_map(|(first, records)| (*first..).zip(records.clone()))
            .collect();
        assert!(read_all(&open(&disk).unwrap().0, Sequence(1)).unwrap() == asked);
    }
}

#[test]
fn what_is_refused_is_nowhere_and_its_number_is_free() {
    for alone in [false, true] {
        let disk = Disk::new();
        let agreement = agreement(&disk);
        let committer = agreement.start(open(&disk).unwrap().0);
        commit(&committer, alone, record(1, 100)).unwrap();
        agreement.will(Word::Refused);
        let epoch = committer.failures();
        let refused = commit(&committer, alone, record(2, 100));
        assert!(matches!(&refused, Err(error @ LogError::Refused { .. }) if error.may_pass()), "{refused:?}");
        assert!(committer.failures() > epoch && committer.failure().is_none());
        let built_on_it = committer.submit_after(epoch, record(3, 100)).unwrap_err();
        assert!(matches!(built_on_it, LogError::Refused { .. }), "{built_on_it:?}");
        agreement.will(Word::Agreed);
        assert_eq!(commit(&committer, alone, record(4, 100)).unwrap(), Sequence(2));
        committer.stop();
        let expected = [(1, record(1, 100)), (2, record(4, 100))];
        assert!(read_all(&open(&disk).unwrap().0, Sequence(1)).unwrap() == expected);
    }
}

#[test]
fn what_is_unknown_may_come_later_and_what_waited_behind_it_does_not() {
    let disk = Disk::new();
    let agreement = agreement(&disk);
    let committer = agreement.start(open(&disk).unwrap().0);
    agreement.will(Word::Unknown);
    let unknown = commit(&committer, false, record(1, 100));
    assert!(matches!(&unknown, Err(error @ LogError::Unknown { .. }) if !error.may_pass()), "{unknown:?}");
    assert!(committer.failure().is_none(), "the log is well");
    // It was agreed on, and comes as it does to every other server.
    committer.follow(Sequence(1), &[record(1, 100)]).unwrap();
    agreement.will(Word::Agreed);
    assert_eq!(commit(&committer, false, record(2, 100)).unwrap(), Sequence(2));
    committer.stop();
    let expected = [(1, record(1, 100)), (2, record(2, 100))];
    assert!(read_all(&open(&disk).unwrap().0, Sequence(1)).unwrap() == expected);
}

#[test]
fn records_of_others_are_written_in_their_order_alone() {
    let disk = Disk::new();
    let agreement = agreement(&disk);
    let committer = agreement.start(open(&disk).unwrap().0);
    committer.follow(Sequence(1), &[record(1, 100), record(2, 100)]).unwrap();
    for wrong in [0, 1, 2, 4, u64::MAX] {
        let answer = committer.follow(Sequence(wrong), &[record(9, 100)]);
        assert!(matches!(answer, Err(LogError::Misplaced { next: Sequence(3), .. })), "{answer:?}");
    }
    committer.follow(Sequence(3), &[record(3, 100)]).unwrap();
    assert_eq!((agreement.asked(), agreement.applied.load(Ordering::SeqCst)), (0, 3));
    assert_eq!(committer.last_synced(), Sequence(3));
    committer.stop();
    let expected: Vec<(u64, Bytes)> = (1..4).map(|number| (number, record(number, 100))).collect();
    assert!(read_all(&open(&disk).unwrap().0, Sequence(1)).unwrap() == expected);
}

#[test]
fn a_full_disk_is_known_before_anybody_is_asked() {
    let disk = Disk::new();
    let agreement = agreement(&disk);
    let committer = agreement.start(open(&disk).unwrap().0);
    disk.set_capacity(Some(3 * EXTENT_BYTES as usize + 8192));
    let mut number = 0;
    let refused = loop {
        number += 1;
        match commit(&committer, false, record(number, 5000)) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, LogError::Full { .. }), "{refused:?}");
    assert_eq!(agreement.asked() as u64, number - 1);
    assert!(matches!(committer.follow(Sequence(number), &[record(9, 5000)]), Err(LogError::Full { .. })));
    disk.set_capacity(None);
    committer.follow(Sequence(number), &[record(number, 5000)]).unwrap();
    assert_eq!(commit(&committer, true, record(number + 1, 5000)).unwrap(), Sequence(number + 1));
}

/// A new extent was begun for a group that was refused; another one goes there.
#[test]
fn room_that_was_made_in_vain_is_used_by_the_next_group() {
    let disk = Disk::new();
    let agreement = agreement(&disk);
    let committer = agreement.start(open(&disk).unwrap().0);
    commit(&committer, false, record(1, 8000)).unwrap();
    agreement.will(Word::Refused);
    for length in [8000, 10, 8192] {
        commit(&committer, false, record(2, length)).unwrap_err();
    }
    // Nothing was lost by it, however the process ends.
    let (log, recovery) = open(&disk.copy()).unwrap();
    assert_eq!((recovery.next, read_all(&log, Sequence(1)).unwrap().len()), (Sequence(2), 1));
    agreement.will(Word::Agreed);
    for number in 2..6 {
        assert_eq!(commit(&committer, false, record(number, 8000)).unwrap(), Sequence(number));
    }
    committer.stop();
    assert_eq!(read_all(&open(&disk).unwrap().0, Sequence(1)).unwrap().len(), 5);
}

#[test]
fn a_log_that_fails_after_agreement_has_failed_and_follows_after_a_restart() {
    let disk = Disk::new();
    let agreement = agreement(&disk);
    let committer = agreement.start(open(&disk).unwrap().0);
    commit(&committer, false, record(1, 100)).unwrap();
    agreement.will(Word::AgreedAndBroken);
    let failed = commit(&committer, false, record(2, 100)).unwrap_err();
    assert!(matches!(failed, LogError::Io { .. }), "{failed:?}");
    assert!(matches!(committer.follow(Sequence(2), &[record(2, 100)]), Err(LogError::Failed { .. })));
    committer.stop();
    let (log, recovery) = open(&disk).unwrap();
    assert_eq!(recovery.next, Sequence(2));
    let committer = agreement.start(log);
    committer.follow(Sequence(2), &[record(2, 100)]).unwrap();
}

#[test]
fn an_agreement_that_panics_leaves_nobody_waiting() {
    let disk = Disk::new();
    let agreement = agreement(&disk);
    let committer = agreement.start(open(&disk).unwrap().0);
    agreement.will(Word::Panic);
    let commits: Vec<Commit> =
        (1..4).map_while(|number| committer.submit(record(number, 100)).ok()).collect();
    for commit in commits {
        assert!(matches!(commit.wait(), Err(LogError::Failed { .. })));
    }
    // Those who wait hear of it first.
    while committer.failure().is_none() {
        std::thread::yield_now();
    }
}

#[test]
fn groups_are_no_larger_than_the_agreement_takes() {
    let disk = Disk::new();
    let agreement = Agreement { group_bytes: 1000, ..agreement(&disk) };
    let committer = agreement.start(open(&disk).unwrap().0);
    let commits: Vec<Commit> = (1..60).map(|number| committer.submit(record(number, 100)).unwrap()).collect();
    for commit in commits {
        commit.wait().unwrap();
    }
    committer.submit(record(60, 996)).unwrap().wait().unwrap();
    let too_large = committer.submit(record(61, 997)).unwrap_err();
    assert!(matches!(too_large, LogError::TooLarge { bytes: 997, limit_bytes: 996 }), "{too_large:?}");
    let bytes = |records: &Vec<Bytes>| records.iter().map(|record| record.len() + 4).sum::<usize>();
    assert!(agreement.asked.lock().unwrap().iter().all(|(_, records)| bytes(records) <= 1000));
}
