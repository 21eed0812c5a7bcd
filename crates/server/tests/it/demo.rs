//! The demonstration from end to end: mail comes in by SMTP and goes out, and what it leaves starts a server.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn scrinium(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium"));
    command.current_dir(folder).stdin(Stdio::null()).env("SCRINIUM_MEMORY__BUDGET", "256 MB");
    command.args(arguments).output().unwrap()
}

#[test]
fn the_demonstration_gets_mail_sends_some_and_leaves_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let messages = folder.path().join("real");
    fs::create_dir(&messages).unwrap();
    for number in 0..3 {
        let text = format!(
            "From: Eve <eve@far.example>\nTo: somebody@far.example\nSubject: real {number}\n\
             Message-ID: <{number}@far.example>\n\n.\nText\n"
        );
        fs::write(messages.join(format!("{number}.eml")), text).unwrap();
    }
    let output = scrinium(folder.path(), &["demo", "--people", "3", "--seconds", "5", "--mail", "real"]);
    let told = String::from_utf8_lossy(&output.stderr);
    // A busy machine may make the laboratory's own figures invalid, which is another code.
    for expected in [
        "3 real messages imported",
        "Messages that came in by SMTP: 3 in ",
        "; 0 were refused.",
        "user0001@demo.example handed in a message by submission; it went out by SMTP to friend@elsewhere.example",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let page = fs::read_to_string(folder.path().join("demo/report/report.html")).unwrap();
    assert!(page.contains("it went out by SMTP to friend@elsewhere.example"), "the report shows the mail");
    if output.status.success() {
        assert!(told.contains("--mail-rcpt user0001@demo.example"), "{told}");
        let checked = scrinium(folder.path(), &["--config", "demo/scrinium.toml", "config", "check"]);
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}
