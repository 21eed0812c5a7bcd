//! What a run showed, in sentences that are computed from its numbers and claim nothing beyond them.

use super::model::Report;
use super::parts::Deliveries;
use crate::numbers::{bytes, milliseconds, thousands, time};

pub(super) fn of(report: &Report) -> Vec<String> {
    let mut findings = Vec::new();
    let summary = &report.summary;
    if summary.latency.count == 0 {
        return findings;
    }
    findings.push(throughput(report));
    if report.run.speedup > 1.0 {
        let users = thousands(summary.users as f64);
        findings.push(format!(
            "With think times divided by {}, these {users} users ask as often as {} would at the script's own pace; they hold no more than {users} connections, though, so that nothing is said about the memory of that many.",
            report.run.speedup,
            thousands((summary.users as f64 * report.run.speedup).round()),
        ));
    }
    findings.extend(slowest(report));
    findings.extend(memory_and_disk(report));
    findings.extend(report.deliveries.as_ref().map(delivered));
    if summary.late_users > 0 {
        findings.push(format!(
            "At the end {} of {} users were behind their timetable, by {} on average: the server did not keep up with what was due ({} a minute due, {} answered).",
            summary.late_users,
            summary.users,
            time(summary.late_mean_s),
            thousands(summary.due_per_minute),
            thousands(summary.transactions_per_minute)
        ));
    }
    if summary.failed > 0 {
        findings.push(format!(
            "{} requests failed, {:.2} % of all; failed requests have no latency, but for time-outs.",
            thousands(summary.failed as f64),
            summary.failed_percent
        ));
    }
    findings
}

fn throughput(report: &Report) -> String {
    let summary = &report.summary;
    let mut text = format!(
        "{} users at work were answered {} times a minute, in {} on average; 99 of 100 answers came within {}.",
        thousands(summary.users as f64),
        thousands(summary.transactions_per_minute),
        milliseconds(summary.latency.mean_ms),
        milliseconds(summary.latency.p99_ms)
    );
    if let (Some(cpu), Some(system)) = (summary.cpu_percent, summary.system_percent) {
        text.push_str(&format!(
            " The server used {cpu:.1} % of {} CPUs, {:.0} % of that in system mode.",
            report.machine.cpus,
            if cpu > 0.0 { 100.0 * system / cpu } else { 0.0 }
        ));
    }
    text
}

fn delivered(deliveries: &Deliveries) -> String {
    let count = |number: u64| thousands(number as f64);
    let mut text = format!(
        "{} messages sent with {} deliveries promised: ",
        count(deliveries.messages),
        count(deliveries.promised)
    );
    if deliveries.wrong() == 0 {
        text.push_str("all delivered once, byte for byte.");
    } else {
        let kinds = [
            (deliveries.missing, "missing"),
            (deliveries.altered, "altered"),
            (deliveries.twice, "twice"),
            (deliveries.strayed, "astray"),
            (deliveries.unread, "mailboxes that could not be read"),
        ];
        let wrong: Vec<String> = kinds
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, kind)| format!("{} {kind}", count(*number)))
            .collect();
        text.push_str(&format!("{}. {}.", wrong.join(", "), deliveries.examples.join("; ")));
    }
    if deliveries.uncertain > 0 {
        text.push_str(&format!(
            " Of {} more the server's answer was lost; these may have arrived or not.",
            count(deliveries.uncertain)
        ));
    }
    text
}

fn slowest(report: &Report) -> Option<String> {
    let time_of = |row: &super::model::OperationRow| row.latency.mean_ms * row.latency.count as f64;
    let total: f64 = report.operations.iter().map(time_of).sum();
    let most = report.operations.iter().max_by(|left, right| time_of(left).total_cmp(&time_of(right)))?;
    (total > 0.0 && report.operations.len() > 1).then(|| {
        format!(
            "{} ({}) took the largest part of all response time, {:.0} %: {} requests of {} on average.",
            most.command,
            most.transaction,
            100.0 * time_of(most) / total,
            thousands(most.latency.count as f64),
            milliseconds(most.latency.mean_ms)
        )
    })
}

fn memory_and_disk(report: &Report) -> Option<String> {
    let summary = &report.summary;
    let resident = summary.resident_bytes?;
    let mut text = format!("The server's memory reached {}", bytes(resident as f64));
    if let Some(added) = summary.added_memory_per_user_bytes.filter(|added| *added > 0.0) {
        text.push_str(&format!(", of which {} a user came after the users began", bytes(added)));
    }
    if let Some(written) = summary.disk_bytes_per_transaction {
        text.push_str(&format!("; it wrote {} to disk for each transaction", bytes(written)));
    }
    if let Some(syncs) = summary.log_syncs_per_transaction {
        text.push_str(&format!(", with {syncs:.2} log syncs"));
    }
    text.push('.');
    Some(text)
}
