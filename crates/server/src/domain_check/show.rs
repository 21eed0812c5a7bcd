//! The report of a domain, for people and for programs.

use scrinium_mail_discovery::PublishedRecord;
use serde_json::{Value, json};

use super::Report;
use super::reach::MailHost;
use super::records::{Finding, State};

/// Bytes of one string of a TXT record (RFC 1035 §3.3).
const STRING_BYTES_MAX: usize = 255;

pub(super) fn text(report: &Report) -> String {
    let mut text = format!("Records of {}:\n\n", report.domain);
    for Finding { record, state, .. } in &report.findings {
        text.push_str(&format!("  {:8} {:5} {}\n", state.name(), record.kind, record.name));
    }
    text.push_str("\nMail hosts, as they answer from here:\n\n");
    for host in &report.hosts {
        text.push_str(&host_lines(host));
    }
    let open: Vec<&Finding> = report.findings.iter().filter(|finding| finding.state != State::Fine).collect();
    if !open.is_empty() {
        text.push_str("\nTo publish, as lines of a zone file:\n");
    }
    for Finding { record, state, found } in open {
        text.push_str(&format!("\n; without it, {}\n{}\n", record.reason, zone_line(record)));
        if *state == State::Different {
            let found = found.iter().map(|value| format!("; DNS has: {value}\n"));
            text.extend(found);
        }
    }
    if !report.remarks.is_empty() {
        text.push('\n');
    }
    text.extend(report.remarks.iter().map(|remark| format!("remark: {remark}\n")));
    text
}

fn host_lines(host: &MailHost) -> String {
    if host.addresses.is_empty() {
        return format!("  missing  {}: DNS has no address of it\n", host.name);
    }
    let line = |(address, answered): &(std::net::IpAddr, Result<String, String>)| match answered {
        Ok(greeting) => format!("  fine     {} {address}: {greeting}\n", host.name),
        Err(reason) => format!("  closed   {} {address}: {reason}\n", host.name),
    };
    host.addresses.iter().map(line).collect()
}

/// A record as a zone file has it (RFC 1035 §5.1).
fn zone_line(record: &PublishedRecord) -> String {
    let value = if record.kind == "TXT" { strings(&record.value) } else { record.value.clone() };
    format!("{}. IN {} {value}", record.name, record.kind)
}

/// A long text is several strings, which its readers put together.
fn strings(value: &str) -> String {
    let letters: Vec<char> = value.chars().collect();
    let quoted = letters.chunks(STRING_BYTES_MAX).map(|part| {
        let part: String = part.iter().collect();
        format!("\"{}\"", part.replace('\\', "\\\\").replace('"', "\\\""))
    });
    quoted.collect::<Vec<_>>().join(" ")
}

pub(super) fn data(report: &Report) -> Value {
    let record = |finding: &Finding| {
        json!({
            "name": finding.record.name,
            "type": finding.record.kind,
            "value": finding.record.value,
            "state": finding.state.name(),
            "found": finding.found,
            "without": finding.record.reason,
        })
    };
    let address = |(address, answered): &(std::net::IpAddr, Result<String, String>)| {
        let (greeting, reason) = match answered {
            Ok(greeting) => (Some(greeting), None),
            Err(reason) => (None, Some(reason)),
        };
        json!({"address": address.to_string(), "greeting": greeting, "reason": reason})
    };
    let host = |host: &MailHost| {
        let addresses: Vec<Value> = host.addresses.iter().map(address).collect();
        json!({"name": host.name, "answers": host.is_fine(), "addresses": addresses})
    };
    json!({
        "domain": report.domain.as_str(),
        "ok": report.to_do() == 0,
        "records": report.findings.iter().map(record).collect::<Vec<_>>(),
        "mail_hosts": report.hosts.iter().map(host).collect::<Vec<_>>(),
        "remarks": report.remarks,
    })
}
