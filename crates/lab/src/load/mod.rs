//! `lab load`: a workload run against a server.

mod context;
mod crew;
mod critical;
mod desk;
mod hands;
mod plan;
mod prepare;
mod resources;
mod run;
mod syncs;
mod user;

use std::sync::Arc;

use crate::driver::{Driver, ServerDescription};
use crate::error::LabError;
use crate::monitor::program_name;
use crate::progress::Progress;
use crate::remote::Team;

use hands::Hands;

pub(crate) use context::Stop;
pub use crew::DriverUse;
pub(crate) use crew::{Crew, CrewSecond, Outcome, Share};
pub(crate) use critical::{Asked, CriticalRegion};
pub use hands::DriverData;
pub use plan::{Objectives, Plan, StopConditions};
pub use prepare::Preparation;
pub(crate) use resources::provide;
pub use resources::{Supplies, judge as judge_supplies};
pub use run::{Cut, Phase, RunData, Tick};

/// A run, done: what was measured, and what it was measured of.
#[allow(missing_docs, reason = "the names say it")]
pub struct Measured {
    pub server: ServerDescription,
    pub server_pid: Option<u32>,
    pub server_program: Option<String>,
    pub began: jiff::Timestamp,
    pub preparation: Preparation,
    pub run: RunData,
}

/// Prepares and runs what was planned, in this process.
///
/// # Errors
/// The script has commands that cannot be run, this machine has not what the users need, the server does not
/// answer, or it cannot be prepared.
pub async fn load<D: Driver>(driver: D, plan: &Plan, progress: &Progress) -> Result<Measured, LabError> {
    refuse_what_cannot_run(plan)?;
    provide(plan.users, plan.users)?;
    load_by(driver, plan, None, progress).await
}

/// Prepares what was planned, and lets other processes run it.
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
    let preparation = if plan.prepare {
        prepare::prepare(&driver, plan, &people, progress).await?
    } else {
        Preparation::default()
    };
    let hands = match team {
        None => Hands::here(plan, &people),
        Some(team) => Hands::There(team.assigned().await?),
    };
    let began = jiff::Timestamp::now();
    let run = run::run(&driver, plan, &people, hands, progress).await;
    Ok(Measured {
        server,
        server_pid: plan.server_pid,
        server_program: plan.server_pid.and_then(program_name),
        began,
        preparation,
        run,
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
