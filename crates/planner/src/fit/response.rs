//! How long requests take: what each class takes by itself, what it waits for processors, and what it waits for the log.

use super::Seen;
use super::costs::Costs;
use super::least_squares::{Observation, non_negative};
use crate::class::{Class, PerClass};
use crate::queueing::{GroupCommit, waiting_s};
use crate::range::{Case, Range};

/// Response of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Milliseconds of a request that waits for nobody and for no sync.
    pub alone_ms: PerClass<f64>,
    /// The wait for processors as a multiple of what a queue M/M/c says. Work comes in bursts (a message and its
    /// deliveries), and processes take turns, so that it is seldom 1.
    pub waiting: f64,
    /// Of the log's device.
    pub sync_ms: Range,
    /// The most that the model is off at one of the mixed loads, as a part.
    pub error: f64,
    /// Percentiles as multiples of the average.
    pub p95: Range,
    /// As `p95`.
    pub p99: Range,
    /// Which runs it is of.
    pub source: String,
}

const LEAST_ERROR: f64 = 0.02;

/// Rows of fewer requests a second say little of their latency.
const LEAST_PER_S: f64 = 0.2;

/// Where the loads are too small to show how long the wait is, it is taken for once that of M/M/c. Latencies are off by
/// such a part, and the factor may well be off by 1: so much that opinion counts next to what was seen.
const LATENCY_ERROR: f64 = 0.05;
const OPINION_ERROR: f64 = 1.0;

/// Errors below this, in milliseconds, count no more for being a large part.
const LEAST_MS: f64 = 0.05;

impl Response {
    pub(super) fn of(
        seen: &[Seen<'_>],
        ladder: &[Seen<'_>],
        costs: &Costs,
        cores: u32,
        sync_ms: Range,
    ) -> Option<Self> {
        let commit = GroupCommit { sync_s: sync_ms.value / 1000.0 };
        let mut observations = Vec::new();
        for seen in seen {
            let queue_ms = queue_ms(&seen.run.per_s, costs, cores, seen.run.driver_cpus, Case::Expected);
            if !queue_ms.is_finite() {
                continue;
            }
            let log_ms = commit.waiting_s(costs.commits_per_s(&seen.run.per_s, Case::Expected)) * 1000.0;
            for class in Class::ALL.into_iter().filter(|class| *seen.run.per_s.get(*class) >= LEAST_PER_S) {
                let latency_ms = *seen.run.latency_ms.get(class);
                let own_ms = latency_ms - if class.commits() { log_ms } else { 0.0 };
                let mut parts: Vec<f64> =
                    Class::ALL.iter().map(|other| if *other == class { 1.0 } else { 0.0 }).collect();
                parts.push(queue_ms);
                // An error counts as a part of what a user waits, the log included.
                let weight = 1.0 / (latency_ms * latency_ms + LEAST_MS * LEAST_MS);
                observations.push(Observation { parts, seen: own_ms.max(0.0), weight });
            }
        }
        if observations.is_empty() {
            return None;
        }
        observations.push(opinion());
        let found = non_negative(&observations, Class::ALL.len() + 1);
        let mut values = found.iter().copied();
        let alone_ms = PerClass::of(|_| values.next().unwrap_or(0.0));
        let ratio = |value: &dyn Fn(&Seen<'_>) -> f64| {
            let ratios: Vec<f64> = ladder
                .iter()
                .filter(|seen| seen.run.mean_ms > 0.0)
                .map(|seen| value(seen) / seen.run.mean_ms)
                .collect();
            Range::over(&ratios)
        };
        let mut response = Self {
            alone_ms,
            waiting: found.last().copied().unwrap_or(1.0),
            sync_ms,
            error: LEAST_ERROR,
            p95: ratio(&|seen| seen.run.p95_ms)?,
            p99: ratio(&|seen| seen.run.p99_ms)?,
            source: "ladder, class, connected; device".to_owned(),
        };
        let error = |seen: &Seen<'_>| {
            let run = seen.run;
            let fitted = response.mean_ms(&run.per_s, costs, cores, run.driver_cpus, Case::Expected);
            (fitted - run.mean_ms).abs() / run.mean_ms.max(f64::MIN_POSITIVE)
        };
        response.error =
            ladder.iter().map(error).filter(|error| error.is_finite()).fold(LEAST_ERROR, f64::max);
        Some(response)
    }

    /// Milliseconds on average of this many requests a second of each class, while others keep `others` processors busy.
    /// Infinite where the processors cannot keep up.
    #[must_use]
    pub fn mean_ms(&self, per_s: &PerClass<f64>, costs: &Costs, cores: u32, others: f64, case: Case) -> f64 {
        let all = per_s.sum();
        if all <= 0.0 {
            return 0.0;
        }
        let commit = GroupCommit { sync_s: self.sync_ms.at(case) / 1000.0 };
        let log_ms = commit.waiting_s(costs.commits_per_s(per_s, case)) * 1000.0;
        let each = |class: &Class| {
            per_s.get(*class) * (self.alone_ms.get(*class) + if class.commits() { log_ms } else { 0.0 })
        };
        let alone_ms = Class::ALL.iter().map(each).sum::<f64>() / all;
        let queue_ms = self.waiting * queue_ms(per_s, costs, cores, others, case);
        let wrong = match case {
            Case::Low => 1.0 / (1.0 + self.error),
            Case::Expected => 1.0,
            Case::High => 1.0 + self.error,
        };
        (alone_ms + queue_ms) * wrong
    }
}

/// The wait for a processor by M/M/c. What others do there comes in pieces as long as a request's.
fn queue_ms(per_s: &PerClass<f64>, costs: &Costs, cores: u32, others: f64, case: Case) -> f64 {
    let all = per_s.sum();
    if all <= 0.0 {
        return 0.0;
    }
    let busy = costs.cpus(per_s, case) + others;
    waiting_s(cores, busy, busy / all) * 1000.0
}

/// The factor of the wait is 1, as far as anybody knew before measuring.
fn opinion() -> Observation {
    let mut parts = vec![0.0; Class::ALL.len()];
    parts.push(1.0);
    Observation { parts, seen: 1.0, weight: (LATENCY_ERROR / OPINION_ERROR).powi(2) }
}
