//! Torn ends are cut, anything else that is not what was written is an error that names the place.

use std::collections::BTreeMap;

use crate::common::{Disk, EXTENT_BYTES, open, read_all, record};
use bytes::Bytes;
use scrinium_log::{LogError, Sequence};

const FRAME_HEADER: usize = 48;

/// An extent and an offset in it.
type Place = (u64, usize);

/// Groups of one to three records over three extents, closed in order. With the places where the frames
/// begin, and where the next one will.
fn filled(disk: &Disk) -> (Vec<Bytes>, Vec<Place>, Place) {
    let (mut log, _) = open(disk).unwrap();
    let (mut records, mut frames) = (Vec::new(), Vec::new());
    let (mut extent, mut offset) = (1, 4096);
    while extent < 3 || offset < 9000 {
        let first = records.len() as u64 + 1;
        let group: Vec<Bytes> = (0..1 + first % 3)
            .map(|index| record(first + index, 300 + (first as usize * 97) % 700))
            .collect();
        let payload: usize = group.iter().map(|bytes| bytes.len() + 4).sum();
        let bytes = (FRAME_HEADER + payload).next_multiple_of(8);
        if offset + bytes > EXTENT_BYTES as usize {
            (extent, offset) = (extent + 1, 4096);
        }
        frames.push((extent, offset));
        offset += bytes;
        log.append(&group).unwrap();
        records.extend(group);
    }
    drop(log);
    (records, frames, (extent, offset))
}

/// As after a kill: the mark of an orderly closing is taken away by opening once more.
fn reopened_and_killed(disk: &Disk) -> Disk {
    let (log, _) = open(disk).unwrap();
    let after = disk.kill();
    drop(log);
    after
}

fn numbered(records: &[Bytes]) -> Vec<(u64, Bytes)> {
    (1..).zip(records.iter().cloned()).collect()
}

fn name(extent: u64) -> String {
    format!("S{extent:07}.TXN")
}

#[test]
fn a_torn_end_is_cut_wherever_it_is_torn() {
    let disk = Disk::new();
    let (mut records, _, (extent, from)) = filled(&disk);
    let before = disk.read(&name(extent));
    let (mut log, _) = open(&disk).unwrap();
    let first = records.len() as u64 + 1;
    log.append(&[record(first, 150), record(first + 1, 150), record(first + 2, 150)]).unwrap();
    let disk = disk.kill();
    drop(log);
    let whole = disk.read(&name(extent));
    let padding = from + FRAME_HEADER + 3 * 154;
    let end = padding.next_multiple_of(8);
    for torn_at in from..=end {
        // What had not reached the disk is what was there before, or garbage.
        for garbage in [false, true] {
            let mut content = whole.clone();
            content[torn_at..end].copy_from_slice(&before[torn_at..end]);
            if garbage {
                content[torn_at..end].fill(0xa5);
            }
            let copy = disk.copy();
            copy.write(&name(extent), content);
            let (mut log, recovery) = open(&copy).unwrap();
            if torn_at >= padding {
                assert_eq!(recovery.cut, None);
                assert_eq!(recovery.next.0, records.len() as u64 + 4, "torn at {torn_at}");
                continue;
            }
            assert_eq!(recovery.next.0, records.len() as u64 + 1, "torn at {torn_at}");
            if torn_at >= from + 16 {
                let cut = recovery.cut.unwrap();
                assert_eq!(
                    (cut.file.file_name().unwrap().to_str().unwrap(), cut.offset),
                    (&*name(extent), from as u64)
                );
            }
            assert!(read_all(&log, Sequence(1)).unwrap() == numbered(&records));
            log.append(&[record(1, 10)]).unwrap();
            let copy = copy.kill();
            drop(log);
            let (log, recovery) = open(&copy).unwrap();
            assert_eq!(recovery.cut, None);
            records.push(record(1, 10));
            assert!(read_all(&log, Sequence(1)).unwrap() == numbered(&records));
            records.pop();
        }
    }
}

#[test]
fn a_torn_frame_is_cut_after_an_orderly_closing_too() {
    let disk = Disk::new();
    let (records, _, (extent, from)) = filled(&disk);
    let copy = disk.copy();
    let (mut log, _) = open(&copy).unwrap();
    log.append(&[record(1, 1000)]).unwrap();
    let mut content = copy.read(&name(extent));
    content[from + 500] ^= 1;
    disk.write(&name(extent), content);
    let (mut log, recovery) = open(&disk).unwrap();
    assert_eq!(recovery.cut.map(|cut| (cut.offset, cut.bytes)), Some((from as u64, 1056)));
    // Too large for the rest of the extent, so that nothing is written over the torn header.
    let last = log.append(&[record(1, 8192)]).unwrap();
    assert_eq!(last.0, records.len() as u64 + 1);
    assert_eq!(read_all(&log, Sequence(1)).unwrap().len(), records.len() + 1);
}

#[test]
fn an_extent_that_a_torn_frame_left_empty_can_become_the_first() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&[record(1, 8000)]).unwrap();
    log.append(&[record(2, 8000)]).unwrap();
    let disk = disk.kill();
    drop(log);
    let mut content = disk.read(&name(2));
    content[4096 + FRAME_HEADER + 100] ^= 1;
    disk.write(&name(2), content);
    let (mut log, recovery) = open(&disk).unwrap();
    assert_eq!((recovery.next.0, recovery.cut.is_some()), (2, true));
    log.release_before(Sequence(2)).unwrap();
    log.close().unwrap();
    let (mut log, recovery) = open(&disk).unwrap();
    assert_eq!((recovery.first.0, recovery.next.0, recovery.cut), (2, 2, None));
    assert_eq!(log.append(&[record(2, 10)]).unwrap(), Sequence(2));
    assert!(read_all(&log, Sequence(2)).unwrap() == [(2, record(2, 10))]);
}

#[test]
fn every_damaged_byte_before_the_last_frame_is_named() {
    let disk = Disk::new();
    let (records, frames, _) = filled(&disk);
    let disk = reopened_and_killed(&disk);
    let mut ends: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (extent, offset) in &frames[..frames.len() - 1] {
        ends.entry(*extent).or_default().push(*offset);
    }
    let last = *frames.last().unwrap();
    for (extent, offsets) in ends {
        let whole = disk.read(&name(extent));
        // Bytes of the unused rest of the block after the header are not looked at; a few bytes of each frame
        // are: all of its header, and some of the payload.
        let mut places: Vec<(usize, u64)> = (0..40).map(|byte| (byte, 0)).collect();
        for offset in offsets {
            places.extend((0..FRAME_HEADER).map(|byte| (offset + byte, offset as u64)));
            places.extend((0..300).step_by(61).map(|byte| (offset + FRAME_HEADER + byte, offset as u64)));
        }
        for (place, begins) in places {
            let mut content = whole.clone();
            content[place] ^= 1 << (place % 8);
            let copy = disk.copy();
            copy.write(&name(extent), content);
            let read = open(&copy).and_then(|(log, _)| read_all(&log, Sequence(1)));
            match read {
                Err(LogError::Damaged { file, offset, .. }) => {
                    assert_eq!(file.file_name().unwrap().to_str().unwrap(), name(extent));
                    assert_eq!(offset, begins, "byte {place} of extent {extent}");
                }
                other => {
                    panic!("byte {place} of extent {extent}, last {last:?}: {:?}", other.map(|all| all.len()))
                }
            }
        }
    }
    let (log, _) = open(&disk).unwrap();
    assert!(read_all(&log, Sequence(1)).unwrap() == numbered(&records));
}

#[test]
fn a_lost_end_is_noticed_after_an_orderly_closing() {
    let disk = Disk::new();
    let (_, frames, _) = filled(&disk);
    let (extent, begins) = *frames.last().unwrap();
    let mut content = disk.read(&name(extent));
    content[begins + 60] ^= 1;
    disk.write(&name(extent), content);
    match open(&disk).map(drop) {
        Err(LogError::Damaged { offset, .. }) => assert_eq!(offset, begins as u64),
        other => panic!("{other:?}"),
    }
}

#[test]
fn missing_and_foreign_and_shortened_files_are_named() {
    let disk = Disk::new();
    filled(&disk);
    for extent in 1..=3 {
        let copy = disk.copy();
        copy.delete(&name(extent));
        let opened = open(&copy).map(drop);
        let Err(LogError::Missing { file }) = opened else { panic!("{opened:?}") };
        assert!(file.ends_with(name(extent)));

        let copy = disk.copy();
        let mut content = copy.read(&name(extent));
        content.truncate(8192);
        copy.write(&name(extent), content);
        let opened = open(&copy).map(drop);
        assert!(matches!(opened, Err(LogError::Damaged { offset: 8192, .. })), "{opened:?}");

        let copy = disk.copy();
        copy.write(&name(extent), copy.read(&name(4 - extent)));
        let opened = open(&copy).map(drop);
        assert_eq!(matches!(opened, Err(LogError::Damaged { offset: 0, .. })), extent != 2, "{opened:?}");
    }
}

#[test]
fn the_control_file_survives_one_damaged_copy() {
    let disk = Disk::new();
    let (records, ..) = filled(&disk);
    let whole = disk.read("log.control");
    for place in (0..80).chain(4096..4176) {
        let mut content = whole.clone();
        content[place] ^= 0x10;
        let copy = disk.copy();
        copy.write("log.control", content);
        let (log, _) = open(&copy).unwrap();
        assert_eq!(read_all(&log, Sequence(1)).unwrap().len(), records.len());
        drop(log);
        let mended = copy.read("log.control");
        assert_eq!(mended[..80], mended[4096..4176]);
    }
    let mut content = whole;
    content[20] ^= 1;
    content[4116] ^= 1;
    let copy = disk.copy();
    copy.write("log.control", content);
    let opened = open(&copy).map(drop);
    assert!(
        matches!(&opened, Err(LogError::Damaged { file, .. }) if file.ends_with("log.control")),
        "{opened:?}"
    );
    let copy = disk.copy();
    copy.delete("log.control");
    let opened = open(&copy).map(drop);
    assert!(
        matches!(&opened, Err(LogError::Missing { file }) if file.ends_with("log.control")),
        "{opened:?}"
    );
}

#[test]
fn an_older_control_file_does_not_free_newer_extents() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&[record(1, 8000)]).unwrap();
    let older = disk.read("log.control");
    for number in 2..5 {
        log.append(&[record(number, 8000)]).unwrap();
    }
    drop(log);
    disk.write("log.control", older);
    let opened = open(&disk).map(drop);
    assert!(matches!(opened, Err(LogError::Damaged { .. })), "{opened:?}");
}

#[test]
fn a_newer_format_is_refused() {
    let disk = Disk::new();
    filled(&disk);
    let mut content = disk.read("log.control");
    for copy in [0, 4096] {
        content[copy + 8] = 3;
        let checksum = xxhash_rust::xxh3::xxh3_64(&content[copy..copy + 72]);
        content[copy + 72..copy + 80].copy_from_slice(&checksum.to_le_bytes());
    }
    disk.write("log.control", content);
    let before = disk.copy();
    let opened = open(&disk).map(drop);
    assert!(matches!(opened, Err(LogError::NewerFormat { found: 3, supported: 2, .. })), "{opened:?}");
    for name in before.names() {
        assert_eq!(disk.read(&name), before.read(&name), "{name} is untouched");
    }
}

#[test]
fn records_that_hold_a_copy_of_the_log_are_not_taken_for_it() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&[record(1, 500)]).unwrap();
    log.append(&[record(2, 500)]).unwrap();
    let frames = Bytes::from(disk.read(&name(1))).slice(4096..6144);
    // Laid over a torn end, at every alignment, in the place where frames are searched for.
    for shift in 0..8 {
        log.append(&[Bytes::from([vec![0; shift], frames.to_vec()].concat())]).unwrap();
        log.append(&[record(3, 5)]).unwrap();
    }
    let next = log.append(&[frames.clone(), frames]).unwrap().0 + 1;
    let after = disk.kill();
    drop(log);
    let extent = after.names().iter().filter(|name| name.ends_with(".TXN")).count() as u64;
    let live = (1..=extent).rev().map(name).find(|name| after.read(name)[4096..4100] == *b"SFRM").unwrap();
    let mut content = after.read(&live);
    let header = content.windows(4).rposition(|window| window == b"SFRM").unwrap();
    assert!(header > 4096);
    // The last frame's payload, which ends with copies of frames, is damaged at its beginning.
    let start = (4096..header).rev().find(|at| {
        content[*at..].starts_with(b"SFRM") && content[at + 8..at + 16] == (next - 2).to_le_bytes()
    });
    content[start.unwrap() + FRAME_HEADER + 1] ^= 1;
    after.write(&live, content);
    let (_, recovery) = open(&after).unwrap();
    assert_eq!(recovery.next.0, next - 2);
    assert!(recovery.cut.is_some());
}
