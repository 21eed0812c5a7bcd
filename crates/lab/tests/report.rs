//! What a run's report looks like: data, table, page; and when a run is not valid.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fall over")]

use std::time::Duration;

use scrinium_lab::load::Cut;
use scrinium_lab::report::validity::{Evidence, judge};
use scrinium_lab::report::{Report, csv, html, table};

fn golden_path(name: &str) -> String {
    format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A report with everything in it: failures, a warning, a missed objective, seconds without a server.
fn report() -> Report {
    serde_json::from_str(&std::fs::read_to_string(golden_path("report.json")).unwrap()).unwrap()
}

/// Compares with a golden file; `UPDATE_GOLDEN=1` writes it anew.
fn assert_golden(name: &str, now: &str) {
    let path = golden_path(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, now).unwrap();
    }
    assert_eq!(now, std::fs::read_to_string(&path).unwrap(), "{name}");
}

/// `report.json` is what other programs read: a name that changes is a new format.
#[test]
fn the_form_of_the_json_is_fixed() {
    let again = serde_json::to_string_pretty(&report()).unwrap() + "\n";
    assert_golden("report.json", &again);
    assert_eq!(report().format, "scrinium-lab-report/1");
}

#[test]
fn table_and_csv_are_as_they_were() {
    assert_golden("report.txt", &table::text(&report()));
    let csv = csv::text(&report());
    assert_golden("report.csv", &csv);
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.iter().all(|count| *count == columns[0]), "{columns:?}");
}

#[test]
fn the_page_needs_nothing_else() {
    let mut report = report();
    report.failures[0].first.push("<script>alert(1)</script> & more".to_owned());
    let page = html::page(&report).unwrap();
    for outside in ["<script", "<link", "<img", "@import", "url(", "src=", "href="] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; more"));
    assert!(page.contains("prefers-color-scheme: dark"));
    for operation in &report.operations {
        assert!(page.contains(&operation.transaction) && page.contains(&operation.command));
    }
    // One chart each for throughput, response, CPU, memory, disk and log syncs; no colour left that stands
    // for a role.
    assert_eq!(page.matches("<svg").count(), 6);
    assert!(!page.contains("#FE0"), "a role's colour was not replaced");
    for tag in ["div", "table", "tr", "td", "figure", "svg", "dl", "main"] {
        let (opened, closed) =
            (page.matches(&format!("<{tag}")).count(), page.matches(&format!("</{tag}>")).count());
        assert!(opened >= closed && closed > 0, "{tag}: {opened} opened, {closed} closed");
    }
}

/// Where nothing was seen of the server's process, the page has no empty charts and no invented zeros.
#[test]
fn a_server_elsewhere_has_no_process() {
    let mut report = report();
    for second in &mut report.seconds {
        second.server_user_percent = None;
        second.server_system_percent = None;
        second.server_resident_bytes = None;
        second.server_written_bytes_per_s = None;
        second.log_syncs_per_s = None;
    }
    report.summary.cpu_percent = None;
    report.summary.memory_per_user_bytes = None;
    let page = html::page(&report).unwrap();
    assert_eq!(page.matches("<svg").count(), 3, "throughput, response, and the driver's CPU");
    assert!(table::text(&report).contains('\u{2013}'));
}

#[test]
fn a_starved_driver_spoils_a_run() {
    let good = Evidence {
        driver_cpu_percent: 40.0,
        driver_lag_p99: Duration::from_millis(3),
        server_cpu_percent: Some(45.0),
        answered: 1000,
        hold: Duration::from_secs(60),
        users: 10,
        users_past_first_round: 10,
        endless: true,
        ..Evidence::default()
    };
    let judged = judge(&good);
    assert!(judged.valid && judged.warnings.is_empty(), "{judged:?}");

    let valid = |change: fn(&mut Evidence)| {
        let mut evidence = good.clone();
        change(&mut evidence);
        let judged = judge(&evidence);
        (judged.valid, judged.warnings.len())
    };
    assert_eq!(valid(|evidence| evidence.driver_cpu_percent = 80.0), (true, 2));
    assert_eq!(valid(|evidence| evidence.driver_cpu_percent = 86.0), (false, 1));
    assert_eq!(valid(|evidence| evidence.driver_lag_p99 = Duration::from_millis(20)), (true, 1));
    assert_eq!(valid(|evidence| evidence.driver_lag_p99 = Duration::from_millis(51)), (false, 0));
    assert_eq!(valid(|evidence| evidence.server_cpu_percent = Some(58.0)), (true, 1));
    assert_eq!(valid(|evidence| evidence.users_past_first_round = 9), (true, 1));
    assert_eq!(valid(|evidence| evidence.answered = 0), (false, 0));
    assert_eq!(valid(|evidence| evidence.cut = Some(Cut::Operator)), (false, 0));
    assert_eq!(valid(|evidence| evidence.cut = Some(Cut::ServerGone)), (false, 0));
    assert_eq!(valid(|evidence| evidence.cut = Some(Cut::UsersEnded)), (true, 1));
}
