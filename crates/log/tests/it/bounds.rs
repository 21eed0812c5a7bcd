//! What is refused, and that refusing changes nothing.

use std::sync::Arc;

use crate::common::{Disk, EXTENT_BYTES, open, options, read_all, record};
use bytes::Bytes;
use scrinium_log::{Log, LogError, LogOptions, Sequence};

#[test]
fn records_and_groups_that_are_too_large_are_refused() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    let limit = options().max_record_bytes;
    assert_eq!(log.append(&[record(1, limit)]).unwrap(), Sequence(1));
    let refused = log.append(&[record(2, 10), record(3, limit + 1)]);
    assert!(
        matches!(refused, Err(LogError::TooLarge { bytes, limit_bytes }) if bytes == limit + 1 && limit_bytes == limit)
    );
    let refused = log.append(&[record(2, limit), record(3, limit)]);
    assert!(matches!(refused, Err(LogError::TooLarge { bytes, .. }) if bytes == 2 * (limit + 4)));
    assert_eq!(log.append(&[]).unwrap(), Sequence(1));
    assert_eq!(log.append(&[Bytes::new()]).unwrap(), Sequence(2));
    assert!(read_all(&log, Sequence(1)).unwrap() == [(1, record(1, limit)), (2, Bytes::new())]);
}

#[test]
fn the_largest_record_of_an_extent_fits() {
    let disk = Disk::new();
    let largest = EXTENT_BYTES as usize - 4096 - 48 - 8 - 4;
    let most = LogOptions { max_record_bytes: largest, ..options() };
    let (mut log, _) = Log::open_on(Arc::new(disk.clone()), most.clone()).unwrap();
    for number in 1..4 {
        assert_eq!(log.append(&[record(number, largest)]).unwrap(), Sequence(number));
    }
    drop(log);
    let (log, recovery) = Log::open_on(Arc::new(disk), most).unwrap();
    assert_eq!(recovery.next, Sequence(4));
    assert!(read_all(&log, Sequence(3)).unwrap() == [(3, record(3, largest))]);
}

#[test]
fn reading_begins_at_any_record_that_is_held_and_nowhere_else() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    for first in (1..40).step_by(3) {
        log.append(&[record(first, 900), record(first + 1, 900), record(first + 2, 900)]).unwrap();
    }
    log.release_before(Sequence(9)).unwrap();
    for from in 1..=41 {
        let read =
            log.read_from(Sequence(from)).map(|reader| reader.map(|record| record.unwrap().sequence.0));
        match read {
            // The first extent holds four groups, and the second begins with record 13.
            Ok(read) => assert!(from <= 40 && read.eq(from..40), "from {from}"),
            Err(LogError::NotHeld { first: Sequence(1), next: Sequence(40), .. }) => assert_eq!(from, 41),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(matches!(log.read_from(Sequence(0)), Err(LogError::NotHeld { .. })));
    log.release_before(Sequence(u64::MAX)).unwrap();
    assert!(matches!(log.read_from(Sequence(12)), Err(LogError::NotHeld { first: Sequence(37), .. })));
    assert_eq!(log.append(&[record(40, 10)]).unwrap(), Sequence(40));
    drop(log);
    let (_, recovery) = open(&disk).unwrap();
    assert_eq!((recovery.first, recovery.next), (Sequence(37), Sequence(41)));
}

#[test]
fn a_log_keeps_its_size_of_extents_and_refuses_options_that_contradict_each_other() {
    let disk = Disk::new();
    let open_with = |options| Log::open_on(Arc::new(disk.clone()), options);
    for wrong in [
        LogOptions { extent_bytes: 4096, ..options() },
        LogOptions { extent_bytes: EXTENT_BYTES + 1, ..options() },
        LogOptions { extent_bytes: 8 << 30, ..options() },
        LogOptions { max_record_bytes: EXTENT_BYTES as usize, ..options() },
    ] {
        assert!(matches!(open_with(wrong), Err(LogError::Options { .. })));
    }
    assert!(disk.names().is_empty());
    drop(open_with(options()).unwrap());
    let larger = LogOptions { extent_bytes: 1 << 20, max_record_bytes: 100_000, ..options() };
    let (mut log, _) = open_with(larger).unwrap();
    let limit_bytes = EXTENT_BYTES as usize - 4096 - 48 - 8 - 4;
    let refused = log.append(&[record(1, 50_000)]);
    assert!(matches!(refused, Err(LogError::TooLarge { limit_bytes: limit, .. }) if limit == limit_bytes));
    log.append(&[record(1, limit_bytes)]).unwrap();
    assert_eq!(disk.read("S0000001.TXN").len() as u64, EXTENT_BYTES);
}

#[test]
fn released_extents_are_reused_and_surplus_ones_deleted() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    let extents = |disk: &Disk| disk.names().iter().filter(|name| name.ends_with(".TXN")).count();
    for number in 1..=10 {
        log.append(&[record(number, 8000)]).unwrap();
    }
    assert_eq!(extents(&disk), 10);
    log.release_before(Sequence(10)).unwrap();
    for number in 11..=40 {
        log.append(&[record(number, 8000)]).unwrap();
        log.release_before(Sequence(number)).unwrap();
    }
    // The one being written, one released but not yet taken care of, and the spare ones.
    assert!(extents(&disk) <= 2 + options().spare_extents, "{:?}", disk.names());
    assert!(read_all(&log, Sequence(40)).unwrap() == [(40, record(40, 8000))]);
    drop(log);
    // A crash may leave released extents behind; one that somebody has shortened is no extent any more.
    disk.write("S0000002.TXN", vec![0; 100]);
    let (log, recovery) = open(&disk).unwrap();
    assert!(!disk.names().contains(&"S0000002.TXN".to_owned()));
    assert_eq!((recovery.first, recovery.next), (Sequence(40), Sequence(41)));
    assert!(read_all(&log, Sequence(40)).unwrap() == [(40, record(40, 8000))]);
}
