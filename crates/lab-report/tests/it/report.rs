//! What a run's report looks like: data, table, page.

use scrinium_lab_report::run::{DriverRow, Report, Validity, csv, page, table};

use crate::driver_row::driver_row;

fn golden_path(name: &str) -> String {
    format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A report with everything in it: failures, a warning, a missed objective, seconds without a server.
fn report() -> Report {
    serde_json::from_str(&std::fs::read_to_string(golden_path("report.json")).unwrap()).unwrap()
}

/// Compares with a golden file; `UPDATE_GOLDEN=1` writes it again.
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
    let page = page::page(&report).unwrap();
    for outside in ["<script", "<link", "<img", "@import", "url(", "src=", "href="] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; more"));
    assert!(page.contains("prefers-color-scheme: dark"));
    for operation in &report.operations {
        assert!(page.contains(&operation.transaction) && page.contains(&operation.command));
    }
    // One chart each for throughput, response, CPU, memory, disk, log syncs, pool and view lag; no colour left that stands
    // for a role.
    assert_eq!(page.matches("<svg").count(), 8);
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
        second.pool_hits_percent = None;
        second.view_lag_changes = None;
    }
    report.summary.cpu_percent = None;
    report.summary.memory_per_user_bytes = None;
    let page = page::page(&report).unwrap();
    assert_eq!(page.matches("<svg").count(), 3, "throughput, response, and the driver's CPU");
    assert!(table::text(&report).contains('\u{2013}'));
}

/// Three runs of which the last is not valid and the first has missed an objective.
#[test]
fn runs_that_are_repeated_show_how_far_they_are_apart() {
    let run = |mean_ms: f64| {
        let mut run = report();
        run.validity = Validity { valid: true, ..Validity::default() };
        run.summary.latency.mean_ms = mean_ms;
        run.objectives[0].value = mean_ms;
        run.objectives[0].reached = mean_ms < 11.5;
        run
    };
    let mut third = run(10.0);
    third.validity = Validity { reasons: vec!["starved".to_owned()], ..Validity::default() };
    let all = Report::repeated(&[run(12.0), run(11.0), third]).unwrap();
    let repeats = all.repeats.as_ref().unwrap();
    assert_eq!((repeats.shown, repeats.runs.len(), all.summary.latency.mean_ms), (2, 3, 11.0));
    assert!(!all.validity.valid && all.validity.reasons == ["run 3: starved"]);
    assert!(!all.objectives[0].reached && (all.objectives[0].value - 12.0).abs() < 1e-9);
    let spread = repeats.spreads.iter().find(|spread| spread.name == "average response").unwrap();
    // The deviations are 1, 0 and -1, so that the variance of this sample is 1.
    assert!((spread.coefficient_percent - 100.0 / 11.0).abs() < 1e-9, "{spread:?}");
    assert!(all.validity.warnings.is_empty(), "9 % is no warning: {:?}", all.validity.warnings);
    assert!(table::text(&all).contains("Of the runs") && page::page(&all).unwrap().contains("The runs"));

    let apart = Report::repeated(&[run(10.0), run(14.0)]).unwrap();
    assert_eq!((apart.repeats.as_ref().unwrap().shown, apart.validity.valid), (2, true));
    assert!(apart.validity.warnings[0].contains("24 % apart in average response"), "{apart:?}");
    let one = Report::repeated(&[run(10.0)]).unwrap();
    assert!(one.repeats.is_none() && Report::repeated(&[]).is_none());
}

#[test]
fn several_drivers_stand_in_the_report() {
    let mut report = report();
    let second = DriverRow { name: "driver <2>".to_owned(), clock_drift_ms: Some(-0.2), ..driver_row() };
    report.drivers = vec![driver_row(), second];
    assert!(table::text(&report).contains("driver <2>"));
    let page = page::page(&report).unwrap();
    assert!(page.contains("driver &lt;2&gt;") && page.contains("Drivers<small>"));
}
