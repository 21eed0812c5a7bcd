//! A forecast held against a measurement: the same workload for several times the users of the calibration.

use serde::Serialize;

use crate::calibration::{Calibration, Cell, Kind, Point, Run};
use crate::class::PerClass;
use crate::fit::Model;
use crate::range::{Case, Range};

/// The form of `check.json`.
pub const FORMAT: &str = "scrinium-plan-check/1";

/// One value, forecast and measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Comparison {
    pub what: &'static str,
    pub forecast: Range,
    pub measured: Range,
    /// How far the forecast is from the mean of what was measured, in percent of that; below 0: it was too low.
    pub error_percent: f64,
}

/// Everything that a check says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Check {
    pub format: &'static str,
    pub calibrated_users: f64,
    pub users: u32,
    pub speedup: f64,
    pub requests_per_s: f64,
    /// Throughput, CPU, average response, 99th percentile.
    pub comparisons: Vec<Comparison>,
    /// Why the run says little.
    pub invalid: Vec<String>,
    pub run_folder: String,
    pub calibration: String,
}

/// What the model says of this many times the largest load, before it is run.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Forecast {
    pub users: u32,
    pub per_s: PerClass<f64>,
    pub throughput_per_s: Range,
    pub cpus: Range,
    pub mean_ms: Range,
    pub p99_ms: Range,
}

impl Forecast {
    /// `None` where the calibration has no ladder.
    #[must_use]
    pub fn of(calibration: &Calibration, model: &Model, times: u32) -> Option<Self> {
        let largest = calibration.of(Kind::Ladder).max_by_key(|point| point.users)?;
        let factor = f64::from(times);
        let mean = |value: &dyn Fn(&Run) -> f64| {
            Range::over(&largest.counted().map(value).collect::<Vec<f64>>()).map(|range| range.value)
        };
        let per_s = PerClass::of(|class| mean(&|run| *run.per_s.get(class)).unwrap_or(0.0) * factor);
        // The driver works on the same machine, and as much more as the server has to answer.
        let driver = mean(&|run| run.driver_cpus)? * factor;
        let cases = |value: &dyn Fn(Case) -> f64| {
            Range::of(value(Case::Low), value(Case::Expected), value(Case::High))
        };
        let cpus = cases(&|case| model.costs.cpus(&per_s, case));
        let mean_ms = cases(&|case| model.response.mean_ms(&per_s, &model.costs, model.cores, driver, case));
        let p99_ms = cases(&|case| {
            model.response.mean_ms(&per_s, &model.costs, model.cores, driver, case)
                * model.response.p99.at(case)
        });
        // What is asked is answered, until there is no more to give: by the Universal Scalability Law, which was fitted
        // next to the same driver, or by the processors.
        let by_cpu = |case: Case| {
            let both = model.costs.cpus(&per_s, case) + driver;
            per_s.sum() * f64::from(model.cores) / both.max(f64::MIN_POSITIVE)
        };
        let by_law = model.scalability.map(|law| law.most().1).filter(|most| most.is_finite());
        let most = |case: Case| match (case, by_law) {
            (_, None) => by_cpu(case),
            (Case::Low, Some(law)) => by_cpu(Case::High).min(law),
            (Case::Expected, Some(law)) => law,
            (Case::High, Some(law)) => by_cpu(Case::Low).max(law),
        };
        let throughput = cases(&|case| most(case).min(per_s.sum()));
        let users = largest.users.saturating_mul(times);
        Some(Self { users, per_s, throughput_per_s: throughput, cpus, mean_ms, p99_ms })
    }
}

/// The cell that is measured for a check.
#[must_use]
pub fn cell(calibration: &Calibration, forecast: &Forecast, hold_s: f64) -> Option<Cell> {
    let largest = calibration.of(Kind::Ladder).max_by_key(|point| point.users)?;
    let size = crate::calibration::Size {
        users: forecast.users,
        speedup: largest.speedup,
        rungs: 2,
        documents: largest.documents,
        hold_s,
        repeats: 1,
    };
    Some(Cell::mixed("check", Kind::Ladder, forecast.users, &size))
}

impl Check {
    /// The forecast and what was measured; `None` where nothing was.
    #[must_use]
    pub fn of(
        calibration: &Calibration,
        forecast: &Forecast,
        point: &Point,
        run_folder: String,
    ) -> Option<Self> {
        let measured =
            |value: &dyn Fn(&Run) -> f64| Range::over(&point.counted().map(value).collect::<Vec<f64>>());
        let compare = |what, forecast: Range, measured: Option<Range>| {
            let measured = measured?;
            let error_percent =
                100.0 * (forecast.value - measured.value) / measured.value.max(f64::MIN_POSITIVE);
            Some(Comparison { what, forecast, measured, error_percent })
        };
        let comparisons = vec![
            compare(
                "Requests answered a second",
                forecast.throughput_per_s,
                measured(&|run| run.per_s.sum()),
            )?,
            compare("Processors in use", forecast.cpus, measured(&|run| run.server_cpus()))?,
            compare("Average response, ms", forecast.mean_ms, measured(&|run| run.mean_ms))?,
            compare("99 % within, ms", forecast.p99_ms, measured(&|run| run.p99_ms))?,
        ];
        let largest = calibration.of(Kind::Ladder).max_by_key(|point| point.users)?;
        Some(Self {
            format: FORMAT,
            calibrated_users: f64::from(largest.users),
            users: point.users,
            speedup: point.speedup,
            requests_per_s: forecast.per_s.sum(),
            comparisons,
            invalid: point.counted().flat_map(|run| run.invalid.clone()).collect(),
            run_folder,
            calibration: calibration.made.clone(),
        })
    }

    /// By how much the forecast of the average response is off, in percent, without a sign.
    #[must_use]
    pub fn response_error_percent(&self) -> f64 {
        self.comparisons.get(2).map_or(f64::INFINITY, |comparison| comparison.error_percent.abs())
    }
}
