//! What one request of each class costs: CPU seconds, bytes written, commits of the log.

use super::least_squares::{Observation, non_negative_by_part, worst_error};
use super::{Seen, rates};
use crate::calibration::Kind;
use crate::class::{Class, PerClass};
use crate::queueing::GroupCommit;
use crate::range::{Case, Range};

/// Costs of a request, by class.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// CPU seconds.
    pub cpu_s: PerClass<Range>,
    /// CPU seconds of a sync, which those who wait together share: with more load a request becomes cheaper.
    pub sync_cpu_s: Range,
    /// The log that joins them.
    pub log: GroupCommit,
    /// Processors that the server keeps busy when nobody asks.
    pub rest_cpus: Range,
    /// Part of the CPU time that is the system's.
    pub system_part: Range,
    /// Bytes written to the device, for messages of the calibration's size.
    pub written_bytes: PerClass<Range>,
    /// Commits that the log hears of.
    pub commits: PerClass<Range>,
    /// The most that the model is off at one of the mixed loads, as a part.
    pub cpu_error: f64,
    /// The names of the runs.
    pub source: String,
}

/// Ranges are never narrower than this: clocks count CPU time in hundredths of a second.
const LEAST_ERROR: f64 = 0.02;

/// What is written varies by itself, since files are merged now and then.
const LEAST_BYTES_ERROR: f64 = 0.25;

/// What can just be told from nothing in a run of some seconds.
const LEAST_CPUS: f64 = 0.01;
const LEAST_BYTES_PER_S: f64 = 10_000.0;
const LEAST_COMMITS_PER_S: f64 = 0.5;

impl Costs {
    /// By least squares over runs of different mixes: what they used is the sum of what their requests cost.
    pub(super) fn of(seen: &[Seen<'_>], commit: GroupCommit) -> Option<Self> {
        let cpu = Fitted::of(seen, Class::ALL.len() + 2, LEAST_CPUS, |seen| {
            let mut parts = rates(seen.run);
            parts.extend([1.0, seen.run.syncs_per_s.unwrap_or(0.0)]);
            Some(Observation::relative(parts, seen.run.server_cpus()))
        });
        if cpu.costs.iter().all(|cost| *cost <= 0.0) {
            return None;
        }
        let cpu_error = cpu.error.max(LEAST_ERROR);
        let written = Fitted::of(seen, Class::ALL.len(), LEAST_BYTES_PER_S, |seen| {
            let per_s = seen.run.written_bytes_per_s;
            (per_s > 0.0).then(|| Observation::relative(writing(seen), per_s))
        });
        let commits = Fitted::of(seen, Class::ALL.len(), LEAST_COMMITS_PER_S, |seen| {
            let per_s = commit.commits_per_s(seen.run.syncs_per_s?)?;
            (per_s > 0.0).then(|| Observation::relative(writing(seen), per_s))
        });
        let each = |found: &[f64], error: f64| {
            let mut values = found.iter().copied();
            PerClass::of(|_| Range::within(values.next().unwrap_or(0.0), error))
        };
        let system: Vec<f64> = seen
            .iter()
            .filter(|seen| seen.run.server_cpus() > 0.0)
            .map(|seen| seen.run.system_cpus / seen.run.server_cpus())
            .collect();
        Some(Self {
            cpu_s: each(&cpu.costs, cpu_error),
            sync_cpu_s: Range::within(cpu.costs.last().copied().unwrap_or(0.0), cpu_error),
            log: commit,
            rest_cpus: Range::within(cpu.costs.get(Class::ALL.len()).copied().unwrap_or(0.0), cpu_error),
            system_part: Range::over(&system).unwrap_or_default(),
            written_bytes: each(&written.costs, written.error.clamp(LEAST_BYTES_ERROR, 1.0)),
            commits: each(&commits.costs, commits.error.clamp(LEAST_ERROR, 1.0)),
            cpu_error,
            source: source(seen),
        })
    }

    /// Processors kept busy by this many requests a second of each class. How far the model was off has the syncs in it, so
    /// that their number is the expected one in every case.
    #[must_use]
    pub fn cpus(&self, per_s: &PerClass<f64>, case: Case) -> f64 {
        let syncs_per_s = self.log.syncs_per_s(self.commits_per_s(per_s, Case::Expected));
        self.rest_cpus.at(case) + sum(per_s, &self.cpu_s, case) + self.sync_cpu_s.at(case) * syncs_per_s
    }

    /// CPU seconds of a request that shares its syncs with nobody.
    #[must_use]
    pub fn alone_cpu_s(&self, class: Class) -> f64 {
        self.cpu_s.get(class).value + self.commits.get(class).value * self.sync_cpu_s.value
    }

    /// Bytes written a second.
    #[must_use]
    pub fn written_per_s(&self, per_s: &PerClass<f64>, case: Case) -> f64 {
        sum(per_s, &self.written_bytes, case)
    }

    /// Commits a second.
    #[must_use]
    pub fn commits_per_s(&self, per_s: &PerClass<f64>, case: Case) -> f64 {
        sum(per_s, &self.commits, case)
    }
}

/// Costs that were found, and the most that they are off at one of the mixed loads, which are what plans are made for.
struct Fitted {
    costs: Vec<f64>,
    error: f64,
}

impl Fitted {
    fn of(
        seen: &[Seen<'_>],
        unknowns: usize,
        least: f64,
        observe: impl Fn(&Seen<'_>) -> Option<Observation>,
    ) -> Self {
        let (kinds, mut observations): (Vec<Kind>, Vec<Observation>) =
            seen.iter().filter_map(|seen| Some((seen.point.kind, observe(seen)?))).unzip();
        let costs = non_negative_by_part(&mut observations, unknowns, least);
        let mixed: Vec<Observation> = kinds
            .iter()
            .zip(observations)
            .filter_map(|(kind, observation)| (*kind == Kind::Ladder).then_some(observation))
            .collect();
        Self { error: worst_error(&mixed, &costs), costs }
    }
}

fn sum(per_s: &PerClass<f64>, costs: &PerClass<Range>, case: Case) -> f64 {
    Class::ALL.iter().map(|class| per_s.get(*class) * costs.get(*class).at(case)).sum()
}

/// Rates of what is written, without those of what is read.
fn writing(seen: &Seen<'_>) -> Vec<f64> {
    Class::ALL.iter().map(|class| if class.commits() { *seen.run.per_s.get(*class) } else { 0.0 }).collect()
}

fn source(seen: &[Seen<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for seen in seen {
        let name = seen.point.name.rsplit_once('-').map_or(seen.point.name.as_str(), |(name, _)| name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}
