//! `scrinium formula`, as transcripts: `golden/formula.txt` holds commands and what they say. Lines of standard
//! error begin with `!`, and exit codes other than 0 stand in brackets. `UPDATE=1` writes what is said now.

use std::fmt::Write;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// What the commands read.
const FILES: [(&str, &str); 5] = [
    ("inbox.formula", "REM \"what came in\";\nSELECT Form = \"Memo\" & DeliveredDate != \"\"\n"),
    ("wrong.formula", "SELECT Form = \"Memo\" &\n\tStatus ! \"Closed\"\n"),
    (
        "memo.json",
        r#"{"_id": "memo-1", "_rev": "1-a", "Form": "Memo", "From": "CN=Ann Smith/O=Acme", "$REF": "memo-0",
            "SendTo": ["CN=Ben Brown/O=Acme", "carl@acme.com"], "PostedDate": "2026-11-20T23:30:00Z", "Size": 1200,
            "_attachments": {"plan.pdf": {"content_type": "application/pdf", "length": 5, "stub": true}}}"#,
    ),
    ("list.json", "[1, 2]"),
    ("broken.json", "{\"Form\":\n  Memo}"),
];

/// The words of a command line: blanks separate them, except within single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    for (place, part) in line.split('\'').enumerate() {
        if place % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// What a command says. What stands behind `<` is its standard input.
fn transcript(line: &str, folder: &Path) -> String {
    let redirected = line.rsplit_once(" < ").filter(|(_, file)| !file.contains('\''));
    let (command, input) = redirected.unwrap_or((line, ""));
    let input = if input.is_empty() { Stdio::null() } else { File::open(folder.join(input)).unwrap().into() };
    let output = Command::new(env!("CARGO_BIN_EXE_scrinium"))
        .args(&words(command)[1..])
        .current_dir(folder)
        .stdin(input)
        .env_clear()
        .output()
        .unwrap();
    let mut said = format!("$ {line}\n{}", String::from_utf8(output.stdout).unwrap());
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        writeln!(said, "{}", format!("! {line}").trim_end()).unwrap();
    }
    match output.status.code() {
        Some(0) => {}
        code => writeln!(said, "[{}]", code.unwrap_or(-1)).unwrap(),
    }
    said
}

#[test]
fn formulas_are_checked_evaluated_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/formula.txt");
    let golden = std::fs::read_to_string(&path).unwrap();
    let commands = golden.lines().filter_map(|line| line.strip_prefix("$ "));
    let found: Vec<String> = commands.map(|command| transcript(command, folder.path())).collect();
    let found = found.join("\n");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    for (found, golden) in found.lines().zip(golden.lines()) {
        assert_eq!(found, golden, "run with UPDATE=1 if what is said now is better");
    }
    assert_eq!(found.lines().count(), golden.lines().count());
}
