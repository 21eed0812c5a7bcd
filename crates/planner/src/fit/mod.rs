//! A model of a machine, made of its calibration. Everything is fitted again each time, from the same file to the same
//! numbers.
//!
//! Ranges are as wide as the model misses its own points: a law that is off by a tenth where it was measured is not
//! better where it was not.

mod costs;
mod least_squares;
mod memory;
mod response;
mod scalability;

use crate::calibration::{Calibration, Kind, Point, Run};
use crate::class::{Class, PerClass};
use crate::error::PlanError;
use crate::queueing::GroupCommit;
use crate::range::Range;

pub use costs::Costs;
pub use least_squares::{Observation, non_negative, non_negative_by_part, worst_error};
pub use memory::{Disk, Memory};
pub use response::Response;
pub use scalability::Scalability;

/// What is known of a machine.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Model {
    pub cores: u32,
    pub costs: Costs,
    pub response: Response,
    pub memory: Memory,
    pub disk: Disk,
    /// `None` where users without a pause were not measured.
    pub scalability: Option<Scalability>,
    /// CPU and response through the encrypted port, as parts of those without.
    pub encryption: Option<Change>,
    /// The same for each doubling of mail files.
    pub doubled_inbox: Option<Change>,
    pub largest: Largest,
    /// The ladder: users, requests a second, and what they waited.
    pub ladder: Vec<Rung>,
    pub rush: Vec<(f64, f64)>,
    /// Documents in each mail file of the ladder.
    pub ladder_documents: Option<f64>,
}

/// What something does to CPU and to response: 1.1 is a tenth more.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Change {
    pub cpu: Range,
    pub response: Range,
    /// The run that shows it.
    pub source: String,
}

/// The most that was measured, beyond which the model extrapolates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Largest {
    /// Of the ladder, where response was measured.
    pub requests_per_s: f64,
    pub connected: f64,
    /// Documents in one mail file.
    pub documents: f64,
}

/// A load of the ladder, as measured and as the model has it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Rung {
    pub name: String,
    pub users: f64,
    pub per_s: f64,
    pub measured_ms: Range,
    pub fitted_ms: f64,
    pub measured_cpus: f64,
    pub fitted_cpus: f64,
}

/// A run with the point that it is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) point: &'a Point,
    pub(crate) run: &'a Run,
}

impl Model {
    /// The model of a calibration.
    ///
    /// # Errors
    /// [`PlanError::Unusable`] where too little was measured.
    pub fn of(calibration: &Calibration) -> Result<Self, PlanError> {
        let unusable = |why: &str| PlanError::Unusable { why: why.to_owned() };
        if let Some(what) = calibration.missing() {
            return Err(PlanError::Unusable { why: format!("it has no {what}") });
        }
        let seen = |kinds: &[Kind]| -> Vec<Seen<'_>> {
            let points = calibration.points.iter().filter(|point| kinds.contains(&point.kind));
            points.flat_map(|point| point.counted().map(move |run| Seen { point, run })).collect()
        };
        let ladder = seen(&[Kind::Ladder]);
        let plain = seen(&[Kind::Ladder, Kind::Class, Kind::Connected]);
        let commit = GroupCommit { sync_s: calibration.device.sync_ms.value / 1000.0 };
        let cores = u32::try_from(calibration.machine.cpus).unwrap_or(1);
        let costs = Costs::of(&plain, commit).ok_or_else(|| unusable("no CPU time was seen"))?;
        let response = Response::of(&plain, &ladder, &costs, cores, calibration.device.sync_ms)
            .ok_or_else(|| unusable("no response was seen"))?;
        let rush: Vec<(f64, f64)> = seen(&[Kind::Rush])
            .iter()
            .map(|seen| (f64::from(seen.point.users), seen.run.per_s.sum()))
            .filter(|(_, per_s)| *per_s > 0.0)
            .collect();
        let beside = |kind: Kind| beside(&seen(&[kind]), &ladder);
        let rungs = rungs(calibration, &costs, &response, cores);
        let documents = calibration.points.iter().map(|point| point.documents).max().unwrap_or(0);
        Ok(Self {
            cores,
            memory: Memory::of(&seen(&[Kind::Connected]), &ladder)
                .ok_or_else(|| unusable("no memory was seen"))?,
            disk: Disk::of(&ladder, &calibration.device),
            scalability: Scalability::fit(&rush),
            encryption: beside(Kind::Encrypted).map(|(change, _)| change),
            doubled_inbox: beside(Kind::Inbox).map(|(change, larger)| change.for_each_doubling(larger)),
            largest: Largest {
                requests_per_s: ladder.iter().map(|seen| seen.run.per_s.sum()).fold(0.0, f64::max),
                connected: plain.iter().map(|seen| f64::from(seen.point.users)).fold(0.0, f64::max),
                documents: float(documents),
            },
            ladder: rungs,
            ladder_documents: calibration.of(Kind::Ladder).map(|point| point.documents).max().map(float),
            rush,
            costs,
            response,
        })
    }

    /// What a run of the calibration is called in an answer.
    #[must_use]
    pub fn ladder_name(&self) -> String {
        match (self.ladder.first(), self.ladder.last()) {
            (Some(first), Some(last)) => format!("{} to {}", first.name, last.name),
            _ => "the ladder".to_owned(),
        }
    }
}

impl Change {
    /// The change for twice as much, of one for `factor` times as much.
    fn for_each_doubling(self, factor: f64) -> Self {
        let doublings = factor.max(1.0).log2();
        if doublings <= 0.0 {
            return Self { cpu: Range::exactly(1.0), response: Range::exactly(1.0), ..self };
        }
        let each = |range: Range| range.map(|change| change.max(0.01).powf(1.0 / doublings));
        Self { cpu: each(self.cpu), response: each(self.response), source: self.source }
    }

    /// The change for this many doublings.
    #[must_use]
    pub fn times(&self, doublings: f64) -> (Range, Range) {
        let power = |range: &Range| range.map(|change| change.powf(doublings));
        (power(&self.cpu), power(&self.response))
    }
}

/// CPU for a request and response of some runs, as parts of those of the ladder's load with as many users; and by how
/// much mail files were larger.
fn beside(others: &[Seen<'_>], ladder: &[Seen<'_>]) -> Option<(Change, f64)> {
    let other = others.first()?;
    let same: Vec<&Seen<'_>> = ladder.iter().filter(|seen| seen.point.users == other.point.users).collect();
    let cpu = |seen: &Seen<'_>| seen.run.server_cpus() / seen.run.per_s.sum().max(f64::MIN_POSITIVE);
    let ratios = |value: &dyn Fn(&Seen<'_>) -> f64| {
        let each = others
            .iter()
            .flat_map(|other| same.iter().map(move |seen| value(other) / value(seen).max(f64::MIN_POSITIVE)));
        // Neither makes a request cheaper: where it seems so, it was chance.
        Range::over(&each.map(|ratio| ratio.max(1.0)).collect::<Vec<f64>>())
    };
    let larger = float(other.point.documents) / float(same.first()?.point.documents.max(1));
    let change = Change {
        cpu: ratios(&cpu)?,
        response: ratios(&|seen| seen.run.mean_ms)?,
        source: format!("{} compared with {}", other.point.name, same.first()?.point.name),
    };
    Some((change, larger))
}

fn rungs(calibration: &Calibration, costs: &Costs, response: &Response, cores: u32) -> Vec<Rung> {
    let rung = |point: &Point| {
        let runs: Vec<&Run> = point.counted().collect();
        let over = |value: &dyn Fn(&Run) -> f64| {
            Range::over(&runs.iter().map(|run| value(run)).collect::<Vec<f64>>())
        };
        let per_s = PerClass::of(|class| over(&|run| *run.per_s.get(class)).unwrap_or_default().value);
        let driver = over(&|run| run.driver_cpus)?.value;
        let fitted_ms = response.mean_ms(&per_s, costs, cores, driver, crate::Case::Expected);
        Some(Rung {
            name: point.name.clone(),
            users: f64::from(point.users),
            per_s: per_s.sum(),
            measured_ms: over(&|run| run.mean_ms)?,
            fitted_ms,
            measured_cpus: over(&|run| run.server_cpus())?.value,
            fitted_cpus: costs.cpus(&per_s, crate::Case::Expected),
        })
    };
    let mut rungs: Vec<Rung> = calibration.of(Kind::Ladder).filter_map(rung).collect();
    rungs.sort_by(|one, other| one.users.total_cmp(&other.users));
    rungs
}

/// The rates of classes in a run, as an observation's parts.
pub(crate) fn rates(run: &Run) -> Vec<f64> {
    Class::ALL.iter().map(|class| *run.per_s.get(*class)).collect()
}

#[allow(clippy::cast_precision_loss, reason = "documents of a mail file need no more than 53 bits")]
fn float(count: u64) -> f64 {
    count as f64
}
