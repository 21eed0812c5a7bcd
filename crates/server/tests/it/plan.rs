//! The planner through the binary: a file from nothing, a calibration that is as small as can be, a plan of it, a check.
//! What is asserted is what there is, never how fast anything was.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use scrinium_planner::answer::SETTINGS;
use serde_json::Value;

fn plan(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium"));
    command.current_dir(folder).stdin(Stdio::null()).env("XDG_DATA_HOME", folder.join("home"));
    command.arg("plan").args(arguments).output().unwrap()
}

fn texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn settings_that_are_advised_are_keys_of_the_configuration() {
    for key in SETTINGS {
        assert!(scrinium_server::config::keys().any(|known| known.name == key), "{key}");
    }
}

#[test]
fn a_newcomer_is_told_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let (code, example, talk) = texts(&plan(folder.path(), &["--example"]));
    assert!(code == 0 && talk.is_empty() && example.contains("[[users]]"), "{talk}");
    std::fs::write(folder.path().join("my.toml"), &example).unwrap();
    let (code, output, talk) = texts(&plan(folder.path(), &["my.toml"]));
    assert!(code == 2 && output.is_empty(), "{code} {output}");
    assert!(
        talk.contains("home/scrinium/calibration.json") && talk.contains("scrinium plan calibrate"),
        "{talk}"
    );
    std::fs::write(folder.path().join("wrong.toml"), example.replace("count = 1500", "count = -1")).unwrap();
    let (code, _, talk) = texts(&plan(folder.path(), &["wrong.toml"]));
    assert!(code == 2 && talk.contains("wrong.toml:10: -1 is not from 1"), "{talk}");
    let (code, _, talk) = texts(&plan(folder.path(), &["none.toml"]));
    assert!(code == 2 && talk.contains("scrinium plan --example > none.toml"), "{code} {talk}");
    std::fs::write(folder.path().join("wrong.json"), "{}").unwrap();
    let (code, _, talk) = texts(&plan(folder.path(), &["my.toml", "--calibration", "wrong.json"]));
    assert!(code == 2 && talk.contains("wrong.json: it is no calibration"), "{code} {talk}");
    let (code, help, _) = texts(&plan(folder.path(), &["--help"]));
    assert!(code == 0 && help.contains("calibrate") && help.contains("--what-if"), "{help}");
    assert_eq!(texts(&plan(folder.path(), &[])).0, 2);
}

#[test]
fn a_machine_is_calibrated_planned_with_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["--users", "8", "--speedup", "2000", "--rungs", "2", "--documents", "2", "--duration", "1s"];
    let calibrate = [&["calibrate", "--quick", "--report", "runs"][..], &small].concat();
    let (code, output, talk) = texts(&plan(folder.path(), &calibrate));
    assert_eq!(code, 0, "{output}\n{talk}");
    assert!(
        output.contains("What a request costs") && talk.contains("scrinium plan my.toml"),
        "{output}\n{talk}"
    );
    let kept = std::fs::read(folder.path().join("home/scrinium/calibration.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(kept["format"], "scrinium-calibration/1");
    let names: Vec<&str> =
        kept["points"].as_array().unwrap().iter().map(|point| point["name"].as_str().unwrap()).collect();
    for name in ["ladder-1", "ladder-2", "encrypted", "inbox", "rush-16", "connected-2", "class-send"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for point in kept["points"].as_array().unwrap() {
        let report = point["runs"][0]["report"].as_str().unwrap();
        assert!(folder.path().join("runs").join(report).exists(), "{report}");
    }

    let (_, example, _) = texts(&plan(folder.path(), &["--example"]));
    std::fs::write(folder.path().join("my.toml"), example).unwrap();
    let (code, output, talk) =
        texts(&plan(folder.path(), &["--json", "my.toml", "--what-if", "users=2x", "--report", "page"]));
    assert!(code == 0 || code == 99, "{talk}");
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(answer["plan"]["format"], "scrinium-plan/1");
    assert_eq!(answer["what_if"][0]["change"], "users=2x");
    for figure in answer["plan"]["figures"].as_array().unwrap() {
        assert!(figure["source"].as_str().is_some_and(|source| !source.is_empty()), "{figure}");
    }
    for file in ["plan.html", "plan.md", "plan.json"] {
        assert!(folder.path().join("page").join(file).metadata().unwrap().len() > 1000, "{file}");
    }

    let check = ["check", "--quick", "--times", "2", "--duration", "1s", "--report", "check", "--json"];
    let (code, output, talk) = texts(&plan(folder.path(), &check));
    assert!(code == 0 || code == 99, "{talk}");
    let check: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((check["users"].as_u64(), check["comparisons"].as_array().unwrap().len()), (Some(16), 4));
}
