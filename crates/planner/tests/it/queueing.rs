//! Queues against values of the literature and against a simulation.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use scrinium_planner::queueing::{GroupCommit, erlang_c, waiting_s};

#[test]
fn erlang_c_is_that_of_the_literature() {
    // One server: the probability is the utilisation. Two, with one busy on average: a third.
    assert!((erlang_c(1, 0.7) - 0.7).abs() < 1e-12);
    assert!((erlang_c(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
    // M/M/5 at 80 %: 0.5541 (tables of Erlang's C, for one in R. Cooper, "Introduction to Queueing Theory", 1981).
    assert!((erlang_c(5, 4.0) - 0.5541).abs() < 5e-5);
    // The eye clinic of D. Gross and others, "Fundamentals of Queueing Theory", example 3.1: three doctors, six patients
    // an hour, twenty minutes each; 8/9 of a patient waits on average, each 8.9 minutes.
    let hours = waiting_s(3, 2.0, 1.0 / 3.0);
    assert!((hours * 6.0 - 8.0 / 9.0).abs() < 1e-12);
    assert!((erlang_c(3, 2.0) - 4.0 / 9.0).abs() < 1e-12);
    // Many servers: neither overflows nor waits; too few wait for ever.
    assert!(erlang_c(1000, 900.0) < 0.01 && erlang_c(1000, 900.0) > 0.0);
    assert!(erlang_c(4, 0.0).abs() < f64::EPSILON);
    assert!((erlang_c(4, 4.0) - 1.0).abs() < f64::EPSILON && waiting_s(4, 4.5, 0.001).is_infinite());
}

/// A log that takes all who wait, one sync after the other: mean wait and syncs a second.
fn simulated(sync_s: f64, commits_per_s: f64, seed: u64) -> (f64, f64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut now, mut ends, mut syncs, mut waited) = (0.0_f64, 0.0_f64, 0.0, 0.0);
    let mut waiting: Vec<f64> = Vec::new();
    let commits = 200_000;
    for _ in 0..commits {
        now -= (1.0 - rng.random::<f64>()).ln() / commits_per_s;
        // Syncs that end before this commit take along who came during the one before.
        while !waiting.is_empty() && ends <= now {
            waited += waiting.drain(..).map(|came| ends + sync_s - came).sum::<f64>();
            ends += sync_s;
            syncs += 1.0;
        }
        if ends <= now {
            ends = now + sync_s;
            syncs += 1.0;
            waited += sync_s;
        } else {
            waiting.push(now);
        }
    }
    let answered = f64::from(commits) - f64::from(u32::try_from(waiting.len()).unwrap_or(0));
    (waited / answered, syncs / now)
}

#[test]
fn group_commit_is_that_of_a_simulation() {
    for (sync_ms, commits_per_s) in [(1.0, 20.0), (1.0, 500.0), (1.0, 3000.0), (5.0, 100.0), (0.2, 8000.0)] {
        let log = GroupCommit { sync_s: sync_ms / 1000.0 };
        let (wait_s, syncs_per_s) = simulated(log.sync_s, commits_per_s, 7);
        let near = |value: f64, other: f64| (value / other - 1.0).abs() < 0.02;
        assert!(near(log.waiting_s(commits_per_s), wait_s), "{sync_ms} ms, {commits_per_s}/s: {wait_s}");
        assert!(
            near(log.syncs_per_s(commits_per_s), syncs_per_s),
            "{sync_ms} ms, {commits_per_s}/s: {syncs_per_s}"
        );
        match log.commits_per_s(log.syncs_per_s(commits_per_s)) {
            Some(commits) => assert!(near(commits, commits_per_s)),
            // So busy a log does not tell how many it served.
            None => assert!(log.busy(commits_per_s) > 0.9),
        }
    }
}
