//! A real process on a real disk, killed at random moments: everything it had acknowledged is there.
//!
//! `SCRINIUM_SEED` repeats a run, `SCRINIUM_KILLS` makes it longer.

use std::path::Path;
use std::time::Duration;

use crate::common::{Random, record};
use bytes::Bytes;
use scrinium_fault::{Kills, Victim, tell};
use scrinium_log::{Apply, Committer, DirectIo, Log, LogError, LogOptions, Sequence};
use scrinium_statistics::Registry;

const WRITERS: u64 = 6;

fn options(dir: &Path, round: u64) -> LogOptions {
    let direct_io = if round.is_multiple_of(2) { DirectIo::Auto } else { DirectIo::Off };
    LogOptions { extent_bytes: 256 << 10, max_record_bytes: 64 << 10, direct_io, ..LogOptions::new(dir) }
}

struct Nothing;

impl Apply for Nothing {
    type Error = std::io::Error;

    fn apply(&mut self, _first: Sequence, _records: &[Bytes]) -> std::io::Result<()> {
        Ok(())
    }

    fn make_durable(&mut self) -> std::io::Result<Sequence> {
        Err(std::io::Error::other("nothing but the log makes records durable"))
    }

    fn apply_unlogged(&mut self, _: &mut dyn Iterator<Item = &Bytes>) -> std::io::Result<()> {
        Err(std::io::Error::other("nothing but the log makes records durable"))
    }
}

/// The victim. Tells "sequence number" of each acknowledged record, where the number says who wrote it and which one it
/// is.
#[test]
#[ignore = "a child process of the other test"]
fn child() {
    let Some((dir, round)) = Victim::order() else { return };
    let (log, recovery) = Log::open(options(&dir, round)).unwrap();
    let committer = Committer::start(log, Nothing, &Registry::new());
    tell("ready");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (committer, recovery) = (&committer, &recovery);
            scope.spawn(move || {
                for index in 0.. {
                    let number = round << 48 | writer << 40 | index;
                    let length = 8 + (number.wrapping_mul(2_654_435_761) % 3000) as usize;
                    let sequence = committer.submit(record(number, length)).unwrap().wait().unwrap().0;
                    tell(format_args!("{sequence} {number}"));
                    if index % 64 == 63 && sequence > recovery.first.0 + 400 {
                        committer.release_before(Sequence(sequence - 400));
                    }
                }
            });
        }
    });
}

#[test]
fn what_a_killed_process_had_acknowledged_is_there_in_order() {
    let kills = Kills::from_environment(10);
    println!("{kills}");
    let mut random = Random::new(kills.seed);
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut total = 0;
    for round in 0..kills.count {
        // Some die while they open the log, most while they write.
        let while_opening = round > 0 && random.below(4) == 0;
        let after = Duration::from_micros(random.below(if while_opening { 30_000 } else { 200_000 }));
        let acknowledged = run_and_kill(dir.path(), round, while_opening, after);
        total += acknowledged.len();
        let (log, recovery) = Log::open(options(dir.path(), round + 1)).unwrap();
        let held: Vec<_> = log.read_from(recovery.first).unwrap().map(Result::unwrap).collect();
        assert_eq!(held.len() as u64, recovery.next.0 - recovery.first.0);
        assert!(held.len() < 5000, "extents are released under load: {recovery:?}");
        let mut index_of_writer = [None::<u64>; WRITERS as usize];
        for (sequence, held) in (recovery.first.0..).zip(&held) {
            assert_eq!(held.sequence.0, sequence);
            let number = u64::from_le_bytes(held.bytes[..8].try_into().unwrap());
            assert_eq!(held.bytes, record(number, held.bytes.len()), "record {sequence} is as it was made");
            if number >> 48 == round {
                let last = &mut index_of_writer[(number >> 40 & 0xff) as usize];
                let index = number & 0xff_ffff_ffff;
                assert!(last.is_none_or(|last| index == last + 1), "the order of submission, none left out");
                *last = Some(index);
            }
        }
        for (sequence, number) in acknowledged {
            assert!(sequence < recovery.next.0, "record {sequence} was acknowledged in round {round}");
            if let Some(index) = sequence.checked_sub(recovery.first.0) {
                assert_eq!(held[index as usize].bytes[..8], number.to_le_bytes());
            }
        }
        log.close().unwrap();
    }
    assert!(total as u64 > 10 * kills.count, "only {total} records were acknowledged");
    println!("{total} records were acknowledged");
}

fn run_and_kill(dir: &Path, round: u64, while_opening: bool, after: Duration) -> Vec<(u64, u64)> {
    let child = Victim::start(module_path!(), dir, round).unwrap();
    if !while_opening {
        child.wait_until_ready().unwrap();
    }
    std::thread::sleep(after);
    let told = child.kill().unwrap().into_iter();
    let numbers = told.map(|line| {
        let (sequence, number) = line.split_once(' ').unwrap();
        (sequence.parse().unwrap(), number.parse().unwrap())
    });
    numbers.collect()
}

#[test]
fn a_second_process_is_kept_out() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (log, _) = Log::open(options(dir.path(), 0)).unwrap();
    let second = Log::open(options(dir.path(), 0)).map(drop);
    assert!(matches!(second, Err(LogError::Locked { .. })), "{second:?}");
    drop(log);
    Log::open(options(dir.path(), 0)).unwrap();
}
