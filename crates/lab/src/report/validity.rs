//! Whether a run says something about the server, or only about the driver.

use std::time::Duration;

use scrinium_lab_report::run::{DriverRow, Validity};

use crate::load::Cut;

/// Drivers that use more of what they may use of a machine than this may have been what was measured. The rule
/// of the original tools is to keep a driver below 75 to 85 %.
const DRIVER_WARNS_PERCENT: f64 = 75.0;
const DRIVER_SPOILS_PERCENT: f64 = 85.0;

/// Timers that wake users so late mean that the driver had no time for them.
const LATE_WARNS_MS: f64 = 10.0;
const LATE_SPOILS_MS: f64 = 50.0;

/// A driver that waits so long for a CPU each time that it needs one sees answers as much later, whatever share
/// of the CPUs it has got: on the server's machine that share says little.
const WAIT_WARNS_MS: f64 = 2.0;
const WAIT_SPOILS_MS: f64 = 10.0;

/// Server and driver on one machine wait for each other when they use more than this together.
const MACHINE_FULL_PERCENT: f64 = 95.0;

/// Seconds of drivers whose clocks moved further than this do not belong together.
const CLOCK_WARNS_MS: f64 = 100.0;

/// What the judgement is made from.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Evidence {
    pub drivers: Vec<DriverRow>,
    /// If its process was found on the controller's machine.
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
    for driver in &evidence.drivers {
        judge_driver(driver, evidence.drivers.len() > 1, &mut reasons, &mut warnings);
    }
    let beside = evidence.drivers.iter().find(|driver| driver.beside_server);
    if let (Some(server), Some(driver)) = (evidence.server_cpu_percent, beside) {
        // What a quota keeps from the driver is the server's.
        let cpus = f64::from(u32::try_from(driver.machine.cpus).unwrap_or(u32::MAX)).max(1.0);
        let drivers = driver.machine_cpu_percent * driver.cpus / cpus;
        if server + drivers > MACHINE_FULL_PERCENT {
            warnings.push(format!(
                "server ({server:.0} %) and driver ({drivers:.0} %) together filled the machine: response times include waiting for each other"
            ));
        }
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
        warnings.push(format!("{} users did not end in time and were stopped", evidence.broken_off));
    }
    let server_gave_up = matches!(evidence.cut, Some(Cut::TimeOuts(_) | Cut::Errors(_) | Cut::Average(_)));
    let overloaded = server_gave_up && reasons.len() == 1;
    Validity { valid: reasons.is_empty(), reasons, overloaded, warnings }
}

fn judge_driver(driver: &DriverRow, several: bool, reasons: &mut Vec<String>, warnings: &mut Vec<String>) {
    let who = if several { driver.name.as_str() } else { "the driver" };
    let mut say = |spoils: bool, text: String| if spoils { reasons.push(text) } else { warnings.push(text) };
    let cpu = driver.machine_cpu_percent;
    if cpu > DRIVER_WARNS_PERCENT {
        let text = format!(
            "{who} used {cpu:.0} % of the CPUs that it may use, other drivers included (more than {DRIVER_SPOILS_PERCENT:.0} % spoils a run)"
        );
        say(cpu > DRIVER_SPOILS_PERCENT, text);
    }
    let late = driver.lag_p99_ms.max(driver.beat_p99_ms);
    if late > LATE_WARNS_MS {
        let text = format!(
            "one in a hundred timers of {who} went off {late:.0} ms too late or more (more than {LATE_SPOILS_MS} ms spoils a run)"
        );
        say(late > LATE_SPOILS_MS, text);
    }
    if let Some(wait) = driver.cpu_wait_mean_ms.filter(|wait| *wait > WAIT_WARNS_MS) {
        let text = format!(
            "{who} waited {wait:.1} ms for a CPU each time that it needed one, and saw answers as much too late (more than {WAIT_SPOILS_MS} ms spoils a run)"
        );
        say(wait > WAIT_SPOILS_MS, text);
    }
    let apart = driver.clock_drift_ms.unwrap_or_default().abs();
    if apart > CLOCK_WARNS_MS {
        say(
            false,
            format!(
                "the clock of {who} moved by {apart:.0} ms: its seconds are this far off the others' in the charts; latencies are not touched"
            ),
        );
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
        Cut::DriverLost(which) => format!("a driver was lost, and its measurements with it: {which}"),
        Cut::UsersEnded => "every user's script ended before the time was up".to_owned(),
    }
}
