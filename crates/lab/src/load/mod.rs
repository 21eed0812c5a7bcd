//! `lab load`: a workload run against a server.

mod context;
mod desk;
mod documents;
mod files;
mod groupware;
mod plan;
mod prepare;
mod run;
mod syncs;
mod user;

use std::sync::Arc;

use crate::driver::{Driver, ServerDescription};
use crate::error::LabError;
use crate::monitor::program_name;
use crate::progress::Progress;

pub use plan::{Objectives, Plan, StopConditions};
pub use prepare::Preparation;
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

/// Prepares and runs what was planned.
///
/// # Errors
/// The script has commands that cannot be run, the users need more open files than there may be, the server
/// does not answer, or it cannot be prepared.
pub async fn load<D: Driver>(driver: D, plan: &Plan, progress: &Progress) -> Result<Measured, LabError> {
    refuse_what_cannot_run(plan)?;
    files::allow_connections(plan.users)?;
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
    let began = jiff::Timestamp::now();
    let run = run::run(&driver, plan, &people, plan.server_pid, progress).await;
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
