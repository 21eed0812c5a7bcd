//! The figures of an answer, what they go beyond, and what is to be set.

use scrinium_lab_report::{bytes, thousands};

use super::servers::{LOG_BYTES, SYSTEM_BYTES, Servers};
use super::{Figure, Reach, Setting, Unit};
use crate::queueing::GroupCommit;
use crate::range::{Case, Range};

/// Each of the three cases of a value.
fn cases(value: impl Fn(Case) -> f64) -> Range {
    Range::of(value(Case::Low), value(Case::Expected), value(Case::High))
}

pub(super) fn of(servers: &Servers<'_>, installed: u32, count: Option<Range>) -> Vec<Figure> {
    let running = servers.running(installed);
    let mut figures = demands(servers);
    figures.extend(machines(servers, installed, running, count));
    figures.extend(resources(servers, installed, running));
    figures.extend(responses(servers, installed, running));
    figures
}

fn figure(key: &'static str, title: &'static str, range: Range, unit: Unit, source: &str) -> Figure {
    Figure { key, title, range, unit, source: source.to_owned() }
}

/// What the organisation asks for.
fn demands(servers: &Servers<'_>) -> Vec<Figure> {
    let (organisation, demand) = (servers.organisation, servers.demand);
    vec![
        figure(
            "users",
            "Users, at the end",
            Range::exactly(demand.users),
            Unit::Count,
            &format!("the organisation, grown for {} years", organisation.growth.years),
        ),
        figure(
            "connected",
            "Connected in the busy hour",
            Range::exactly(demand.connected),
            Unit::Count,
            &format!("assumed: {:.0} % of them", organisation.busy_hour.connected_percent),
        ),
        figure(
            "requests_per_s",
            "Requests in the busy hour",
            Range::exactly(demand.per_s.sum()),
            Unit::PerSecond,
            &workloads(servers),
        ),
    ]
}

/// How many servers it takes, and how busy their processors are.
fn machines(servers: &Servers<'_>, installed: u32, running: u32, count: Option<Range>) -> Vec<Figure> {
    let machine = &servers.organisation.machine;
    let costs = format!("{} (CPU, by least squares)", servers.model.costs.source);
    let percent = |of: u32, case| servers.cpu_part(of, 1.0, case) * 100.0;
    let mut figures = Vec::new();
    if let Some(count) = count {
        let source =
            if machine.servers.is_some() { "as asked".to_owned() } else { format!("{costs}, device") };
        figures.push(figure("servers", "Servers", count, Unit::Count, &source));
    }
    let cores = if machine.cores.is_some() { "the organisation" } else { "the calibration\u{2019}s machine" };
    let each = Range::exactly(f64::from(servers.cores()));
    figures.push(figure("cores", "Cores of each", each, Unit::Cores, cores));
    let all = cases(|case| percent(installed.max(1), case));
    figures.push(figure("cpu_percent", "Processors in use", all, Unit::Percent, &costs));
    if servers.lost() > 0 {
        let left = cases(|case| percent(running, case));
        figures.push(figure("cpu_percent_lost", "\u{2026} with servers lost", left, Unit::Percent, &costs));
    }
    figures
}

/// How long answers take, and how far the servers are from a limit.
fn responses(servers: &Servers<'_>, installed: u32, running: u32) -> Vec<Figure> {
    let model = servers.model;
    let ladder = model.ladder_name();
    let mean = cases(|case| servers.mean_ms(running, 1.0, case));
    let p95 = cases(|case| servers.p95_ms(running, 1.0, case));
    let p99 = cases(|case| servers.p99_ms(running, 1.0, case));
    let headroom = cases(|case| (servers.load_until_limit(installed, case) - 1.0) * 100.0);
    let mut figures = vec![
        figure("mean_ms", "Average response", mean, Unit::Milliseconds, &model.response.source),
        figure("p95_ms", "95 % within", p95, Unit::Milliseconds, &ladder),
        figure("p99_ms", "99 % within", p99, Unit::Milliseconds, &ladder),
        figure("headroom_percent", "Headroom until a limit", headroom, Unit::Percent, "the figures above"),
    ];
    if let Some(most) = most_per_s(servers) {
        figures.push(figure(
            "most_per_s",
            "Requests at most, of each server",
            most,
            Unit::PerSecond,
            "low: rush-1 to rush-16 by the Universal Scalability Law, the driver on the same machine; else CPU",
        ));
    }
    figures
}

/// Memory, disk space, and what is written.
fn resources(servers: &Servers<'_>, installed: u32, running: u32) -> Vec<Figure> {
    let model = servers.model;
    let storage = &servers.organisation.storage;
    let commit = |case: Case| GroupCommit {
        sync_s: match case {
            // Longer syncs are fewer.
            Case::Low => model.disk.sync_ms.high,
            Case::Expected => model.disk.sync_ms.value,
            Case::High => model.disk.sync_ms.low,
        } / 1000.0,
    };
    let syncs = cases(|case| commit(case).syncs_per_s(servers.commits_per_s(running, 1.0, case)));
    let figure = |key, title, range, unit, source: String| Figure { key, title, range, unit, source };
    vec![
        figure(
            "memory_bytes",
            "Memory of each",
            cases(|case| servers.memory_bytes(running, 1.0, case)),
            Unit::Bytes,
            format!("{}; assumed: {} for the system", model.memory.source, bytes(SYSTEM_BYTES)),
        ),
        figure(
            "budget_bytes",
            "\u{2026} of it memory.budget",
            cases(|case| servers.budget_bytes(running, case)),
            Unit::Bytes,
            format!("assumed: {} % of the data is in use; half or double", storage.working_set_percent),
        ),
        figure(
            "disk_bytes",
            "Disk space of each",
            cases(|case| servers.disk_bytes(installed.max(1), case)),
            Unit::Bytes,
            format!(
                "{}; assumed: {:.0} % attachments, {:.0} % free, {} of log",
                model.disk.source,
                storage.attachment_percent,
                storage.free_percent,
                bytes(LOG_BYTES)
            ),
        ),
        figure(
            "written_per_s",
            "Written to disk by each",
            cases(|case| servers.written_per_s(running, 1.0, case)),
            Unit::BytesPerSecond,
            model.costs.source.clone(),
        ),
        figure(
            "device_percent",
            "\u{2026} of what the device does",
            cases(|case| servers.device_part(running, 1.0, case) * 100.0),
            Unit::Percent,
            "device".to_owned(),
        ),
        figure(
            "syncs_per_s",
            "Log syncs of each",
            syncs,
            Unit::PerSecond,
            format!("{}; device", model.costs.source),
        ),
    ]
}

/// What one server answers at most of this mix: at least what users without a pause got from it while the driver took
/// its share of the machine, at most what its processors would do if they did nothing else.
fn most_per_s(servers: &Servers<'_>) -> Option<Range> {
    let mix = servers.per_s(1, 1.0);
    let one = servers.costs.cpus(&mix, Case::Expected) / mix.sum().max(f64::MIN_POSITIVE);
    let by_cpu = f64::from(servers.cores()) / one.max(f64::MIN_POSITIVE);
    let (_, rushed) = servers.model.scalability?.most();
    let low = if rushed.is_finite() { rushed.min(by_cpu) } else { by_cpu };
    (by_cpu.is_finite() && by_cpu > 0.0).then(|| Range::of(low, by_cpu, by_cpu))
}

fn workloads(servers: &Servers<'_>) -> String {
    let mut names: Vec<&str> = servers.demand.groups.iter().map(|group| group.workload.as_str()).collect();
    names.dedup();
    format!("{}, at {} times their pace", names.join(", "), servers.organisation.busy_hour.load)
}

/// In what the plan goes beyond what was measured.
pub(super) fn reach(servers: &Servers<'_>, installed: u32, machine_bytes: f64) -> Vec<Reach> {
    const GIGABYTE: f64 = 1024.0 * 1024.0 * 1024.0;
    let running = servers.running(installed);
    let largest = &servers.model.largest;
    let pairs = [
        ("requests a second of one server", servers.per_s(running, 1.0).sum(), largest.requests_per_s),
        ("users connected to one server", servers.connected(running, 1.0), largest.connected),
        ("documents in a mail file", servers.demand.documents, largest.documents),
        (
            "gigabytes of memory",
            servers.memory_bytes(running, 1.0, Case::Expected) / GIGABYTE,
            machine_bytes / GIGABYTE,
        ),
        ("cores", f64::from(servers.cores()), f64::from(servers.model.cores)),
    ];
    pairs
        .into_iter()
        .map(|(what, asked, measured)| Reach { what, asked, measured, text: beyond(asked, measured) })
        .collect()
}

/// How far something is beyond what was measured, in words.
#[must_use]
pub(super) fn beyond(asked: f64, measured: f64) -> String {
    // Rounding is not worth a warning.
    const NOT_WORTH_A_WORD: f64 = 1.005;
    if measured <= 0.0 {
        return "nothing of it was measured".to_owned();
    }
    let factor = asked / measured;
    if factor <= NOT_WORTH_A_WORD {
        "within what was measured".to_owned()
    } else {
        format!("{factor:.1} times beyond what was measured")
    }
}

/// What should not be left at its default.
pub(super) fn settings(servers: &Servers<'_>, installed: u32) -> Vec<Setting> {
    // Defaults of the server's configuration.
    const MOST_CONNECTIONS: f64 = 20_000.0;
    const MOST_TRANSACTIONS: f64 = 1000.0;
    const MEGABYTE: f64 = 1024.0 * 1024.0;
    let running = servers.running(installed);
    let budget = servers.budget_bytes(running, Case::Expected);
    let mut settings = vec![Setting {
        key: "memory.budget",
        value: format!("{:.0} MB", (budget / MEGABYTE).ceil()),
        why: format!(
            "the {:.0} % of the data that is in use",
            servers.organisation.storage.working_set_percent
        ),
    }];
    if servers.organisation.network.encryption {
        settings.push(Setting {
            key: "https.listen",
            value: "0.0.0.0:6984".to_owned(),
            why: "users reach the server encrypted".to_owned(),
        });
    }
    // A user has one connection; half of what is allowed is for those that are about to end.
    let connected = servers.connected(running, 1.0);
    if connected * 2.0 > MOST_CONNECTIONS {
        settings.push(Setting {
            key: "http.max_connections",
            value: format!("{:.0}", (connected * 2.0 / 1000.0).ceil() * 1000.0),
            why: format!("{} users are connected to each", thousands(connected)),
        });
    }
    // Little's law: who is within at once.
    let within = servers.per_s(running, 1.0).sum() * servers.mean_ms(running, 1.0, Case::High) / 1000.0;
    if within.is_finite() && within * 2.0 > MOST_TRANSACTIONS {
        settings.push(Setting {
            key: "server.max_concurrent_transactions",
            value: format!("{:.0}", (within * 2.0 / 1000.0).ceil() * 1000.0),
            why: format!("{} requests are under way at once", thousands(within)),
        });
    }
    settings
}

/// What was neither measured nor said by the organisation.
pub(super) fn assumptions(servers: &Servers<'_>) -> Vec<String> {
    let organisation = servers.organisation;
    let mut assumptions = vec![
        "Requests come at random, and users are divided evenly among the servers.".to_owned(),
        "Attachments do not become smaller on disk; text does as in the calibration.".to_owned(),
        "Sending a message costs what it does to three people.".to_owned(),
    ];
    if organisation.availability.copies > 1 {
        assumptions.push(
            "A copy of what is written costs what writing it did; no run has measured that.".to_owned(),
        );
    }
    if organisation.network.encryption {
        assumptions.push(match &servers.model.encryption {
            Some(change) => format!(
                "Encryption costs {:.0} % more CPU ({}).",
                (change.cpu.value - 1.0) * 100.0,
                change.source
            ),
            None => "Encryption costs nothing: the calibration has no run with it.".to_owned(),
        });
    }
    if let Some(change) = &servers.model.doubled_inbox {
        assumptions.push(format!(
            "Each doubling of a mail file beyond the calibration\u{2019}s costs {:.0} % more CPU ({}).",
            (change.cpu.value - 1.0) * 100.0,
            change.source
        ));
    }
    if servers.cores() != servers.model.cores {
        assumptions.push("A core more or less is as good as one of the calibration\u{2019}s.".to_owned());
    }
    assumptions
}
