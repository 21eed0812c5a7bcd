//! From measurements to a report.

use std::time::Duration;

use scrinium_lab_report::run::{
    Deliveries, DriverRow, ExpectedRow, FORMAT, FailureRow, ObjectiveResult, OperationRow, Phase, PhasePart,
    Report, RunPart, SecondRow, Summary, WorkloadPart,
};
use scrinium_lab_report::time;
use scrinium_lab_script::Estimate;

use super::drivers;
use super::validity::{Evidence, judge};
use crate::crew::Plan;
use crate::load::{Measured, RunData, Tick};
use crate::measure::Times;
use crate::monitor::{Usage, this_machine};
use crate::schedule::Model;

/// A user who is this far behind the timetable is late.
const LATE: Duration = Duration::from_secs(1);

/// The report of a run. `command` is the command line that repeats it.
#[must_use]
pub fn report_of(plan: &Plan, measured: &Measured, command: &str) -> Report {
    let machine = this_machine();
    let drivers = drivers::rows(&measured.run, measured.server_pid.is_some());
    let summary = summary(plan, &measured.run, machine.cpus, &drivers);
    let validity = judge(&evidence(plan, measured, &summary, &drivers));
    let mut objectives = objectives(plan, &summary);
    objectives.extend(measured.deliveries.as_ref().map(delivered));
    let workload = workload(plan);
    let operations = operations(&measured.run);
    let heading = heading(plan, &workload, validity.valid);
    let mut report = Report {
        format: FORMAT.to_owned(),
        heading,
        validity,
        objectives,
        workload,
        run: run_part(plan, measured, command),
        summary,
        operations,
        failures: failures(&measured.run),
        deliveries: measured.deliveries.clone(),
        findings: Vec::new(),
        seconds: seconds(&measured.run, machine.cpus, drivers::cpus(&measured.run)),
        machine,
        probe: None,
        drivers,
        repeats: None,
    };
    report.set_findings();
    report
}

fn heading(plan: &Plan, workload: &WorkloadPart, valid: bool) -> String {
    let mut heading = format!("{} \u{b7} {} users", plan.workload, plan.users);
    if (plan.speedup - 1.0).abs() > f64::EPSILON {
        heading.push_str(&format!(
            " \u{b7} speed-up {}: {} of think time took {}",
            plan.speedup,
            time(workload.round_s),
            time(workload.round_with_speedup_s)
        ));
    } else {
        heading.push_str(" \u{b7} the script's own pace");
    }
    heading.push_str(if valid { " \u{b7} valid" } else { " \u{b7} NOT VALID" });
    heading
}

fn held(run: &RunData) -> impl Iterator<Item = &Tick> {
    run.ticks.iter().filter(|tick| tick.phase == Phase::Hold)
}

/// Sums what a process used in the hold phase; `None` when it was never seen in it.
fn used(run: &RunData, of: fn(&Tick) -> Option<Usage>) -> Option<(Usage, f64)> {
    let mut sum = Usage::default();
    let mut seconds = 0.0;
    for (usage, length_s) in held(run).filter_map(|tick| Some((of(tick)?, tick.length_s))) {
        sum.user_s += usage.user_s;
        sum.system_s += usage.system_s;
        if let Some(written) = usage.written_bytes {
            sum.written_bytes = Some(sum.written_bytes.unwrap_or(0) + written);
        }
        sum.resident_bytes = sum.resident_bytes.max(usage.resident_bytes);
        seconds += length_s;
    }
    (seconds > 0.0).then_some((sum, seconds))
}

fn summary(plan: &Plan, run: &RunData, cpus: usize, drivers: &[DriverRow]) -> Summary {
    let (mut latency, mut service) = (Times::default(), Times::default());
    let (mut answered, mut failed) = (0, 0);
    for (_, times) in run.recorder.operations() {
        latency.merge(&times.latency);
        service.merge(&times.service);
        answered += times.answered;
        failed += times.failed;
    }
    let hold_s = run.hold.as_secs_f64();
    let per_minute = |count: u64| if hold_s > 0.0 { float(count) * 60.0 / hold_s } else { 0.0 };
    let due = answered + failed;
    let late: Vec<f64> =
        run.behind.iter().filter(|behind| **behind > LATE).map(Duration::as_secs_f64).collect();
    let totals = run.recorder.totals();
    let mut summary = Summary {
        users: plan.users,
        hold_s,
        transactions_per_minute: per_minute(run.recorder.answered_in_hold()),
        due_per_minute: per_minute(due),
        latency: latency.summary(),
        service: service.summary(),
        failed,
        failed_percent: if due > 0 { 100.0 * float(failed) / float(due) } else { 0.0 },
        time_outs: totals.time_outs,
        conflicts: totals.conflicts,
        late_users: late.len(),
        late_mean_s: if late.is_empty() { 0.0 } else { late.iter().sum::<f64>() / late.len() as f64 },
        driver_lag_p99_ms: run.recorder.lag_times().summary().p99_ms,
        driver_cpu_percent: drivers.iter().map(|row| row.machine_cpu_percent).fold(0.0, f64::max),
        ..Summary::default()
    };
    processes(&mut summary, run, cpus);
    summary
}

/// What the processes of server and driver used in the hold phase.
fn processes(summary: &mut Summary, run: &RunData, cpus: usize) {
    let percent = |seconds: f64, of_s: f64| 100.0 * seconds / of_s / cpus as f64;
    let transactions = run.recorder.answered_in_hold();
    let per_transaction = |value: u64| (transactions > 0).then(|| float(value) / float(transactions));
    let counts = held(run).map(|tick| tick.counts).reduce(|all, more| Some(all?.plus(&more?))).flatten();
    summary.pool_hits_percent = counts.and_then(|counts| counts.pool_hits_percent());
    summary.view_lag_changes = counts.and_then(|counts| counts.view_lag_changes());
    if let Some(syncs) = counts.and_then(|counts| counts.log_syncs) {
        summary.log_syncs_per_s = (summary.hold_s > 0.0).then(|| float(syncs) / summary.hold_s);
        summary.log_syncs_per_transaction = per_transaction(syncs);
    }
    let Some((server, seconds)) = used(run, |tick| tick.server) else { return };
    let users = summary.users.max(1) as f64;
    let resident = float(server.resident_bytes);
    summary.user_percent = Some(percent(server.user_s, seconds));
    summary.system_percent = Some(percent(server.system_s, seconds));
    summary.cpu_percent = Some(percent(server.user_s + server.system_s, seconds));
    summary.resident_bytes = Some(server.resident_bytes);
    summary.memory_per_user_bytes = Some(resident / users);
    summary.added_memory_per_user_bytes = run.idle_memory_bytes.map(|idle| (resident - float(idle)) / users);
    summary.disk_bytes_per_s = server.written_bytes.map(|written| float(written) / seconds);
    summary.disk_bytes_per_transaction = server.written_bytes.and_then(per_transaction);
}

fn evidence(plan: &Plan, measured: &Measured, summary: &Summary, drivers: &[DriverRow]) -> Evidence {
    let run = &measured.run;
    Evidence {
        drivers: drivers.to_vec(),
        server_cpu_percent: summary.cpu_percent,
        cut: run.cut.clone(),
        answered: run.recorder.answered_in_hold(),
        hold: run.hold,
        users: plan.users,
        users_past_first_round: run.users_past_first_round,
        endless: plan.is_endless(),
        waits_for_rounds: plan.ramp_up.is_none(),
        broken_off: run.broken_off,
    }
}

fn objectives(plan: &Plan, summary: &Summary) -> Vec<ObjectiveResult> {
    let wanted = plan.objectives;
    let rows = [
        ("average latency", wanted.average_ms, summary.latency.mean_ms, "ms"),
        ("99th percentile of latency", wanted.p99_ms, summary.latency.p99_ms, "ms"),
        ("failed requests", Some(wanted.errors_percent), summary.failed_percent, "%"),
    ];
    rows.into_iter()
        .filter_map(|(name, limit, value, unit)| {
            let limit = limit?;
            let (name, unit) = (name.to_owned(), unit.to_owned());
            Some(ObjectiveResult { name, limit, value, unit, reached: value <= limit })
        })
        .collect()
}

fn delivered(deliveries: &Deliveries) -> ObjectiveResult {
    ObjectiveResult {
        name: "deliveries missing, altered, twice or astray".to_owned(),
        limit: 0.0,
        value: float(deliveries.wrong()),
        unit: "deliveries".to_owned(),
        reached: deliveries.wrong() == 0,
    }
}

fn workload(plan: &Plan) -> WorkloadPart {
    let estimate = Estimate::of(&plan.script);
    let header = &plan.script.header;
    let round_s = estimate.one_loop.as_secs_f64();
    let expected = estimate.commands.into_iter().map(|command| ExpectedRow {
        command: command.command,
        per_round: command.per_loop,
        per_user_hour: command.per_hour,
    });
    WorkloadPart {
        name: plan.workload.clone(),
        origin: plan.origin.clone(),
        title: header.title.clone().unwrap_or_default(),
        sources: header.source.clone(),
        choices: header.choices.clone(),
        published: header.published.clone(),
        variables: plan.variables.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        round_s,
        round_with_speedup_s: round_s / plan.speedup,
        expected: expected.collect(),
    }
}

fn run_part(plan: &Plan, measured: &Measured, command: &str) -> RunPart {
    RunPart {
        target: plan.target.clone(),
        server_name: measured.server.name.clone(),
        server_version: measured.server.version.clone(),
        server_pid: measured.server_pid,
        server_program: measured.server_program.clone(),
        users: plan.users,
        speedup: plan.speedup,
        keep_alive_s: plan.keep_alive.map(|idle| idle.as_secs_f64()),
        model: if plan.model == Model::Open { "open" } else { "closed" }.to_owned(),
        seed: plan.seed,
        began: format!("{:.0}", measured.began),
        phases: phases(&measured.run),
        time_out_s: plan.time_out.as_secs_f64(),
        databases_created: measured.preparation.databases_created,
        documents_added: measured.preparation.documents_added,
        laboratory_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_owned(),
        notes: Vec::new(),
    }
}

fn phases(run: &RunData) -> Vec<PhasePart> {
    let mut phases: Vec<PhasePart> = Vec::new();
    let mut from_s = 0.0;
    for tick in &run.ticks {
        match phases.last_mut().filter(|last| last.phase == tick.phase) {
            Some(last) => last.to_s = tick.at_s,
            None => phases.push(PhasePart { phase: tick.phase, from_s, to_s: tick.at_s }),
        }
        from_s = tick.at_s;
    }
    phases
}

fn operations(run: &RunData) -> Vec<OperationRow> {
    let minutes = run.hold.as_secs_f64() / 60.0;
    let row =
        |(operation, times): (scrinium_lab_script::Operation, crate::measure::OperationTimes)| OperationRow {
            command: operation.command().to_owned(),
            transaction: operation.transaction().to_owned(),
            answered: times.answered,
            failed: times.failed,
            per_minute: if minutes > 0.0 { float(times.answered) / minutes } else { 0.0 },
            latency: times.latency.summary(),
            service: times.service.summary(),
        };
    run.recorder.operations().into_iter().map(row).collect()
}

fn failures(run: &RunData) -> Vec<FailureRow> {
    let row = |(operation, kind, log): (
        scrinium_lab_script::Operation,
        crate::driver::FailureKind,
        crate::measure::FailureLog,
    )| FailureRow {
        command: operation.command().to_owned(),
        transaction: operation.transaction().to_owned(),
        kind: kind.to_string(),
        count: log.count,
        first: log.first,
    };
    run.recorder.failures().into_iter().map(row).collect()
}

/// The ends of phases leave pieces of seconds, which are too short for rates.
const SHORTEST_SECOND_S: f64 = 0.25;

fn seconds(run: &RunData, cpus: usize, drivers_cpus: f64) -> Vec<SecondRow> {
    let whole = run.ticks.iter().filter(|tick| tick.length_s >= SHORTEST_SECOND_S);
    whole.map(|tick| second(tick, cpus, drivers_cpus)).collect()
}

fn second(tick: &Tick, cpus: usize, drivers_cpus: f64) -> SecondRow {
    let length_s = tick.length_s.max(0.001);
    let percent = |seconds: f64| 100.0 * seconds / length_s / cpus as f64;
    let mut latency = Times::default();
    tick.kept.latency.add_to(&mut latency);
    SecondRow {
        at_s: tick.at_s,
        phase: tick.phase,
        users: tick.active_users,
        transactions_per_s: float(tick.kept.answered) / length_s,
        failed_per_s: float(tick.kept.failed) / length_s,
        latency: latency.summary(),
        server_user_percent: tick.server.map(|usage| percent(usage.user_s)),
        server_system_percent: tick.server.map(|usage| percent(usage.system_s)),
        server_resident_bytes: tick.server.map(|usage| usage.resident_bytes),
        server_written_bytes_per_s: tick
            .server
            .and_then(|usage| Some(float(usage.written_bytes?) / length_s)),
        log_syncs_per_s: tick.counts.and_then(|counts| Some(float(counts.log_syncs?) / length_s)),
        pool_hits_percent: tick.counts.and_then(|counts| counts.pool_hits_percent()),
        view_lag_changes: tick.counts.and_then(|counts| counts.view_lag_changes()),
        driver_cpu_percent: tick
            .driver
            .map(|usage| 100.0 * (usage.user_s + usage.system_s) / length_s / drivers_cpus),
        driver_lag_max_ms: tick.kept.lag_max.as_secs_f64() * 1000.0,
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts and bytes need no more than 53 bits")]
fn float(value: u64) -> f64 {
    value as f64
}
