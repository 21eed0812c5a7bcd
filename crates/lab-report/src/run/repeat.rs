//! Several runs of one plan: which of them is shown, and how far they are apart.

use super::model::{RepeatRow, Repeats, Report, Spread};

/// Runs that differ by more than this are no good ground for a comparison.
const SPREAD_WARNS_PERCENT: f64 = 10.0;

impl Report {
    /// One report of several runs: that of the run in the middle by average response (of two, the slower), with
    /// all next to it. It is valid if all are, and an objective is reached if every run has reached it. A single
    /// run stays as it is; `None` of none.
    #[must_use]
    pub fn repeated(reports: &[Self]) -> Option<Self> {
        let runs: Vec<RepeatRow> = reports.iter().map(row).collect();
        let mut order: Vec<usize> = (0..reports.len()).collect();
        order.sort_by(|left, right| {
            let mean = |index: &usize| runs.get(*index).map_or(0.0, |run| run.mean_ms);
            mean(left).total_cmp(&mean(right))
        });
        let shown = *order.get(reports.len() / 2)?;
        let mut report = reports.get(shown)?.clone();
        if reports.len() < 2 {
            return Some(report);
        }
        report.validity.reasons = gathered(reports, |report| &report.validity.reasons);
        report.validity.warnings = gathered(reports, |report| &report.validity.warnings);
        report.validity.valid = reports.iter().all(|report| report.validity.valid);
        let spoilt = |report: &&Report| !report.validity.valid;
        report.validity.overloaded =
            !report.validity.valid && reports.iter().filter(spoilt).all(|report| report.validity.overloaded);
        for objective in &mut report.objectives {
            let all = reports.iter().flat_map(|report| &report.objectives);
            for other in all.filter(|other| other.name == objective.name) {
                objective.value = objective.value.max(other.value);
                objective.reached &= other.reached;
            }
        }
        let spreads = spreads(&runs);
        report.validity.warnings.extend(apart(&spreads, runs.len()));
        let verdict = if report.validity.valid { "valid" } else { "NOT VALID" };
        let about =
            report.heading.rsplit_once(" \u{b7} ").map_or(report.heading.as_str(), |(about, _)| about);
        report.heading = format!("{about} \u{b7} run {} of {} \u{b7} {verdict}", shown + 1, runs.len());
        report.repeats = Some(Repeats { shown: shown + 1, runs, spreads });
        Some(report)
    }
}

fn row(report: &Report) -> RepeatRow {
    let summary = &report.summary;
    RepeatRow {
        began: report.run.began.clone(),
        valid: report.validity.valid,
        transactions_per_minute: summary.transactions_per_minute,
        mean_ms: summary.latency.mean_ms,
        p95_ms: summary.latency.p95_ms,
        p99_ms: summary.latency.p99_ms,
        cpu_percent: summary.cpu_percent,
        failed: summary.failed,
    }
}

/// A note, if runs are too far apart.
fn apart(spreads: &[Spread], runs: usize) -> Option<String> {
    let figures: Vec<String> = spreads
        .iter()
        .filter(|spread| spread.coefficient_percent > SPREAD_WARNS_PERCENT)
        .map(|spread| format!("{:.0} % apart in {}", spread.coefficient_percent, spread.name))
        .collect();
    (!figures.is_empty()).then(|| {
        format!(
            "the {runs} runs are {}: let them take longer, or the machine be quieter, before these are compared",
            figures.join(", ")
        )
    })
}

/// What is said of the runs, each with its run before it.
fn gathered(reports: &[Report], of: fn(&Report) -> &Vec<String>) -> Vec<String> {
    let lines = reports
        .iter()
        .enumerate()
        .flat_map(|(index, report)| of(report).iter().map(move |line| format!("run {}: {line}", index + 1)));
    lines.collect()
}

/// Reads one figure of a run; `None` where it was not measured.
type Figure = fn(&RepeatRow) -> Option<f64>;

fn spreads(runs: &[RepeatRow]) -> Vec<Spread> {
    let figures: [(&str, &str, Figure); 5] = [
        ("throughput", "transactions a minute", |run| Some(run.transactions_per_minute)),
        ("average response", "ms", |run| Some(run.mean_ms)),
        ("95th percentile", "ms", |run| Some(run.p95_ms)),
        ("99th percentile", "ms", |run| Some(run.p99_ms)),
        ("CPU of the server", "%", |run| run.cpu_percent),
    ];
    figures
        .into_iter()
        .filter_map(|(name, unit, of)| {
            let values: Option<Vec<f64>> = runs.iter().map(of).collect();
            Some(spread(name, unit, &values?))
        })
        .collect()
}

fn spread(name: &str, unit: &str, values: &[f64]) -> Spread {
    #[allow(clippy::cast_precision_loss, reason = "runs are few")]
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    // Of a sample: divided by one less than there are.
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    Spread {
        name: name.to_owned(),
        unit: unit.to_owned(),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        mean,
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        coefficient_percent: if mean > 0.0 { 100.0 * variance.sqrt() / mean } else { 0.0 },
    }
}
