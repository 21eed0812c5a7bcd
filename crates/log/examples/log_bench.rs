//! What a durable commit costs: `cargo run --release -p scrinium-log --example log_bench [DIR] [SECONDS]`.
//!
//! Prints one line per number of writers: commits a second, median and 99th percentile of a commit, and
//! the average group. The directory is made inside DIR (default: the working directory) and removed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use scrinium_log::{Apply, Committer, DirectIo, Log, LogOptions, Sequence};
use scrinium_statistics::{Operation, Registry};

const RECORD_BYTES: usize = 1536;

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let parent = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let seconds = arguments.next().map_or(Ok(2.0), |text| text.parse::<f64>())?.clamp(0.1, 60.0);
    let dir = parent.join(format!("log-bench-{}", std::process::id()));
    for direct_io in [DirectIo::Off, DirectIo::Auto] {
        for writers in [1, 8, 64] {
            run(&dir, direct_io, writers, Duration::from_secs_f64(seconds))?;
            std::fs::remove_dir_all(&dir)?;
        }
    }
    Ok(())
}

fn run(
    dir: &std::path::Path,
    direct_io: DirectIo,
    writers: usize,
    duration: Duration,
) -> Result<(), Box<dyn std::error::Error>> {
    let (log, _) = Log::open(LogOptions { direct_io, ..LogOptions::new(dir) })?;
    let statistics = Registry::new();
    let committer = Committer::start(log, Nothing, &statistics);
    let latency = Operation::default();
    let over = AtomicBool::new(false);
    let record = Bytes::from(vec![7; RECORD_BYTES]);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..writers {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let timer = latency.start();
                    if committer.submit(record.clone()).and_then(scrinium_log::Commit::wait).is_err() {
                        break;
                    }
                    drop(timer);
                }
            });
        }
        // What a server's checkpoints do: the log goes round.
        while started.elapsed() < duration {
            std::thread::sleep(Duration::from_millis(50));
            committer.release_before(committer.last_synced());
        }
        over.store(true, Ordering::Relaxed);
    });
    let elapsed = started.elapsed();
    let failure = committer.failure();
    committer.stop();
    let (snapshot, commits) = (statistics.snapshot(), latency.summary());
    let sync = snapshot.operations.get("LOG_SYNC").copied().unwrap_or_default();
    let group = snapshot.gauges.get("Log.GroupSize.Average").copied().unwrap_or_default();
    let rate = f64::from(u32::try_from(commits.count)?) / elapsed.as_secs_f64();
    println!(
        "{direct_io:?} {writers:2} writers: {rate:6.0} commits/s, p50 {} us, p99 {} us, max {} us; \
         group {group:.1}, write and sync p50 {} us p99 {} us{}",
        commits.p50_us,
        commits.p99_us,
        commits.max_us,
        sync.p50_us,
        sync.p99_us,
        failure.map(|error| format!("; failed: {error}")).unwrap_or_default(),
    );
    Ok(())
}
