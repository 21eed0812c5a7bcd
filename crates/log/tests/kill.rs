//! A real process on a real disk, killed at random moments: everything it had acknowledged is there.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use common::{Random, record};
use scrinium_log::{Apply, Committer, DirectIo, Log, LogError, LogOptions, Sequence};
use scrinium_statistics::Registry;

const DIR: &str = "SCRINIUM_LOG_TEST_DIR";
const ROUNDS: u64 = 10;
const WRITERS: u64 = 6;

fn options(dir: &Path, round: u64) -> LogOptions {
    let direct_io = if round.is_multiple_of(2) { DirectIo::Auto } else { DirectIo::Off };
    LogOptions { extent_bytes: 256 << 10, max_record_bytes: 64 << 10, direct_io, ..LogOptions::new(dir) }
}

struct Nothing;

impl Apply for Nothing {
    fn apply(&mut self, _first: Sequence, _records: &[Bytes]) -> Result<(), String> {
        Ok(())
    }
}

/// The victim: run only when the parent names a directory. Prints "sequence number" of each acknowledged
/// record, where the number says who wrote it and which one it is.
#[test]
fn append_until_killed() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let round: u64 = std::env::var("ROUND").unwrap().parse().unwrap();
    let (log, recovery) = Log::open(options(Path::new(&dir), round)).unwrap();
    let committer = Committer::start(log, Nothing, &Registry::new());
    let over = Instant::now() + Duration::from_secs(10);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (committer, recovery) = (&committer, &recovery);
            scope.spawn(move || {
                let mut index = 0;
                while Instant::now() < over {
                    let number = round << 48 | writer << 40 | index;
                    let length = 8 + (number.wrapping_mul(2_654_435_761) % 3000) as usize;
                    let sequence = committer.submit(record(number, length)).unwrap().wait().unwrap().0;
                    // One write of a line to a pipe is whole or not there.
                    let line = format!("acknowledged {sequence} {number}\n");
                    std::io::stderr().write_all(line.as_bytes()).unwrap();
                    if index % 64 == 63 && sequence > recovery.first.0 + 400 {
                        committer.release_before(Sequence(sequence - 400));
                    }
                    index += 1;
                }
            });
        }
    });
}

#[test]
fn what_a_killed_process_had_acknowledged_is_there_in_order() {
    let seed = std::env::var("SCRINIUM_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64);
    println!("repeat with SCRINIUM_SEED={seed}");
    let mut random = Random::new(seed);
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut total = 0;
    for round in 0..ROUNDS {
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
    assert!(total > 100, "only {total} records were acknowledged in {ROUNDS} rounds");
    println!("{total} records acknowledged in {ROUNDS} rounds");
}

fn run_and_kill(dir: &Path, round: u64, while_opening: bool, after: Duration) -> Vec<(u64, u64)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "append_until_killed", "--nocapture"])
        .env(DIR, dir)
        .env("ROUND", round.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = BufReader::new(child.stderr.take().unwrap());
    let (first_line, started) = channel();
    let reader = std::thread::spawn(move || {
        let lines = pipe.lines().map_while(Result::ok).inspect(|_| {
            let _ = first_line.send(());
        });
        let numbers = lines.filter_map(|line| {
            let mut words = line.strip_prefix("acknowledged ")?.split(' ').map(|word| word.parse().ok());
            Some((words.next()??, words.next()??))
        });
        numbers.collect::<Vec<(u64, u64)>>()
    });
    if !while_opening {
        started.recv_timeout(Duration::from_secs(30)).unwrap();
    }
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
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
