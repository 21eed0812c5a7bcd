//! Whether a run says something about the server, or only about the driver.

use std::time::Duration;

use super::model::Validity;
use crate::load::Cut;

/// A driver that uses more of its machine than this may have been what was measured. The rule of the
/// original tools is to keep a driver below 75 to 85 %.
const DRIVER_WARNS_PERCENT: f64 = 75.0;
const DRIVER_SPOILS_PERCENT: f64 = 85.0;

/// Timers that wake users so late mean that the driver had no time for them.
const LAG_WARNS: Duration = Duration::from_millis(10);
const LAG_SPOILS: Duration = Duration::from_millis(50);

/// Server and driver on one machine wait for each other when they use more than this together.
const MACHINE_FULL_PERCENT: f64 = 95.0;

/// What the judgement is made from.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Evidence {
    pub driver_cpu_percent: f64,
    pub driver_lag_p99: Duration,
    /// If it runs on the driver's machine.
    pub server_cpu_percent: Option<f64>,
    pub cut: Option<Cut>,
    pub answered: u64,
    pub hold: Duration,
    pub users: usize,
    pub users_past_first_round: u64,
    /// Users work until the run is over.
    pub endless: bool,
    /// The ramp-up was to wait for everyone's first round.
    pub waits_for_rounds: bool,
    pub broken_off: usize,
}

/// Judges a run.
#[must_use]
pub fn judge(evidence: &Evidence) -> Validity {
    let mut reasons = Vec::new();
    let mut warnings = Vec::new();
    match &evidence.cut {
        None => {}
        Some(cut @ Cut::UsersEnded) => warnings.push(cut_short(cut)),
        Some(cut) => reasons.push(cut_short(cut)),
    }
    if evidence.answered == 0 {
        reasons.push("no request was answered while all users were at work".to_owned());
    }
    driver(evidence, &mut reasons, &mut warnings);
    if let Some(server) = evidence.server_cpu_percent
        && server + evidence.driver_cpu_percent > MACHINE_FULL_PERCENT
    {
        warnings.push(format!(
            "server ({server:.0} %) and driver ({:.0} %) together filled the machine: response times include waiting for each other",
            evidence.driver_cpu_percent
        ));
    }
    let first = usize::try_from(evidence.users_past_first_round).unwrap_or(usize::MAX);
    if evidence.endless && first < evidence.users && !evidence.hold.is_zero() {
        let late = evidence.users - first;
        let why = if evidence.waits_for_rounds { "; the ramp-up waited as long as it may" } else { "" };
        warnings.push(format!(
            "{late} of {} users had not done a round when counting began{why}",
            evidence.users
        ));
    }
    if evidence.broken_off > 0 {
        warnings.push(format!("{} users did not end in time and were broken off", evidence.broken_off));
    }
    Validity { valid: reasons.is_empty(), reasons, warnings }
}

fn driver(evidence: &Evidence, reasons: &mut Vec<String>, warnings: &mut Vec<String>) {
    let cpu = evidence.driver_cpu_percent;
    if cpu > DRIVER_WARNS_PERCENT {
        let text = format!(
            "the driver used {cpu:.0} % of its machine's CPUs (more than {DRIVER_SPOILS_PERCENT:.0} % spoils a run)"
        );
        if cpu > DRIVER_SPOILS_PERCENT { reasons.push(text) } else { warnings.push(text) }
    }
    let lag = evidence.driver_lag_p99;
    if lag > LAG_WARNS {
        let text = format!(
            "one in a hundred timers of the driver woke a user {:.0} ms too late or more (more than {} ms spoils a run)",
            lag.as_secs_f64() * 1000.0,
            LAG_SPOILS.as_millis()
        );
        if lag > LAG_SPOILS { reasons.push(text) } else { warnings.push(text) }
    }
}

fn cut_short(cut: &Cut) -> String {
    match cut {
        Cut::TimeOuts(count) => format!("stopped early: {count} requests had timed out"),
        Cut::Errors(percent) => {
            format!("stopped early: {percent:.0} % of the requests of ten seconds failed")
        }
        Cut::Average(ms) => format!("stopped early: the average latency of ten seconds was {ms:.0} ms"),
        Cut::Operator => "stopped early by the operator".to_owned(),
        Cut::ServerGone => "the server's process ended during the run".to_owned(),
        Cut::UsersEnded => "every user's script ended before the time was up".to_owned(),
    }
}
