//! From what the drivers took of their machines to rows of the report.

use std::collections::BTreeMap;

use scrinium_lab_report::run::DriverRow;

use crate::load::{DriverData, RunData};
use crate::monitor::{Waiting, machine_identity};

/// One row for each driver. `server_is_here`: the server's process was found on the controller's machine.
pub(super) fn rows(run: &RunData, server_is_here: bool) -> Vec<DriverRow> {
    let here = machine_identity();
    let together = together(run);
    let row = |driver: &DriverData| {
        let used = &driver.used;
        let machine_cpu_percent =
            together.get(&used.machine_identity).map_or(0.0, |machine| machine.percent());
        let moved = driver.clocks.map(|(begin, end)| milliseconds(end.offset_us - begin.offset_us));
        let uncertain = driver.clocks.map(|(begin, end)| begin.uncertainty_us.max(end.uncertainty_us));
        DriverRow {
            name: driver.name.clone().unwrap_or_else(|| "this process".to_owned()),
            users: used.users,
            cpus: used.cpus,
            cpu_percent: percent(used.cpu_s, used.held_s, used.cpus),
            machine_cpu_percent,
            lag_p99_ms: driver.lag.p99_ms,
            beat_p99_ms: driver.beat.p99_ms,
            cpu_wait_mean_ms: used.waiting.as_ref().map(Waiting::mean_ms),
            resident_bytes: used.resident_bytes,
            beside_server: server_is_here && used.machine_identity == here,
            machine: used.machine.clone(),
            clock_uncertainty_ms: uncertain.and_then(|us| i64::try_from(us).ok()).map(milliseconds),
            clock_drift_ms: moved,
        }
    };
    run.drivers.iter().map(row).collect()
}

/// CPUs that all drivers may use at a time, each machine's counted once.
pub(super) fn cpus(run: &RunData) -> f64 {
    together(run).values().map(|machine| machine.cpus).sum::<f64>().max(0.01)
}

/// What all drivers of one machine used.
#[derive(Default)]
struct Together {
    cpus: f64,
    /// CPUs in use, on average.
    busy: f64,
}

impl Together {
    fn percent(&self) -> f64 {
        percent(self.busy, 1.0, self.cpus)
    }
}

fn together(run: &RunData) -> BTreeMap<String, Together> {
    let mut machines: BTreeMap<String, Together> = BTreeMap::new();
    for driver in &run.drivers {
        let used = &driver.used;
        let machine = machines.entry(used.machine_identity.clone()).or_default();
        machine.cpus = machine.cpus.max(used.cpus);
        machine.busy += percent(used.cpu_s, used.held_s, 1.0) / 100.0;
    }
    machines
}

fn percent(cpu_s: f64, of_s: f64, cpus: f64) -> f64 {
    if of_s > 0.0 && cpus > 0.0 { 100.0 * cpu_s / of_s / cpus } else { 0.0 }
}

fn milliseconds(microseconds: i64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "clocks are not years apart")]
    let microseconds = microseconds as f64;
    microseconds / 1000.0
}
