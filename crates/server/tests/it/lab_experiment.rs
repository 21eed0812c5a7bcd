//! The laboratory, mounted as a command, measures this server.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use scrinium_lab::experiment::ExperimentReport;

/// Measures an experiment about mail in a small form, and gives each cell's labels, and its values by their columns' titles. Cells of
/// peers that are not here are left out, with a word on why.
fn mail(name: &str, more: &[&str]) -> Vec<(String, Vec<(String, f64)>)> {
    let folder = tempfile::tempdir().unwrap();
    // Postfix and Dovecot work as users of their own.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_scrinium"))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .args(["lab", "experiment", name, "--quick", "--json", "--report", "out"])
        .args(more)
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 99)), "{talk}");
    let report: ExperimentReport = serde_json::from_slice(&output.stdout).unwrap();
    let mut found = Vec::new();
    for cell in &report.cells {
        let labels = cell.labels.join(", ");
        assert!(cell.failed.is_none(), "{labels}: {:?}\n{talk}", cell.failed);
        if let Some(why) = cell.invalid.first() {
            assert!(
                !labels.starts_with("Scrinium") && (why.contains("Postfix") || why.contains("Dovecot")),
                "{why}"
            );
            scrinium_fault::skip(why);
            continue;
        }
        let values = report.columns.iter().zip(&cell.values);
        let values = values.filter_map(|(column, value)| Some((column.title.clone(), value.as_ref()?.mean)));
        found.push((labels, values.collect()));
    }
    found
}

/// Each message has arrived, as it was sent; and once, but where it may come twice.
fn all_arrived(cells: &[(String, Vec<(String, f64)>)], may_repeat: impl Fn(&str) -> bool) {
    for (labels, values) in cells {
        let value = |title: &str| values.iter().find(|(column, _)| column == title).map(|(_, value)| *value);
        assert_eq!((value("Missing"), value("Altered")), (Some(0.0), Some(0.0)), "{labels}: {values:?}");
        assert!(may_repeat(labels) || value("Twice") == Some(0.0), "{labels}: {values:?}");
    }
}

#[test]
fn mail_by_smtp_arrives_once_and_unaltered_also_in_postfix_and_dovecot() {
    let smaller = ["--set", "messages=60", "--set", "connections=8", "--set", "kills=1", "--only", "on"];
    let cells = mail("smtp-accept", &smaller);
    assert_eq!(cells.iter().filter(|(labels, _)| labels.starts_with("Scrinium")).count(), 2, "{cells:?}");
    all_arrived(&cells, |_| false);
}

#[test]
fn mail_by_lmtp_arrives_once_and_unaltered_also_in_dovecot() {
    let cells = mail("lmtp-deliver", &["--set", "messages=60", "--set", "kills=1"]);
    assert_eq!(cells.iter().filter(|(labels, _)| labels.starts_with("Scrinium")).count(), 2, "{cells:?}");
    all_arrived(&cells, |_| false);
}

#[test]
fn a_queue_goes_out_as_that_of_postfix_does() {
    let cells = mail("queue-drain", &["--set", "messages=30"]);
    assert_eq!(cells.iter().filter(|(labels, _)| labels.starts_with("Scrinium")).count(), 2, "{cells:?}");
    // What was under way when it was killed may have arrived.
    all_arrived(&cells, |labels| labels.contains("killed"));
}

#[test]
fn mail_that_waits_goes_out_in_the_end() {
    let waiting = mail("deferred-queue", &["--set", "messages=30"]);
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    all_arrived(&waiting, |_| true);
}

#[test]
fn a_hub_gets_mail_from_the_edge_once() {
    let hub = mail("mail-routing-hub", &["--set", "messages=30", "--only", "on"]);
    assert_eq!(hub.len(), 2, "{hub:?}");
    all_arrived(&hub, |_| false);
}

#[test]
fn a_cell_of_an_experiment_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_scrinium"))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .args(["lab", "experiment", "restart", "--quick", "--json", "--set", "documents=600"])
        .args(["--set", "repeats=1", "--only", "restart", "--report", "out"])
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{talk}");
    let report: ExperimentReport = serde_json::from_slice(&output.stdout).unwrap();
    let cell = &report.cells[0];
    assert_eq!((report.cells.len(), cell.settings["log.favor"].as_str()), (1, "restart"));
    assert!(cell.values.iter().all(Option::is_some), "{:?}", cell.values);
    assert_eq!(report.server_name, "Scrinium");
}

#[test]
fn users_read_by_imap_plain_and_encrypted_and_all_that_they_send_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_scrinium"))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .args(["lab", "experiment", "imap-users", "--quick", "--json", "--report", "out"])
        .args(["--set", "users=3", "--set", "messages=3", "--set", "duration=4s", "--set", "ramp_up=1s"])
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 99)), "{talk}");
    let report: ExperimentReport = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report.cells.len(), 2, "{talk}");
    for cell in &report.cells {
        assert!(cell.failed.is_none(), "{:?}: {:?}\n{talk}", cell.labels, cell.failed);
        // A machine that is busy makes a run say nothing of the server; it has run all the same.
        let answered =
            cell.values.first().and_then(|value| value.as_ref()).is_some_and(|value| value.mean > 0.0);
        let lost = cell.invalid.iter().any(|why| why.contains("deliver") || why.contains("message"));
        assert!(answered && !lost, "{:?}: {:?}", cell.labels, cell.invalid);
    }
}
