//! What it costs to run a short job on a thread: the worker pool compared with Tokio's blocking pool with the
//! same two limits as semaphores, in one run.
//!
//! Prints one JSON object a line to standard output.

#![allow(clippy::expect_used, reason = "a benchmark ends when something fails")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scrinium_statistics::Registry;
use scrinium_worker::{WorkerOptions, WorkerPool};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const RUNS: usize = 7;
const RUN_TIME: Duration = Duration::from_millis(600);
const CALLERS: [usize; 3] = [1, 64, 512];

#[derive(Clone)]
enum Candidate {
    Ours(WorkerPool),
    Tokio { threads: Arc<Semaphore>, admitted: Arc<Semaphore> },
}

impl Candidate {
    async fn run(&self, work: Duration) {
        let job = move || {
            let started = Instant::now();
            while started.elapsed() < work {
                std::hint::spin_loop();
            }
            black_box(started)
        };
        match self {
            Self::Ours(pool) => {
                pool.run(job).await.expect("a job");
            }
            Self::Tokio { threads, admitted } => {
                let place = admitted.clone().acquire_owned().await.expect("a place");
                let thread = threads.clone().acquire_owned().await.expect("a thread");
                let job = move || {
                    let result = job();
                    drop((place, thread));
                    result
                };
                tokio::task::spawn_blocking(job).await.expect("a job");
            }
        }
    }
}

/// Jobs a second with this many callers, each with one job at a time.
async fn jobs_per_second(candidate: &Candidate, callers: usize, work: Duration) -> f64 {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let candidate = candidate.clone();
        tasks.spawn(async move {
            let mut jobs = 0_u64;
            while started.elapsed() < RUN_TIME {
                candidate.run(work).await;
                jobs += 1;
            }
            jobs
        });
    }
    let jobs: u64 = tasks.join_all().await.into_iter().sum();
    #[allow(clippy::cast_precision_loss, reason = "a rate needs no more than 53 bits")]
    let jobs = jobs as f64;
    jobs / started.elapsed().as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let options = WorkerOptions::default();
    let ours = Candidate::Ours(WorkerPool::new(&options, &Registry::new()));
    let tokio_pool = Candidate::Tokio {
        threads: Arc::new(Semaphore::new(options.threads)),
        admitted: Arc::new(Semaphore::new(options.admitted)),
    };
    for work_us in [0, 20] {
        for callers in CALLERS {
            let work = Duration::from_micros(work_us);
            let (mut of_ours, mut of_tokio) = (Vec::new(), Vec::new());
            for _ in 0..RUNS {
                of_ours.push(runtime.block_on(jobs_per_second(&ours, callers, work)));
                of_tokio.push(runtime.block_on(jobs_per_second(&tokio_pool, callers, work)));
            }
            let (value, against) = (median(&mut of_ours), median(&mut of_tokio));
            let lowest = of_ours.first().copied().unwrap_or_default();
            let highest = of_ours.last().copied().unwrap_or_default();
            let line = json!({
                "name": "pool", "case": format!("{callers} callers, {work_us} us of work"),
                "value": value.round(), "unit": "jobs/s",
                "against": "tokio blocking pool", "against_value": against.round(),
                "ratio": (value / against * 100.0).round() / 100.0,
                "runs": RUNS, "spread": ((highest - lowest) / value * 100.0).round() / 100.0,
            });
            println!("{line}");
        }
    }
}
