//! A survey reads past damage, and names exactly what cannot be read.

use std::path::Path;
use std::sync::Arc;

use crate::common::{DIR, Disk, open, record};
use proptest::prelude::*;
use scrinium_log::{LogError, Missing, Sequence, Survey, Surveyed};

/// Groups of one to three records over several extents; with the place of each: first, next, extent, offset, length.
fn filled(disk: &Disk) -> Vec<(u64, u64, u64, usize, usize)> {
    let (mut log, _) = open(disk).unwrap();
    let (mut frames, mut next, mut extent, mut offset) = (Vec::new(), 1, 1, 4096);
    while extent < 4 || offset < 9000 {
        let group: Vec<_> =
            (0..1 + next % 3).map(|index| record(next + index, 300 + (next as usize * 97) % 700)).collect();
        let payload: usize = group.iter().map(|bytes| bytes.len() + 4).sum();
        let bytes = (48 + payload).next_multiple_of(8);
        if offset + bytes > crate::common::EXTENT_BYTES as usize {
            (extent, offset) = (extent + 1, 4096);
        }
        log.append(&group).unwrap();
        frames.push((next, next + group.len() as u64, extent, offset, bytes));
        (offset, next) = (offset + bytes, next + group.len() as u64);
    }
    frames
}

fn survey(disk: &Disk) -> Result<(Surveyed, Vec<u64>), LogError> {
    let mut survey = Survey::begin_on(Arc::new(disk.clone()), Path::new(DIR))?;
    let mut read = Vec::new();
    while let Some(frame) = survey.next_frame()? {
        for found in frame.records() {
            let number = found.sequence.0;
            assert_eq!(found.bytes, record(number, found.bytes.len()));
            read.push(number);
        }
    }
    Ok((survey.found().clone(), read))
}

fn name(extent: u64) -> String {
    format!("S{extent:07}.TXN")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Some frames before the last one are damaged at some byte; all others are read, and these are missing.
    #[test]
    fn all_but_damaged_frames_are_read(broken in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..1 << 20), 0..6)) {
        let disk = Disk::new();
        let frames = filled(&disk);
        let mut bad = std::collections::BTreeSet::new();
        let broken: std::collections::BTreeMap<usize, usize> =
            broken.into_iter().map(|(index, place)| (index.index(frames.len()), place)).collect();
        for (number, place) in broken {
            let (first, next, extent, offset, bytes) = frames[number];
            // Padding means nothing.
            let mut content = disk.read(&name(extent));
            content[offset + place % (bytes - 7)] ^= 0x40;
            disk.write(&name(extent), content);
            bad.extend(first..next);
        }
        let last = frames.last().unwrap().1 - 1;
        let before = disk.names().len();
        let (found, read) = survey(&disk).unwrap();
        let expected: Vec<u64> = (1..=last).filter(|number| !bad.contains(number)).collect();
        prop_assert_eq!(read, expected);
        let missing: Vec<u64> =
            found.missing.iter().flat_map(|Missing { first, last }| first.0..=last.unwrap().0).collect();
        // The log was closed in order, so that even a damaged end is known.
        prop_assert_eq!(missing, bad.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(found.damaged_places > 0, !bad.is_empty());
        prop_assert_eq!(found.next, Sequence(last + 1));
        prop_assert_eq!(disk.names().len(), before);
    }
}

#[test]
fn missing_files_are_damage_and_a_missing_control_file_is_the_end() {
    let disk = Disk::new();
    let frames = filled(&disk);
    disk.delete(&name(2));
    let (found, read) = survey(&disk).unwrap();
    let gone: Vec<u64> =
        frames.iter().filter(|frame| frame.2 == 2).flat_map(|frame| frame.0..frame.1).collect();
    let (first, last) = (Sequence(gone[0]), Sequence(*gone.last().unwrap()));
    assert_eq!(found.missing, [Missing { first, last: Some(last) }]);
    assert_eq!((found.damaged_places, read.len()), (1, frames.last().unwrap().1 as usize - 1 - gone.len()));
    disk.delete("log.control");
    assert!(matches!(survey(&disk), Err(LogError::Missing { .. })));
}

/// The device reads some sectors no more. What lies in their blocks is missing, and everything behind them is read.
#[test]
fn an_unreadable_sector_hides_no_records_behind_it() {
    let disk = Disk::new();
    let frames = filled(&disk);
    let (_, _, extent, offset, _) = frames[frames.len() / 2];
    disk.lose_sector(&name(extent), offset);
    let block = offset / 4096 * 4096..offset / 4096 * 4096 + 4096;
    let is_lost = |frame: &(u64, u64, u64, usize, usize)| {
        frame.2 == extent && frame.3 < block.end && frame.3 + frame.4 > block.start
    };
    let numbers = |lost: bool| -> Vec<u64> {
        frames.iter().filter(|frame| is_lost(frame) == lost).flat_map(|frame| frame.0..frame.1).collect()
    };
    let (found, read) = survey(&disk).unwrap();
    assert_eq!(read, numbers(false));
    let lost = numbers(true);
    let (first, last) = (Sequence(lost[0]), Sequence(*lost.last().unwrap()));
    assert_eq!(found.missing, [Missing { first, last: Some(last) }]);
    assert!(found.damage.iter().any(|damage| damage.offset == block.start as u64), "{:?}", found.damage);
}

/// Nobody can say whether there was something.
#[test]
fn an_unreadable_sector_behind_the_last_frame_of_a_crashed_log_is_no_whole_log() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&[record(1, 500)]).unwrap();
    let crashed = disk.kill();
    drop(log);
    assert!(survey(&crashed).unwrap().0.missing.is_empty());
    crashed.lose_sector(&name(1), 4096 + 2048);
    let (found, _) = survey(&crashed).unwrap();
    assert!(found.missing.iter().any(|missing| missing.last.is_none()), "{found:?}");
    assert!(found.damaged_places > 0);
}
