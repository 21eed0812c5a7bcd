//! A machine that does not exist: its requests cost what stands here, its queues are those of the formulas, and what is
//! measured of it is off by some chance.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use scrinium_lab_report::Machine;
use scrinium_planner::calibration::{Calibration, Device, FORMAT, Kind, Point, Run, Size};
use scrinium_planner::queueing::{GroupCommit, waiting_s};
use scrinium_planner::{Class, PerClass, Range};

pub const CORES: u32 = 4;
pub const CPU_S: PerClass<f64> =
    PerClass { look: 0.000_1, page: 0.000_4, read: 0.000_2, write: 0.000_6, send: 0.003 };
pub const ALONE_MS: PerClass<f64> = PerClass { look: 0.3, page: 0.9, read: 0.5, write: 0.7, send: 1.5 };
pub const COMMITS: PerClass<f64> = PerClass { look: 0.0, page: 0.0, read: 0.0, write: 1.0, send: 3.0 };
const WRITTEN_BYTES: PerClass<f64> =
    PerClass { look: 0.0, page: 0.0, read: 0.0, write: 16_000.0, send: 60_000.0 };
pub const SYNC_CPU_S: f64 = 0.000_25;
const REST_CPUS: f64 = 0.01;
const DRIVER_CPU_S: f64 = 0.000_15;
const BASE_BYTES: f64 = 95e6;
const USER_BYTES: f64 = 24_000.0;
const TEXT_RATIO: f64 = 0.45;
pub const SYNC_MS: f64 = 1.2;
/// The wait for processors is this many times that of M/M/c.
pub const WAITING: f64 = 1.7;
pub const ENCRYPTION: f64 = 1.12;

/// Mixes of the cells, in requests of one user a second at a speed-up of 1.
fn mix(cell: &str) -> PerClass<f64> {
    let nothing = PerClass::default();
    match cell {
        "page" => PerClass { page: 5.0, ..nothing },
        "read" => PerClass { page: 0.25, read: 4.75, ..nothing },
        "write" => PerClass { page: 0.16, read: 1.7, write: 5.0, ..nothing },
        "send" => PerClass { send: 2.5, ..nothing },
        "Idle" => PerClass { look: 15.0 / 3600.0, ..nothing },
        _ => PerClass {
            look: 4.0 / 3600.0,
            page: 8.0 / 3600.0,
            read: 28.0 / 3600.0,
            write: 16.0 / 3600.0,
            send: 12.0 / 3600.0,
        },
    }
}

/// What one load shows. `noise` is the part by which values are off at most.
pub fn run(kind: Kind, workload: &str, users: f64, speedup: f64, rng: &mut SmallRng, noise: f64) -> Run {
    let mut off = |value: f64| value * (1.0 + noise * rng.random_range(-1.0..=1.0));
    let dearer = if kind == Kind::Encrypted { ENCRYPTION } else { 1.0 };
    let per_s = if kind == Kind::Rush {
        // A law of its own: contention of 0.08, coherency of 0.001.
        let others = users - 1.0;
        let all = 900.0 * users / (1.0 + 0.08 * others + 0.001 * users * others);
        let one = mix(workload);
        one.times(all / one.sum())
    } else {
        mix(workload).times(users * speedup)
    };
    let each = |costs: &PerClass<f64>| {
        Class::ALL.iter().map(|class| per_s.get(*class) * costs.get(*class)).sum::<f64>()
    };
    let commit = GroupCommit { sync_s: SYNC_MS / 1000.0 };
    let commits_per_s = each(&COMMITS);
    let cpus = REST_CPUS + (each(&CPU_S) + SYNC_CPU_S * commit.syncs_per_s(commits_per_s)) * dearer;
    let driver = per_s.sum() * DRIVER_CPU_S;
    let log_ms = commit.waiting_s(commits_per_s) * 1000.0;
    let busy = cpus + driver;
    // Users who ask without a pause wait for one another, and no longer than all of them take.
    let queue_ms = (WAITING * waiting_s(CORES, busy, busy / per_s.sum()) * 1000.0).min(50.0);
    let latency = |class: Class| {
        let log_ms = if class.commits() { log_ms } else { 0.0 };
        ALONE_MS.get(class) * dearer + log_ms + queue_ms
    };
    let mean_ms =
        Class::ALL.iter().map(|class| per_s.get(*class) * latency(*class)).sum::<f64>() / per_s.sum();
    let documents_added = if kind == Kind::Class { 30.0 } else { 100.0 } * users;
    Run {
        report: format!("cells/{workload}-{users}/load/report.json"),
        per_s,
        latency_ms: PerClass::of(|class| if *per_s.get(class) > 0.0 { off(latency(class)) } else { 0.0 }),
        mean_ms: off(mean_ms),
        p95_ms: off(mean_ms * 2.5),
        p99_ms: off(mean_ms * 6.0),
        user_cpus: off(cpus * 0.8),
        system_cpus: off(cpus * 0.2),
        driver_cpus: off(driver),
        resident_bytes: off(BASE_BYTES + USER_BYTES * users),
        written_bytes_per_s: off(each(&WRITTEN_BYTES)),
        syncs_per_s: Some(off(commit.syncs_per_s(commits_per_s))),
        data_bytes: off(documents_added * 10_000.0 * TEXT_RATIO),
        log_bytes: 64e6,
        documents_added,
        documents_grown: 0.0,
        failed_percent: 0.0,
        invalid: Vec::new(),
    }
}

/// The calibration of that machine, up to this many users.
pub fn calibration(users: u32, noise: f64, seed: u64) -> Calibration {
    let mut rng = SmallRng::seed_from_u64(seed);
    let size = Size { users, speedup: 20.0, rungs: 5, documents: 100, hold_s: 30.0, repeats: 2 };
    let points = size
        .cells()
        .into_iter()
        .map(|cell| Point {
            runs: (0..size.repeats)
                .map(|_| run(cell.kind, &cell.workload, f64::from(cell.users), cell.speedup, &mut rng, noise))
                .collect(),
            name: cell.name,
            kind: cell.kind,
            workload: cell.workload,
            users: cell.users,
            speedup: cell.speedup,
            documents: cell.documents,
            message_bytes: 10_000.0,
        })
        .collect();
    Calibration {
        format: FORMAT.to_owned(),
        made: "2026-11-22T06:00:00Z".to_owned(),
        scrinium_version: "0.1.0".to_owned(),
        quick: false,
        machine: Machine {
            cpus: usize::try_from(CORES).unwrap(),
            cpu_model: "a processor that does not exist".to_owned(),
            memory_bytes: 16 << 30,
            kernel: "6.1".to_owned(),
        },
        data_dir: "/srv/calibration".to_owned(),
        run_folder: "/srv/calibration/runs".to_owned(),
        device: Device {
            sync_ms: Range::of(SYNC_MS * 0.8, SYNC_MS, SYNC_MS * 1.5),
            write_bytes_per_s: Range::of(350e6, 400e6, 430e6),
        },
        points,
        notes: Vec::new(),
    }
}
