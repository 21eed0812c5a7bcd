//! `lab load`: a workload run against a server.

mod counts;
mod deliveries;
mod hands;
mod prepare;
mod run;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::crew::provide;
use crate::driver::{Driver, ServerDescription, target_form};
use crate::error::LabError;
use crate::monitor::{QUIET_LOOKS, program_name, rest};
use crate::progress::Progress;
use crate::remote::Team;

use hands::Drivers;
use scrinium_lab_report::run::Deliveries;

pub use crate::crew::{DriverUse, Objectives, Plan, StopConditions, Supplies, judge_supplies};
pub use hands::DriverData;
pub use prepare::Preparation;
pub use run::{Cut, RunData, Tick};

/// A server that was filled rests no longer than filling took, and no longer than this.
const MOST_REST: Duration = Duration::from_secs(20);

/// A run, done: what was measured, and what it was measured of.
#[allow(missing_docs, reason = "the names say it")]
pub struct Measured {
    pub server: ServerDescription,
    pub server_pid: Option<u32>,
    pub server_program: Option<String>,
    pub began: jiff::Timestamp,
    pub preparation: Preparation,
    pub run: RunData,
    /// If they were checked.
    pub deliveries: Option<Deliveries>,
}

/// Prepares and runs what was planned, in this process.
///
/// # Errors
/// The script has commands that cannot be run, this machine has not what the users need, the server does not
/// answer, or it cannot be prepared.
pub async fn load<D: Driver>(driver: D, plan: &Plan, progress: &Progress) -> Result<Measured, LabError> {
    refuse_what_cannot_run(plan)?;
    refuse_without_target(&driver, plan)?;
    let connected = plan.connected(plan.users);
    provide(plan.connections(connected), connected)?;
    load_by(driver, plan, None, progress).await
}

/// Prepares what was planned, and lets other processes run it. What each notes of messages comes together here, where
/// the mailboxes are read.
///
/// # Errors
/// As [`load`], and what a driver says that cannot take part.
pub(crate) async fn load_there<D: Driver>(
    driver: D,
    plan: &Plan,
    team: Team,
    progress: &Progress,
) -> Result<Measured, LabError> {
    refuse_what_cannot_run(plan)?;
    refuse_without_target(&driver, plan)?;
    load_by(driver, plan, Some(team), progress).await
}

async fn load_by<D: Driver>(
    driver: D,
    plan: &Plan,
    team: Option<Team>,
    progress: &Progress,
) -> Result<Measured, LabError> {
    let driver = Arc::new(driver);
    let server = driver
        .describe()
        .await
        .map_err(|failure| LabError::NoServer { target: plan.target.clone(), failure })?;
    let people = plan.people();
    let pids = plan.server_pid.map_or_else(|| driver.processes(), |pid| vec![pid]);
    let filling = Instant::now();
    let preparation = if plan.prepare {
        prepare::prepare(&driver, plan, &people, progress).await?
    } else {
        Preparation::default()
    };
    if preparation.documents_added > 0 {
        progress.begin("rest", u64::from(QUIET_LOOKS));
        let looked = |quiet| progress.at(u64::from(quiet), "until the server is at rest");
        rest(&pids, filling.elapsed().min(MOST_REST), looked).await;
        progress.end();
    }
    let ledger = driver.ledger();
    let marks =
        match &ledger {
            None => None,
            Some(_) => Some(deliveries::mark(&driver, &people).await.map_err(|failure| {
                LabError::Prepare { what: "the check of deliveries".to_owned(), failure }
            })?),
        };
    let hands = match team {
        None => Drivers::here(plan, &people),
        Some(team) => Drivers::There(team.assigned(ledger.as_ref().map(|(_, ledger)| ledger)).await?),
    };
    let drivers = hands.count();
    let began = jiff::Timestamp::now();
    let run = run::run(&driver, plan, &people, &pids, hands, progress).await;
    let deliveries = match (&ledger, &marks) {
        (Some(_), _) if run.drivers.len() < drivers => {
            progress.say("Deliveries are not checked: what the lost driver's users have sent and deleted is not known.");
            None
        }
        (Some((_, ledger)), Some(marks)) => {
            Some(deliveries::check(&driver, ledger, &people, marks, progress).await)
        }
        _ => None,
    };
    let programs: Vec<String> = pids.iter().filter_map(|pid| program_name(*pid)).collect();
    Ok(Measured {
        server,
        server_pid: pids.first().copied(),
        server_program: (!programs.is_empty()).then(|| programs.join(" + ")),
        deliveries,
        began,
        preparation,
        run,
    })
}

fn refuse_without_target<D: Driver>(driver: &D, plan: &Plan) -> Result<(), LabError> {
    let needed = plan.abilities();
    // Events can be documents, too.
    let missing = needed.into_iter().find(|any| !any.iter().any(|ability| driver.has(*ability)));
    let Some(missing) = missing else { return Ok(()) };
    let names: Vec<&str> = missing.iter().map(|ability| ability.name()).collect();
    let targets: Vec<&str> = missing.iter().map(|ability| target_form(*ability)).collect();
    Err(LabError::NoTarget {
        origin: plan.origin.clone(),
        what: names.join(" or "),
        target: targets.join(" or --target "),
    })
}

fn refuse_what_cannot_run(plan: &Plan) -> Result<(), LabError> {
    let commands: Vec<String> =
        plan.script.cannot_run().map(|(line, name)| format!("line {line}: {name}")).collect();
    if commands.is_empty() {
        return Ok(());
    }
    Err(LabError::CannotRun { origin: plan.origin.clone(), commands: commands.join(", ") })
}
