//! Short runs against servers that others have written: what the drivers promise of any server.

use std::process::Command;

use crate::servers::{CalendarServer, MailServers, Postgres};
use serde_json::Value;

/// Runs a script that ends, with 20 users; gives the report. A driver that was starved by other work on this machine
/// makes a run not valid; whatever else goes wrong fails the test.
fn run(script: &str, targets: &[String], more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.script");
    std::fs::write(&path, script).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"));
    command.current_dir(folder.path()).args([
        "load",
        "test.script",
        "--users",
        "20",
        "--json",
        "--no-report",
    ]);
    command.args(["--duration", "500s", "--ramp-up", "1s", "--time-out", "240s", "--max-errors", "0"]);
    for target in targets {
        command.args(["--target", target]);
    }
    let output = command.args(more).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(report["failures"], Value::Array(Vec::new()), "{}", report["failures"]);
    assert!(report["objectives"].as_array().unwrap().iter().all(|objective| objective["reached"] == true));
    report
}

/// Right answers of one command.
fn answered(report: &Value, command: &str) -> u64 {
    let rows = report["operations"].as_array().unwrap().iter().filter(|row| row["command"] == command);
    rows.map(|row| row["answered"].as_u64().unwrap()).sum()
}

fn assert_delivered(report: &Value) {
    let deliveries = &report["deliveries"];
    let of = |name: &str| deliveries[name].as_u64().unwrap();
    // 20 users send one in each of 4 rounds.
    assert!(of("messages") == 80 && of("promised") >= 160, "{deliveries}");
    assert_eq!((of("delivered"), of("missing"), of("twice")), (of("promised"), 0, 0), "{deliveries}");
    assert_eq!((of("altered"), of("strayed"), of("unread")), (0, 0, 0), "{deliveries}");
    let findings = report["findings"].as_array().unwrap().iter().filter_map(Value::as_str);
    assert_eq!(findings.filter(|finding| finding.contains("all delivered once, byte for byte")).count(), 1);
}

const IMAP: &str = "**Variable: NumMailNotesPerUser = 5 (messages)**
**Variable: NormalMessageSize = 3000 (bytes)**
**Variable: IMAPHost = mail (host)**
**Variable: SMTPHost = mail (host)**
**Variable: ClientHost = lab (host)**
ImailLogin [IMAPHost] [user] word
ImailHelp
ImailListMailboxes
ImailOpenMailbox
BeginLoop
ImailGetLastEntries
ImailFetchOld NEXT 3
Pause 200-600
ImailDeleteEntry 1
SendSMTPMessage [NormalMessageSize] 72 3 [SMTPHost] lab.invalid [ClientHost] 1
Pause 200-600
ImailGetNewMail
Rewind 4
";

const POP3: &str = "**Variable: SMTPHost = mail (host)**
BeginLoop
SendSMTPMessage 30000 72 2
Pause 300-700
RetrievePOP3Mail [user] word -1 [SMTPHost]
Pause 300-700
Rewind 4
";

#[test]
fn postfix_and_dovecot_deliver_each_message_once() {
    let Some(servers) = MailServers::start() else { return };
    let ports = servers.plain;
    let smtp = format!("smtp://127.0.0.1:{}", ports.smtp);
    let report = run(IMAP, &[smtp, format!("imap://127.0.0.1:{}", ports.imap)], &[]);
    assert_delivered(&report);
    for command in
        ["ImailGetLastEntries", "ImailFetchOld", "ImailDeleteEntry", "SendSMTPMessage", "ImailGetNewMail"]
    {
        assert!(answered(&report, command) > 0, "{command}");
    }
    assert_eq!(report["run"]["server_name"], "Postfix + Dovecot");
    assert!(report["run"]["server_program"].as_str().unwrap().contains("dovecot"));
    assert!(report["summary"]["resident_bytes"].as_u64().unwrap() > 1_000_000);

    let lmtp = format!("lmtp://127.0.0.1:{}", ports.lmtp);
    let report = run(POP3, &[lmtp, format!("pop3://127.0.0.1:{}", ports.pop3)], &["--user-prefix", "pop"]);
    assert_delivered(&report);
    // In each round at least a login, a list and an end.
    assert!(answered(&report, "RetrievePOP3Mail") > 2 * answered(&report, "SendSMTPMessage"));
}

/// The same encrypted: by the protocols' own commands, and from the beginning.
#[test]
fn postfix_and_dovecot_deliver_encrypted() {
    let Some(servers) = MailServers::start() else { return };
    let authority = servers.certificate.to_str().unwrap();
    for (ending, ports, prefix) in [("+starttls", servers.plain, "by"), ("s", servers.encrypted, "from")] {
        let target = |protocol: &str, port: u16| format!("{protocol}{ending}://127.0.0.1:{port}");
        for (script, targets, prefix) in [
            (IMAP, [target("smtp", ports.smtp), target("imap", ports.imap)], prefix.to_owned()),
            (POP3, [target("lmtp", ports.lmtp), target("pop3", ports.pop3)], format!("{prefix}pop")),
        ] {
            let report = run(script, &targets, &["--ca", authority, "--user-prefix", &prefix]);
            assert_delivered(&report);
        }
    }
}

#[test]
fn radicale_keeps_events_as_they_are_written() {
    let Some(server) = CalendarServer::start() else { return };
    let script = "BeginLoop\nCal Appointment 1 1\nCal Invitation 2 1\nPause 1sec\nCalOpen\nCalRead 2\nCalUpdate\nCalRead 2\nPause 1sec\nCalDelete\nRewind 2";
    let target = format!("caldav://127.0.0.1:{}/{{user}}/calendar/", server.port);
    let report = run(script, &[target], &[]);
    for command in ["Cal Appointment", "Cal Invitation", "CalOpen", "CalRead", "CalUpdate", "CalDelete"] {
        assert!(answered(&report, command) > 0, "{command}");
    }
}

#[test]
fn postgresql_does_a_round_of_r5_mail() {
    let Some(server) = Postgres::start() else { return };
    let target = format!("postgres://lab@127.0.0.1:{}/postgres", server.port);
    let script = "ChangeTo MAIL\nOpen $Inbox\nPopulate 30 $Inbox 100 800\nBeginLoop\nOpen $Inbox\nEntries\nPause 300-600\nNavigate 3 NEXT CIRCULAR\nStamp 2\nSendMessage 1000 3 1\nCal Invitation 3 1\nAdd 1\nPause 300-600\nDelete 1\nCheckForNewMail\nRewind 3";
    let report = run(script, &[target], &["--messages-per-user", "20"]);
    for command in ["Open", "Entries", "Navigate", "Stamp", "SendMessage", "Cal Invitation", "Add", "Delete"]
    {
        assert!(answered(&report, command) > 0, "{command}");
    }
    assert_eq!(report["run"]["server_name"], "PostgreSQL");
}

#[test]
fn a_run_without_a_server_for_its_commands_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("test.script"), IMAP).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"));
    command.current_dir(folder.path()).args([
        "load",
        "test.script",
        "--target",
        "smtp://127.0.0.1:9",
        "--no-report",
    ]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr).lines().last().unwrap(),
        "test.script needs a server for IMAP: add --target imap://HOST:PORT"
    );
    let mut check = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"));
    let told = check.current_dir(folder.path()).args(["check", "test.script"]).output().unwrap();
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(
        told.contains("needs a server for sending mail: --target smtp://HOST:PORT or lmtp://HOST:PORT"),
        "{told}"
    );
}
