//! The report as programs and as people read it. `UPDATE=1` writes the golden files.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cases::{CASES, MB, grew, ran, set, well_set_up};
use scrinium_advise::{AskError, Moment, Observation, ObservationError, Setting, Source, judge};
use serde_json::{Value, json};

/// A server with one of everything: keys at once and at the next start, a command, something by hand, a note.
fn badly_set_up() -> Observation {
    let mut seen = well_set_up();
    for name in ["log-off", "backup-old", "compact-limited", "inbox-size", "encryption"] {
        let case = CASES.iter().find(|case| case.rule == name).unwrap();
        (case.speaks)(&mut seen);
    }
    ran(&mut seen, "UNLOGGED_FLUSH", 5000.0, 2.0);
    set(&mut seen, "io.limit_compact", 2.0 * MB);
    let source = "SCRINIUM_LOG__STYLE".to_owned();
    seen.settings.insert("log.style".to_owned(), Setting { value: "off".into(), source });
    seen.events = None;
    seen
}

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "{name} is not what it was; if it is to be: UPDATE=1 cargo test -p scrinium-advise --test it golden\n{text}"
    );
}

#[test]
fn json_and_text_stay_as_they_are() {
    let report = judge(&badly_set_up());
    compare("report.json", &format!("{:#}\n", report.to_json()));
    compare("report.txt", &report.to_text(false, &str::to_owned));
    let all = report.to_text(true, &|part| format!("<{part}>"));
    assert!(
        all.contains("1. <Log changes>  (log-off)\n") && all.contains("which speak if:\n  log-partly-off ")
    );
    assert!(
        all.contains("  inbox-size             mail/ada has 50,000 documents, which is no problem here"),
        "{all}"
    );
    let nothing = judge(&well_set_up());
    assert!(!nothing.has_advice() && report.has_advice());
    let text = nothing.to_text(false, &str::to_owned);
    assert!(text.contains("\nNothing is to be changed.\n"), "{text}");
    assert!(judge(&Observation::default()).to_text(false, &str::to_owned).contains("Little happened: "));
}

/// A console that answers from a table, and refuses what is not in it.
struct Table(BTreeMap<String, Value>);

impl Source for Table {
    fn ask(&mut self, command: &str) -> Result<Value, AskError> {
        let refused = || AskError::Refused(format!("there is no command {command}"));
        self.0.get(command).cloned().ok_or_else(refused)
    }
}

fn console(elapsed_s: u64, syncs: u64, writes: u64) -> Table {
    let answers = json!({
        "show statistics": {"statistics": {"Server.ElapsedTime": elapsed_s, "Log.Syncs": syncs}},
        "show transactions": {"transactions": [
            {"function": "LOG_SYNC", "count": syncs, "total_ms": syncs * 2},
            {"function": "OPEN_NOTE", "count": 7, "total_ms": 14.0},
        ]},
        "show databases": {"databases": [
            {"name": "bulk", "volume": "main", "documents": 3, "writes": writes, "blocks_from_files": 9},
            {"name": "idle", "volume": "main", "writes": 0},
        ]},
        "show database bulk": {"database": "bulk", "properties": {"logged": false}},
        "show configuration": {"mail.boxes": {"value": 4, "source": "mine.toml:2"}},
        "show volumes": {"volumes": [{"name": "main", "free_bytes": 5, "missing": null}]},
        "show log tasks 30d -n 1000": {"documents": [
            {"Task": "backup", "Outcome": "finished", "Time": "2026-11-22T10:00:00.000000Z"},
        ]},
        "show log 1d -l warn -n 1000": {"documents": [{"Level": "warn", "Text": "slow"}]},
    });
    Table(
        answers
            .as_object()
            .unwrap()
            .iter()
            .map(|(command, answer)| (command.clone(), answer.clone()))
            .collect(),
    )
}

#[test]
fn an_observation_is_what_grew_between_two_moments() {
    let first = Moment::read(&mut console(100, 50, 10)).unwrap();
    let mut server = console(160, 80, 25);
    let last = Moment::read(&mut server).unwrap();
    let seen = Observation::between(Some(first), last.clone(), (60.5, 1.8e9), &mut server).unwrap();
    assert!((seen.seconds - 60.5).abs() < 1e-9 && !seen.is_since_start);
    let sync = seen.operations["LOG_SYNC"];
    assert!((sync.count - 30.0).abs() < 1e-9 && (sync.average_ms() - 2.0).abs() < 1e-9);
    assert!(!seen.operations.contains_key("OPEN_NOTE"), "none ran in between");
    assert!((seen.databases[0].writes - 15.0).abs() < 1e-9 && seen.databases[0].blocks_from_files == 0.0);
    assert_eq!(seen.unlogged, ["bulk"]);
    assert_eq!(seen.settings["mail.boxes"], Setting { value: json!(4), source: "mine.toml:2".to_owned() });
    assert_eq!(seen.runs[0].ended_s, 1_795_341_600.0);
    assert_eq!(seen.events.as_ref().map(Vec::len), Some(1));

    let since_start = Observation::between(None, last, (0.0, 1.8e9), &mut server).unwrap();
    assert!(since_start.is_since_start && since_start.seconds == 160.0 && since_start.before.is_empty());
    assert!(since_start.operations.contains_key("OPEN_NOTE"));
}

#[test]
fn a_server_that_was_started_again_or_has_no_log_database_is_told_apart() {
    let first = Moment::read(&mut console(100, 50, 10)).unwrap();
    let mut server = console(5, 3, 0);
    let last = Moment::read(&mut server).unwrap();
    let again = Observation::between(Some(first.clone()), last, (60.0, 1.8e9), &mut server);
    assert_eq!(again, Err(ObservationError::StartedAgain));

    let mut server = console(160, 80, 25);
    server.0.retain(|command, _| !command.starts_with("show log"));
    let ended = json!([{"kind": "backup", "database": null, "state": "failed", "reason": "no room", "updated_on": 1000}]);
    server.0.insert("show tasks".to_owned(), json!({"running": [], "ended": ended}));
    let last = Moment::read(&mut server).unwrap();
    let seen = Observation::between(Some(first), last, (60.0, 1.8e9), &mut server).unwrap();
    assert_eq!((seen.events, seen.runs[0].outcome.as_str()), (None, "failed"));
    let mut away = Table(BTreeMap::new());
    assert!(matches!(Moment::read(&mut away), Err(AskError::Refused(_))));
    let mut seen = well_set_up();
    grew(&mut seen, "Log.Waits", -5.0);
    assert!(!judge(&seen).has_advice(), "a statistic that shrinks has not grown");
}
