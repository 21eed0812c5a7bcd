//! About how long a cell takes, before it was measured: people want to know whether to wait or to go home.

use std::time::Duration;

use super::cells::{Cell, Group, Plan, substitute};
use super::definition::{Definition, Scalar};
use super::step::{CellStep, Fill, Load, MailStep, StepAction};
use crate::values::duration;

/// Seconds for what depends on the machine: these are of a small one of today.
const START_S: f64 = 2.0;
const DOCUMENTS_PER_S: f64 = 8000.0;
const VIEWED_DOCUMENTS_PER_S: f64 = 3000.0;
const MESSAGES_PER_S: f64 = 12_000.0;
const USERS_PER_S: f64 = 40.0;
const MAIL_PER_S: f64 = 200.0;
const MAIL_ENDS_S: f64 = 5.0;
const BUILT_PER_S: f64 = 20_000.0;
const LOAD_ENDS_S: f64 = 5.0;
const CONSOLE_S: f64 = 5.0;
const REST_S: f64 = 5.0;

/// A round of the workloads. Where no ramp-up is given, users begin over one, and counting begins when the last has
/// done his first.
const ROUND_S: f64 = 900.0;

/// Seconds of one run of a cell, alone on its servers.
pub(super) fn cell_s(definition: &Definition, cell: &Cell) -> f64 {
    steps_s(definition, &definition.steps, cell)
}

/// Seconds of this many turns of the cells that have their servers in common.
pub(super) fn group_s(definition: &Definition, plan: &Plan, group: &Group<'_>, turns: u32) -> f64 {
    let (common, own) = plan.split(&definition.steps);
    let once: f64 = group.cells.first().map_or(0.0, |cell| steps_s(definition, common, cell));
    let turn: f64 = group.cells.iter().map(|cell| steps_s(definition, own, cell)).sum();
    once + turn * f64::from(turns)
}

/// Seconds of some of its steps.
pub(super) fn steps_s(definition: &Definition, steps: &[CellStep], cell: &Cell) -> f64 {
    let documents: f64 = definition
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            StepAction::Fill(fill) => Some(fill),
            _ => None,
        })
        .map(|fill| number(cell, Some(&fill.documents), 0.0) * number(cell, fill.databases.as_ref(), 1.0))
        .sum();
    steps.iter().map(|step| step_s(step, cell, documents)).sum()
}

fn number(cell: &Cell, scalar: Option<&Scalar>, otherwise: f64) -> f64 {
    let text = scalar.and_then(|scalar| substitute(&scalar.0, &cell.values).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn time(cell: &Cell, scalar: Option<&Scalar>) -> Option<f64> {
    let text = substitute(&scalar?.0, &cell.values).ok()?;
    duration(&text).ok().map(|time: Duration| time.as_secs_f64())
}

fn step_s(step: &CellStep, cell: &Cell, documents: f64) -> f64 {
    match &step.action {
        StepAction::Start(start) => START_S * number(cell, start.servers.as_ref(), 1.0),
        StepAction::Fill(fill) => fill_s(fill, cell),
        StepAction::Load(load) => load_s(load, cell),
        StepAction::Probe(probe) => time(cell, probe.length.as_ref()).unwrap_or(0.0),
        StepAction::Console(_) => CONSOLE_S + documents / BUILT_PER_S,
        StepAction::Request(request) => {
            1.0 + documents * number(cell, request.databases.as_ref(), 1.0) / BUILT_PER_S
        }
        StepAction::Mail(mail) => mail_s(mail, cell),
        StepAction::Drain(drain) => MAIL_ENDS_S + number(cell, drain.kills.as_ref(), 0.0) * START_S,
        StepAction::Rest(most) => number(cell, Some(most), 0.0).min(REST_S),
        StepAction::Pause(seconds) => number(cell, Some(seconds), 1.0),
        StepAction::Kill | StepAction::Stop => 1.0,
    }
}

fn fill_s(fill: &Fill, cell: &Cell) -> f64 {
    let written = number(cell, Some(&fill.documents), 0.0)
        * number(cell, fill.databases.as_ref(), 1.0)
        * number(cell, fill.times.as_ref(), 1.0);
    written / if fill.views { VIEWED_DOCUMENTS_PER_S } else { DOCUMENTS_PER_S }
}

/// Each is sent, and read again.
fn mail_s(mail: &MailStep, cell: &Cell) -> f64 {
    let messages = number(cell, Some(&mail.messages), 0.0);
    MAIL_ENDS_S + messages / MAIL_PER_S + number(cell, mail.kills.as_ref(), 0.0) * START_S
}

fn load_s(load: &Load, cell: &Cell) -> f64 {
    let users = number(cell, Some(&load.users), 1.0);
    let messages = number(cell, load.messages_per_user.as_ref(), 100.0);
    let speedup = number(cell, load.speedup.as_ref(), 1.0);
    let run_s = time(cell, load.ramp_up.as_ref()).unwrap_or(2.0 * ROUND_S / speedup)
        + time(cell, Some(&load.duration)).unwrap_or(60.0)
        + LOAD_ENDS_S;
    let prepared_s = |users: f64| users * messages / MESSAGES_PER_S + users / USERS_PER_S;
    let beside_s: f64 = load
        .beside
        .iter()
        .map(|other| {
            let messages = number(cell, other.messages_per_user.as_ref(), 100.0);
            number(cell, Some(&other.users), 1.0) * messages / MESSAGES_PER_S
        })
        .sum();
    match &load.search {
        None => prepared_s(users) + run_s + beside_s,
        Some(search) => {
            let most = number(cell, Some(&search.most_users), users).max(users);
            let doublings = (most / users.max(1.0)).log2().ceil();
            let runs = doublings + 1.0 + number(cell, Some(&search.halvings), 0.0);
            prepared_s(most) * 2.0 + runs * run_s
        }
    }
}
