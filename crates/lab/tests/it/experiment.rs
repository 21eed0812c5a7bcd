//! Experiments as people run them: whole, against a server in memory; what is wrong with a file; going on after a break.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use scrinium_lab::experiment::library::Experiment;
use scrinium_lab_report::experiment::ExperimentReport;
use serde_json::Value;

fn golden_path(name: &str) -> String {
    format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Compares with a golden file; `UPDATE_GOLDEN=1` writes it again.
fn assert_golden(name: &str, now: &str) {
    let path = golden_path(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, now).unwrap();
    }
    assert_eq!(now, std::fs::read_to_string(&path).unwrap(), "{name}");
}

fn lab(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"));
    command.current_dir(folder).args(arguments).output().unwrap()
}

/// The server in memory that is an example of this crate; cargo builds it with the tests.
fn fake_server() -> String {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_scrinium-lab"));
    let example = program.with_file_name("examples").join("in_memory_server");
    assert!(example.exists(), "{} is not built", example.display());
    format!("{} 127.0.0.1:{{port}}", example.display())
}

/// Two factors, a database that is filled, and users at work, in a second or so.
const SMALL: &str = r#"
title = "Small"
hypothesis = "It runs."
source = "Nobody, 2000"
repeats = { quick = 2, full = 2 }

[parameters]
documents = { quick = 40, full = 80 }

[[factor]]
name = "kind"
title = "Kind"
levels = [{ label = "plain", settings = { "log.style" = "circular" } }, { label = "full only", only_full = true }]

[[factor]]
name = "users"
title = "Users"
quick = [2, 4]
full = [2, 4, 8]

[[step]]
start = {}

[[step]]
fill.database = "filled"
fill.documents = "$documents"
fill.body_bytes = 100

[[step]]
name = "work"
load.workload = "R5Mail"
load.users = "$users"
load.speedup = 900
load.ramp_up = "1s"
load.duration = "1s"
load.messages_per_user = 5

[[column]]
title = "Documents"
value = "fill.documents"

[[column]]
title = "Average response"
value = "work.mean_ms"
unit = "milliseconds"

[[column]]
title = "Per user"
value = "work.transactions_per_minute"
per = "$users"

[[figure]]
column = "Average response"
rows = "users"
published.title = "Theirs"
published.columns = ["Users", "s"]
published.rows = [["100", ".04"], ["350", "14.49"]]

[[objective]]
title = "Everything is filled"
column = "Documents"
of = { users = "last" }
at_least = 40
"#;

fn run(folder: &Path, more: &[&str]) -> Output {
    let server = fake_server();
    let arguments = [
        &[
            "experiment",
            "small.toml",
            "--quick",
            "--json",
            "--server-command",
            &server,
            "--server-password",
            "secret",
        ],
        more,
    ];
    lab(folder, &arguments.concat())
}

fn report_of(output: &Output) -> ExperimentReport {
    let talk = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{talk}"))
}

#[test]
fn an_experiment_measures_every_cell_and_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let output = run(folder.path(), &["--report", "out"]);
    let report = report_of(&output);
    let labels: Vec<&[String]> = report.cells.iter().map(|cell| cell.labels.as_slice()).collect();
    assert_eq!(labels, [["plain", "2"], ["plain", "4"]]);
    for cell in &report.cells {
        assert!(cell.failed.is_none(), "{:?}", cell.failed);
        let documents = cell.values[0].unwrap();
        // Of the two runs those count that are valid; if none is, both are shown.
        let kept = (1..=2).map(|repeat| {
            let path = folder.path().join(format!("out/cells/plain-{}-{repeat}.json", cell.labels[1]));
            let run: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            run["invalid"].as_array().unwrap().is_empty()
        });
        let counted = match kept.filter(|valid| *valid).count() {
            0 => 2,
            valid => u32::try_from(valid).unwrap(),
        };
        assert_eq!((documents.mean, documents.low, documents.runs), (40.0, 40.0, counted));
        assert!(cell.values[1].unwrap().mean > 0.0 && cell.values[2].unwrap().mean > 0.0);
        assert_eq!(cell.settings["log.style"], "circular");
    }
    assert_eq!((report.server_name.as_str(), report.figures[0].rows.len()), ("Fake", 2));
    // A busy machine may starve the driver: such cells are no part of the findings.
    if report.is_whole() {
        assert!(
            report.findings[0].starts_with("Average response, from 2 to 4 (Users): "),
            "{:?}",
            report.findings
        );
        assert!(report.findings[0].ends_with("The source, from 100 to 350: .04 to 14.49 (\u{d7}362)."));
    }
    assert!(matches!(output.status.code(), Some(0 | 99)));
    pages_are_whole(folder.path(), &report);
    assert!(!folder.path().join("out/data").exists(), "data of servers is taken away");
    lost_results_are_measured_again(folder.path());
    results_are_judged_again(folder.path(), &report);
    experiments_are_compared_and_listed(folder.path(), &report);
}

fn pages_are_whole(folder: &Path, report: &ExperimentReport) {
    for name in ["experiment.json", "experiment.html", "experiment.md", "experiment.csv"] {
        assert!(folder.join("out").join(name).metadata().unwrap().len() > 100, "{name}");
    }
    let page = std::fs::read_to_string(folder.join("out/experiment.html")).unwrap();
    for outside in ["<script", "<link", "<img", "@import", "url(", "src=", "href=\"http"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(!page.contains("#FE0") && page.contains("14.49"));
    let links: Vec<&str> = page
        .split("<a href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next().filter(|link| !link.starts_with('#')))
        .collect();
    assert!(!links.is_empty());
    for link in links {
        assert!(folder.join("out").join(link).is_file(), "the page links {link}, which is not there");
    }
    if report.is_whole() {
        assert!(page.contains("<svg"), "a line through both cells");
        let picture = std::fs::read_to_string(folder.join("out/average-response.svg")).unwrap();
        assert!(picture.starts_with("<svg xmlns=") && picture.contains(">Small: Average response<"));
        assert!(!picture.contains("#FE0") && !picture.contains("href"), "{picture}");
        let mut reader = quick_xml::Reader::from_str(&picture);
        while !matches!(reader.read_event().unwrap(), quick_xml::events::Event::Eof) {}
    }
}

/// A result that is lost is measured again, and no other.
fn lost_results_are_measured_again(folder: &Path) {
    let cells = folder.join("out/cells");
    let before = std::fs::read(cells.join("plain-2-1.json")).unwrap();
    std::fs::remove_file(cells.join("plain-4-2.json")).unwrap();
    let refused = run(folder, &["--report", "out"]);
    assert_eq!(refused.status.code(), Some(2));
    let again = run(folder, &["--report", "out", "--resume"]);
    assert_eq!(report_of(&again).cells.len(), 2);
    assert_eq!(std::fs::read(cells.join("plain-2-1.json")).unwrap(), before);
    assert!(cells.join("plain-4-2.json").exists());
    let other = run(folder, &["--report", "out", "--resume", "--set", "documents=41"]);
    let said = String::from_utf8_lossy(&other.stderr);
    assert!(other.status.code() == Some(2) && said.contains("(other parameters)"), "{said}");
}

/// What is said of the results may change, and they are judged again.
fn results_are_judged_again(folder: &Path, report: &ExperimentReport) {
    let stricter = SMALL.replace("It runs.", "It runs well.").replace("at_least = 40", "at_least = 41");
    std::fs::write(folder.join("small.toml"), stricter).unwrap();
    let judged = run(folder, &["--report", "out", "--resume"]);
    if report.is_whole() {
        assert_eq!(report.objectives[0].held, Some(true));
        assert_eq!(
            report_of(&judged).objectives[0].sentence(),
            "Everything is filled: missed. Documents: 40 (plain, 4), asked: at least 41."
        );
        assert_eq!(judged.status.code(), Some(99));
    }
}

/// Two experiments are compared cell by cell; a page links all that lie in a folder.
fn experiments_are_compared_and_listed(folder: &Path, report: &ExperimentReport) {
    let compared = lab(folder, &["compare", "out", "out", "--json"]);
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert!(
        compared["metrics"]
            .as_array()
            .unwrap()
            .iter()
            .all(|metric| metric["values"][0] == metric["values"][1])
    );
    let index = lab(folder, &["experiments", "--index", "."]);
    assert!(index.status.success());
    let written = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(written("index.html").contains("href=\"out/experiment.html\""));
    assert!(written("index.md").contains("(out/experiment.md)"));

    // What was measured on other hardware says so itself.
    let cpu = &report.machine.cpu_model;
    assert_eq!(written("index.md").matches(cpu).count(), 1, "{}", written("index.md"));
    let elsewhere = written("out/experiment.json").replace(cpu.as_str(), "Another Processor");
    std::fs::create_dir(folder.join("elsewhere")).unwrap();
    std::fs::write(folder.join("elsewhere/experiment.json"), elsewhere).unwrap();
    assert!(lab(folder, &["experiments", "--index", "."]).status.success());
    let several = written("index.md");
    let lines_with = |text: &str| several.lines().filter(|line| line.contains(text)).count();
    assert_eq!((lines_with(cpu), lines_with("Another Processor")), (1, 1), "{several}");
    assert!(written("index.html").contains("more than one machine"));

    // What is made from the results is made again, with links to the reports of runs that are there.
    assert!(written("out/experiment.html").contains("href=\"cells/plain-2-1/work/report.html\""));
    let page = written("elsewhere/experiment.html");
    assert!(page.contains("Another Processor") && !page.contains("href=\"cells/"), "{page}");
    assert!(written("elsewhere/experiment.md").contains("Another Processor"));
}

/// The key of results was the text that a compiler made of the definition.
#[test]
fn results_of_an_earlier_version_are_not_taken_for_ours() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    std::fs::create_dir_all(folder.path().join("out/cells")).unwrap();
    std::fs::write(folder.path().join("out/experiment.print"), "small quick\n").unwrap();
    for (more, word) in [(&["--resume"][..], "an earlier version"), (&[], "holds results already")] {
        let output = run(folder.path(), &[&["--report", "out"], more].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(word), "{said}");
    }
}

/// Processes with a text in their command lines.
fn processes_with(text: &str) -> Vec<String> {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = folders.filter_map(|folder| std::fs::read(folder.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| line.contains(text)).collect()
}

/// An interrupted one ended as one does that failed, so that scripts went on with the next; its probe went on, too.
#[test]
fn an_interrupted_experiment_ends_with_130_and_leaves_nobody_at_work() {
    let folder = tempfile::tempdir().unwrap();
    // Another of these tests may be at work on the machine.
    let mark = format!("none/of-{}", std::process::id());
    let probe = format!("load.probe = {{ interval = \"100ms\", database = \"filled\", view = \"{mark}\" }}");
    let long = SMALL.replace("load.duration = \"1s\"", &format!("load.duration = \"10m\"\n{probe}"));
    std::fs::write(folder.path().join("small.toml"), long).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"))
        .current_dir(folder.path())
        .args(["experiment", "small.toml", "--quick", "--server-password", "secret", "--report", "out"])
        .args(["--server-command", &fake_server()])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let within_a_minute = |wanted: usize| {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let there = processes_with(&mark);
            if there.len() == wanted {
                return;
            }
            assert!(Instant::now() < end, "{wanted} wanted: {there:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // The load that has it as an option, and its probe.
    within_a_minute(2);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let code = child.wait().unwrap().code();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("--resume --report"), "{said}");
    within_a_minute(0);
}

#[test]
fn a_server_that_does_not_start_is_told_with_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let start = |command: &str| {
        let arguments = [
            "experiment",
            "small.toml",
            "--quick",
            "--server-command",
            command,
            "--report",
            &format!("to-{}", command.len()),
        ];
        let output = lab(folder.path(), &arguments);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = start("ls /no/such/folder");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("ended while it was starting") && said.contains("No such file"), "{said}");
}

/// One cell without a load, so that nothing but a failure can make a run not count.
const FILLED: &str = r#"
title = "Filled"
hypothesis = "It is filled."
source = "Nobody, 2000"
repeats = { quick = 2, full = 2 }

[[factor]]
name = "documents"
title = "Documents asked for"
quick = [40]
full = [80]

[[step]]
start = {}

[[step]]
fill.database = "filled"
fill.documents = "$documents"
fill.body_bytes = 100

[[column]]
title = "Documents"
value = "fill.documents"
"#;

/// A run that failed next to one that did not was told nowhere, and the exit code was 0.
#[test]
fn a_run_that_failed_beside_another_is_told_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), FILLED).unwrap();
    let starts = folder.path().join("starts");
    let script = format!(
        "echo >> {starts}\nif [ $(wc -l < {starts}) -eq 2 ]; then echo no luck >&2; exit 3; fi\nexec {}\n",
        fake_server().replace("{port}", "$1"),
        starts = starts.display(),
    );
    std::fs::write(folder.path().join("second-start-fails"), script).unwrap();
    let command = format!("sh {} {{port}}", folder.path().join("second-start-fails").display());
    let run = |more: &[&str]| {
        let base = [
            "experiment",
            "small.toml",
            "--quick",
            "--json",
            "--report",
            "out",
            "--server-command",
            &command,
        ];
        lab(folder.path(), &[&base[..], &["--server-password", "secret"], more].concat())
    };
    let output = run(&[]);
    let cell = report_of(&output).cells.remove(0);
    assert_eq!(output.status.code(), Some(1), "{cell:?}");
    assert_eq!((cell.failed, cell.values[0].unwrap().runs, cell.reports.len()), (None, 1, 1));
    let [left_out] = cell.left_out.as_slice() else { panic!("{:?}", cell.left_out) };
    assert!(left_out.run == 2 && left_out.failed && left_out.why.contains("no luck"), "{left_out:?}");
    let told = "Run 2 of 40 could not be measured and is left out: ";
    assert!(String::from_utf8_lossy(&output.stderr).contains(told), "{output:?}");
    let written = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    assert!(written("experiment.md").contains(told) && written("experiment.html").contains(told));
    assert!(!written("experiment.html").contains("every run is valid"));
    assert!(lab(folder.path(), &["experiments", "--index", "."]).status.success());
    let index = std::fs::read_to_string(folder.path().join("index.md")).unwrap();
    assert!(
        index.contains("valid but for 1 run") && index.contains("in 0 of 1 every run is valid"),
        "{index}"
    );

    let again = run(&["--resume"]);
    let cell = report_of(&again).cells.remove(0);
    assert_eq!(again.status.code(), Some(0));
    assert_eq!((cell.left_out, cell.values[0].unwrap().runs), (Vec::new(), 2));
}

/// Where no terminal is, a run of 48 minutes wrote its first line at its end.
#[test]
fn a_long_step_is_told_of_while_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let pausing =
        FILLED.replace("quick = 2", "quick = 1").replace("[[column]]", "[[step]]\npause = 12\n\n[[column]]");
    std::fs::write(folder.path().join("small.toml"), pausing).unwrap();
    let command = fake_server();
    let base = ["experiment", "small.toml", "--quick", "--report", "out", "--server-password", "secret"];
    let output = lab(folder.path(), &[&base[..], &["--server-command", &command]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("experiment: 40 #1 \u{b7} pause \u{b7} about "),
        "{said}"
    );
}

#[test]
fn the_command_line_names_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let said = |arguments: &[&str]| {
        let output = lab(folder.path(), arguments);
        let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        (output.status.code(), String::from_utf8_lossy(&both).into_owned())
    };
    let base = ["experiment", "small.toml", "--quick", "--dry-run"];
    let (code, text) = said(&base);
    assert!(
        code == Some(0) && text.contains("plain, 4") && text.contains("2 cells, 2 runs of each"),
        "{text}"
    );
    let (code, text) = said(&[&base[..], &["--set", "users=3,5,7", "--only", "5"]].concat());
    assert!(code == Some(0) && text.contains("plain, 5") && text.contains("\n1 cell, "), "{text}");
    for (wrong, word) in [
        (["--set", "user=3"], "documents, kind, users"),
        (["--set", "kind=fast"], "plain, full only"),
        (["--only", "9"], "plain, 2, 4"),
    ] {
        let (code, text) = said(&[&base[..], &wrong].concat());
        assert!(code == Some(2) && text.contains(word), "{text}");
    }
    let (code, text) = said(&["experiment", "no-such"]);
    assert!(code == Some(2) && text.contains("transaction-logging"), "{text}");
    let (code, text) = said(&["experiments"]);
    assert!(code == Some(0) && text.contains("Transaction logging") && !text.contains("errors"), "{text}");
}

#[test]
fn every_experiment_of_the_folder_is_carried_and_right() {
    let folder = format!("{}/../../experiments", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    // Tests run in the crate's folder, which has no folder of experiments: these are the carried ones.
    assert_eq!(Experiment::names(), files);
    for name in files {
        Experiment::find(&name).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn turning(text: &str) -> String {
    text.replace("quick = [2, 4]", "turns = { quick = 2, full = 2 }\nquick = [2, 4]")
}

/// Two starts of a server may differ by more than its levels do.
#[test]
fn levels_that_take_turns_are_measured_on_the_same_server() {
    let folder = tempfile::tempdir().unwrap();
    let text = turning(SMALL).replace("repeats = { quick = 2", "repeats = { quick = 1");
    std::fs::write(folder.path().join("small.toml"), text).unwrap();
    // Filling the same database again would fail: it is filled once.
    let report = report_of(&run(folder.path(), &["--report", "out"]));
    assert_eq!(report.repeats, 2);
    for cell in &report.cells {
        assert!(cell.failed.is_none(), "{:?}", cell.failed);
        assert_eq!((cell.values[0].unwrap().mean, cell.reports.len()), (40.0, 2));
    }
    let ended = |run: &str| {
        let report = folder.path().join(format!("out/cells/plain-{run}/work/report.json"));
        report.metadata().and_then(|metadata| metadata.modified()).unwrap()
    };
    let mut order = ["2-1", "2-2", "4-1", "4-2"];
    order.sort_by_key(|run| ended(run));
    assert_eq!(order, ["2-1", "4-1", "4-2", "2-2"], "forth and back");

    let lost = folder.path().join("out/cells/plain-4-2.json");
    std::fs::remove_file(&lost).unwrap();
    let before = (ended("2-1"), ended("4-1"), ended("2-2"));
    assert_eq!(report_of(&run(folder.path(), &["--report", "out", "--resume"])).cells.len(), 2);
    assert!(lost.exists());
    let after = (ended("2-1"), ended("4-1"), ended("2-2"));
    assert!(after.0 == before.0 && after.1 == before.1, "a turn that is whole is not measured again");
    assert!(after.2 > before.2, "a turn is measured whole: its levels are compared on one server");
}

/// Each mistake with what is said about it.
#[test]
fn mistakes_are_told_with_their_lines() {
    let mistakes = [
        ("a key that there is not", SMALL.replace("hypothesis =", "hypotesis =")),
        ("no TOML", SMALL.replace("quick = [2, 4]", "quick = [2, 4")),
        ("a step of an unknown kind", SMALL.replace("start = {}", "begin = {}")),
        ("a step that is two things", SMALL.replace("start = {}", "start = {}\nkill = true")),
        ("a step that is nothing", SMALL.replace("start = {}", "name = \"idle\"")),
        ("an option that a load has not", SMALL.replace("load.users", "load.people")),
        ("a list where a number is", SMALL.replace("load.speedup = 900", "load.speedup = [900]")),
        ("a name without a value", SMALL.replace("\"$documents\"", "\"$document\"")),
        ("a column of no step", SMALL.replace("value = \"work.mean_ms\"", "value = \"load.mean_ms\"")),
        ("a figure of no column", SMALL.replace("column = \"Average response\"", "column = \"Response\"")),
        ("a figure of no factor", SMALL.replace("rows = \"users\"", "rows = \"people\"")),
        ("a published row that is short", SMALL.replace("[\"350\", \"14.49\"]", "[\"350\"]")),
        ("levels and values", SMALL.replace("title = \"Kind\"", "title = \"Kind\"\nquick = [1]")),
        ("a factor without a quick form", SMALL.replace("quick = [2, 4]\n", "")),
        ("an objective of no column", SMALL.replace("column = \"Documents\"", "column = \"Papers\"")),
        ("an objective of no factor", SMALL.replace("of = { users", "of = { people")),
        ("an objective of no level", SMALL.replace("= \"last\" }", "= 3 }")),
        ("an objective without a limit", SMALL.replace("at_least = 40\n", "")),
        ("a unit that there is not", SMALL.replace("unit = \"milliseconds\"", "unit = \"ms\"")),
        (
            "turns of settings",
            SMALL.replace("title = \"Kind\"", "title = \"Kind\"\nturns = { quick = 1, full = 1 }"),
        ),
        (
            "turns of what the servers start with",
            turning(SMALL).replace("start = {}", "start.settings = { \"log.size\" = \"$users\" }"),
        ),
        (
            "turns of a value that what the servers start with is made of",
            turning(SMALL).replace("start = {}", "start.settings = { \"log.size\" = \"$size\" }").replace(
                "[parameters]",
                "[parameters]\nsize = { quick = \"$users\", full = \"${users}00\" }",
            ),
        ),
    ];
    let mut told = String::new();
    for (what, text) in mistakes {
        assert_ne!(text, SMALL, "{what}");
        let error = Experiment::parse("small", "small.toml", &text).unwrap_err();
        told.push_str(&format!("{what}\n  {}\n", error.to_string().replace('\n', "\n  ")));
    }
    assert_golden("experiment-errors.txt", &told);
}

/// The source's probe was an end user of the database that all users shared, and not of anybody's mail file.
#[test]
fn the_probe_of_the_buffer_pool_is_a_user_of_the_shared_database() {
    let folder = tempfile::tempdir().unwrap();
    let server = fake_server();
    let arguments = ["experiment", "buffer-pool", "--quick", "--json", "--server-command", &server];
    let smaller = ["--server-password", "secret", "--report", "out", "--only", "none", "--set", "users=2"];
    let shorter = ["--set", "ramp_up=1s", "--set", "duration=3s", "--set", "messages=5"];
    let output = lab(folder.path(), &[&arguments[..], &smaller, &shorter].concat());
    let report = report_of(&output);
    let cell = &report.cells[0];
    assert!(cell.failed.is_none() && cell.labels == ["none", "2"], "{cell:?}");
    let column = report.columns.iter().position(|column| column.title == "Probe response").unwrap();
    assert!(cell.values[column].is_some_and(|probe| probe.mean > 0.0), "{cell:?}");
    let load = folder.path().join("out").join(&cell.reports[0]).join("load/report.json");
    let load: Value = serde_json::from_slice(&std::fs::read(load).unwrap()).unwrap();
    let probe = &load["probe"];
    assert_eq!((&probe["database"], &probe["view"]), (&"discussion".into(), &"lab/topics".into()));
    assert!(
        probe["summary"]["database"]["rounds"].as_u64() > probe["summary"]["database"]["failed"].as_u64()
    );
}
