//! Whatever bytes the log's files hold: they are refused, or give records that were written, in their order.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use scrinium_log::{Sequence, Survey};

use crate::common::{DIR, Disk, open, read_all, record};

/// What is done to one file.
#[derive(Clone, Debug)]
enum Harm {
    /// It ends here.
    Cut,
    /// These bytes stand here.
    Put(Vec<u8>),
    /// What stands elsewhere in it, or in another one, stands here too.
    Copy { of_file: prop::sample::Index, from: prop::sample::Index, length: usize },
    /// Some bytes are left out, so that all behind them move.
    Drop(usize),
}

fn harm() -> impl Strategy<Value = (prop::sample::Index, prop::sample::Index, Harm)> {
    let harm = prop_oneof![
        1 => Just(Harm::Cut),
        3 => prop::collection::vec(any::<u8>(), 1..60).prop_map(Harm::Put),
        3 => (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..6_000_usize)
            .prop_map(|(of_file, from, length)| Harm::Copy { of_file, from, length }),
        1 => (1..600_usize).prop_map(Harm::Drop),
    ];
    (any::<prop::sample::Index>(), any::<prop::sample::Index>(), harm)
}

/// A log of several extents, and its records.
fn filled() -> (Disk, BTreeMap<u64, Bytes>) {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    let mut records = BTreeMap::new();
    for first in (1..60).step_by(3) {
        let group: Vec<Bytes> =
            (first..first + 3).map(|number| record(number, 100 + number as usize * 17)).collect();
        log.append(&group).unwrap();
        records.extend((first..).zip(group));
    }
    drop(log);
    (disk, records)
}

fn do_harm(disk: &Disk, (file, place, harm): &(prop::sample::Index, prop::sample::Index, Harm)) {
    let names = disk.names();
    let name = &names[file.index(names.len())];
    let mut content = disk.read(name);
    let place = place.index(content.len() + 1);
    match harm {
        Harm::Cut => content.truncate(place),
        Harm::Put(bytes) => {
            let behind = (place + bytes.len()).min(content.len());
            content.splice(place..behind, bytes.iter().copied());
        }
        Harm::Copy { of_file, from, length } => {
            let other = disk.read(&names[of_file.index(names.len())]);
            let from = from.index(other.len() + 1);
            let copied = other[from..(from + length).min(other.len())].to_vec();
            let behind = (place + copied.len()).min(content.len());
            content.splice(place..behind, copied);
        }
        Harm::Drop(length) => {
            let behind = (place + length).min(content.len());
            content.drain(place..behind);
        }
    }
    disk.write(name, content);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(scrinium_fault::cases(200))
    })]

    #[test]
    fn whatever_the_files_hold_no_record_is_read_that_was_not_written(harms in prop::collection::vec(harm(), 1..6)) {
        let (disk, written) = filled();
        for harm in &harms {
            do_harm(&disk, harm);
        }
        let is_written = |number: u64, bytes: &Bytes| written.get(&number) == Some(bytes);
        if let Ok(mut survey) = Survey::begin_on(Arc::new(disk.clone()), Path::new(DIR)) {
            while let Ok(Some(frame)) = survey.next_frame() {
                for found in frame.records() {
                    prop_assert!(is_written(found.sequence.0, &found.bytes), "{:?}", found.sequence);
                }
            }
        }
        let Ok((mut log, recovery)) = open(&disk) else { return Ok(()) };
        if let Ok(read) = read_all(&log, recovery.first) {
            for (number, bytes) in &read {
                prop_assert!(is_written(*number, bytes), "{number}");
            }
            let numbers: Vec<u64> = read.iter().map(|(number, _)| *number).collect();
            prop_assert!(numbers.iter().copied().eq((recovery.first.0..).take(numbers.len())), "{numbers:?}");
        }
        // What is left can be written on, and is read again.
        if let Ok(Sequence(number)) = log.append(&[Bytes::from_static(b"more")]) {
            drop(log);
            let (log, _) = open(&disk).unwrap();
            prop_assert!(read_all(&log, Sequence(number)).unwrap() == [(number, Bytes::from_static(b"more"))]);
        }
    }
}
