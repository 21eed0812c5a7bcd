//! What was released is in the archive, whatever happens to the archive or the log.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use scrinium_fault::quick_folder;
use scrinium_log::{ArchivedLog, Log, LogError, LogOptions, Sequence};

const LIMIT: Duration = Duration::from_secs(30);

fn options(dir: &Path) -> LogOptions {
    fs::create_dir_all(dir.join("archive")).unwrap();
    LogOptions {
        extent_bytes: 16 << 10,
        max_record_bytes: 8 << 10,
        archive_dir: Some(dir.join("archive")),
        ..LogOptions::new(dir.join("log"))
    }
}

/// In memory where that is possible: what is asked here is not whether it is synced.
fn folder() -> tempfile::TempDir {
    quick_folder()
}

fn record(number: u64, length: usize) -> Bytes {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(length.max(8), number as u8);
    bytes.into()
}

fn read(dir: &Path, key: u64, from: u64) -> Result<Vec<Bytes>, LogError> {
    let archived = ArchivedLog::open(&dir.join("archive"), key).unwrap();
    let mut records = Vec::new();
    for group in archived.groups_from(Sequence(from)) {
        let group = group?;
        assert!(group.time_ms.is_some());
        let skip = from.saturating_sub(group.first.0) as usize;
        records.extend(group.records.into_iter().skip(skip));
    }
    Ok(records)
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<usize>),
    ReleaseAll,
    ArchiveTail,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(0_usize..4000, 1..4).prop_map(Step::Append),
        2 => Just(Step::ReleaseAll),
        1 => Just(Step::ArchiveTail),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(24), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_archive_holds_every_record_up_to_the_last_tail(
        first in 1_u64..1000, steps in prop::collection::vec(step(), 1..60), from in any::<u64>(),
    ) {
        let dir = folder();
        let options = LogOptions { first: Sequence(first), ..options(dir.path()) };
        let mut log = Log::open(options.clone()).unwrap().0;
        let key = log.key();
        let mut model: Vec<Bytes> = Vec::new();
        for step in steps {
            match step {
                Step::Append(lengths) => {
                    let next = first + model.len() as u64;
                    let group: Vec<Bytes> = (next..).zip(&lengths).map(|(n, length)| record(n, *length)).collect();
                    prop_assert_eq!(log.append(&group).unwrap().0, next + group.len() as u64 - 1);
                    model.extend(group);
                }
                Step::ReleaseAll => log.release_before(Sequence(u64::MAX)).unwrap(),
                Step::ArchiveTail => {
                    let next = log.archive_tail().unwrap();
                    log.archive().unwrap().wait(next, LIMIT).unwrap();
                    prop_assert!(read(dir.path(), key, first).unwrap() == model);
                }
                Step::Reopen => {
                    drop(log);
                    log = Log::open(options.clone()).unwrap().0;
                    prop_assert_eq!(log.key(), key);
                }
            }
        }
        let next = log.archive_tail().unwrap();
        log.archive().unwrap().wait(next, LIMIT).unwrap();
        let from = first + from % (model.len() as u64 + 1);
        prop_assert!(read(dir.path(), key, from).unwrap() == model[(from - first) as usize..]);
        // Whatever is lost of it is noticed.
        let archived = ArchivedLog::open(&dir.path().join("archive"), key).unwrap();
        if let Some(lost) = archived.segments().len().checked_sub(2) {
            fs::remove_file(&archived.segments()[lost].path).unwrap();
            let noticed = matches!(read(dir.path(), key, first), Err(LogError::Archive { .. }));
            prop_assert!(noticed);
        }
    }
}

#[test]
fn while_the_archive_is_gone_the_log_keeps_everything() {
    let dir = folder();
    let mut log = Log::open(options(dir.path())).unwrap().0;
    let (archive, key) = (log.archive().unwrap(), log.key());
    let (there, gone) = (dir.path().join("archive"), dir.path().join("gone"));
    fs::rename(&there, &gone).unwrap();
    let records: Vec<Bytes> = (1..60).map(|number| record(number, 1000)).collect();
    for record in &records {
        log.append(std::slice::from_ref(record)).unwrap();
        log.release_before(Sequence(u64::MAX)).unwrap();
    }
    assert!(matches!(archive.wait(Sequence(10), LIMIT), Err(LogError::Archive { .. })));
    assert!(archive.status().failure.is_some());
    assert_eq!(log.read_from(Sequence(1)).unwrap().count(), records.len());
    fs::rename(&gone, &there).unwrap();
    let next = log.archive_tail().unwrap();
    archive.wait(next, LIMIT).unwrap();
    assert!(archive.status().failure.is_none());
    assert!(read(dir.path(), key, 1).unwrap() == records);
    // Now the log lets go of it.
    log.archive_tail().unwrap();
    assert!(matches!(log.read_from(Sequence(1)), Err(LogError::NotHeld { .. })));
}

#[test]
fn a_flipped_bit_in_a_segment_is_found() {
    let dir = folder();
    let mut log = Log::open(options(dir.path())).unwrap().0;
    for number in 1..20 {
        log.append(&[record(number, 900)]).unwrap();
    }
    let next = log.archive_tail().unwrap();
    log.archive().unwrap().wait(next, LIMIT).unwrap();
    let archived = ArchivedLog::open(&dir.path().join("archive"), log.key()).unwrap();
    let segment = archived.segments()[0].clone();
    archived.check(&segment).unwrap();
    let whole = fs::read(&segment.path).unwrap();
    for place in (0..80).chain(4096..4150).chain([5000, 9000]) {
        let mut flipped = whole.clone();
        flipped[place] ^= 0x10;
        fs::write(&segment.path, flipped).unwrap();
        let checked = ArchivedLog::open(&dir.path().join("archive"), log.key())
            .and_then(|archived| archived.check(&archived.segments()[0].clone()));
        assert!(checked.is_err(), "bit at {place}");
    }
}
