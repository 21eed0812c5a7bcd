//! The laboratory, mounted as a command, measures this server.

use std::process::{Command, Stdio};

use scrinium_lab::experiment::ExperimentReport;

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
