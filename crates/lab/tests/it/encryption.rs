//! The protocols of mail, encrypted: against a server whose certificate is made here, and against servers that do
//! otherwise than they should.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use crate::mail_server::{Faults, Identity, MailServer, Security};
use crate::scripted::{Hear, Scripted, Step, say, session};
use scrinium_lab::driver::{Failure, FailureKind, Letter, MessageNumber, Session};
use scrinium_lab::{Form, Message};
use serde_json::Value;

const PATIENT: Duration = Duration::from_secs(120);

const IMAP: &str = "ImailLogin\nImailHelp\nImailListMailboxes\nImailOpenMailbox\nBeginLoop\n\
    ImailGetLastEntries\nImailFetchOld NEXT 2\nImailDeleteEntry 1\nSendSMTPMessage 3000 72 2\nImailGetNewMail\n\
    Rewind 4\n";

const POP3: &str = "BeginLoop\nSendSMTPMessage 20000 72 2\nRetrievePOP3Mail [user] word -1\nRewind 4\n";

async fn load(folder: &Path, script: &str, targets: &[String], more: &[&str]) -> Output {
    std::fs::write(folder.join("test.script"), script).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"));
    command
        .current_dir(folder)
        .args(["load", "test.script", "--users", "5", "--json", "--no-report", "--user-password"])
        .args([crate::mail_server::PASSWORD, "--duration", "1h", "--ramp-up", "200ms", "--time-out", "120s"])
        .args(["--messages-per-user", "3"])
        .args(more);
    for target in targets {
        command.args(["--target", target]);
    }
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The way of a message by all four protocols, encrypted by their own commands and from the beginning.
#[tokio::test(flavor = "multi_thread")]
async fn messages_come_and_go_encrypted() {
    let identity = Identity::new();
    let folder = tempfile::tempdir().unwrap();
    identity.write(&folder.path().join("ca.pem"), &folder.path().join("key.pem"));
    for (security, ending) in [(Security::ByCommand, "+starttls"), (Security::FromTheBeginning, "s")] {
        let server = MailServer::start(security, Some(&identity), Faults::default()).await;
        let ways = [
            (IMAP, ("smtp", server.smtp), ("imap", server.imap)),
            (POP3, ("lmtp", server.lmtp), ("pop3", server.pop3)),
        ];
        for (script, sending, reading) in ways {
            let targets =
                [sending, reading].map(|(protocol, port)| format!("{protocol}{ending}://127.0.0.1:{port}"));
            let output = load(folder.path(), script, &targets, &["--ca", "ca.pem"]).await;
            let report = report(&output);
            assert_eq!(report["failures"], Value::Array(Vec::new()), "{targets:?}: {}", report["failures"]);
            let deliveries = &report["deliveries"];
            assert_eq!((&deliveries["messages"], &deliveries["promised"]), (&20.into(), &40.into()));
            for count in ["missing", "twice", "altered", "strayed", "unread", "uncertain"] {
                assert_eq!(deliveries[count], 0, "{targets:?}: {deliveries}");
            }
            assert!(report["run"]["server_name"].as_str().unwrap().contains("Fake"));
        }
        // What was read was read over IMAP: preparation, users and the check of deliveries have logged in.
        assert!(server.logins() >= 15, "{}", server.logins());
    }
}

/// Messages are read one by one and marked, and a session ends as it should, as Server.Load's commands have it.
#[tokio::test(flavor = "multi_thread")]
async fn an_imap_session_is_ended_and_begun_again() {
    let script = "BeginLoop\nImailLogin host mail[#] secret\nImailOpenMailbox INBOX\nImailGetLastEntries\n\
        ImailFetchEntry NEXT_UNSEEN\nImailFetchEntry\nImailSetSeen FIRST\nImailSetSeen NEXT\nImailGetNewMail 2\n\
        ImailCloseMailbox\nImailLogout\nRewind 3\n";
    let folder = tempfile::tempdir().unwrap();
    let server = MailServer::start(Security::Plain, None, Faults::default()).await;
    let targets = [format!("imap://127.0.0.1:{}", server.imap)];
    let report = report(&load(folder.path(), script, &targets, &["--no-check-deliveries"]).await);
    assert_eq!(report["failures"], Value::Array(Vec::new()), "{}", report["failures"]);
    let operations = report["operations"].as_array().unwrap();
    for (command, count) in [
        ("ImailLogin", 15),
        ("ImailFetchEntry", 30),
        ("ImailSetSeen", 30),
        ("ImailCloseMailbox", 15),
        ("ImailLogout", 15),
    ] {
        let found = operations.iter().find(|operation| operation["command"] == command);
        assert_eq!(
            found.and_then(|operation| operation["answered"].as_u64()),
            Some(count),
            "{command}: {found:?}"
        );
    }
    assert_eq!(server.seen(), 10, "the first two messages of five people");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_certificate_that_fits_is_believed() {
    let identity = Identity::new();
    let folder = tempfile::tempdir().unwrap();
    identity.write(&folder.path().join("ca.pem"), &folder.path().join("key.pem"));
    Identity::new().write(&folder.path().join("other.pem"), &folder.path().join("other-key.pem"));
    std::fs::write(folder.path().join("empty.pem"), "nothing\n").unwrap();
    let server = MailServer::start(Security::FromTheBeginning, Some(&identity), Faults::default()).await;
    let cases: [(&str, &[&str], i32, &str); 5] = [
        ("127.0.0.1", &[], 1, "--ca FILE names certificates to believe"),
        ("127.0.0.1", &["--ca", "other.pem"], 1, "--ca FILE names certificates to believe"),
        ("localhost", &["--ca", "ca.pem"], 1, "not valid for name"),
        ("127.0.0.1", &["--ca", "empty.pem"], 2, "--ca empty.pem: there is no certificate in it"),
        ("127.0.0.1", &["--ca", "nowhere.pem"], 2, "--ca nowhere.pem"),
    ];
    for (host, more, code, words) in cases {
        let targets = [format!("smtps://{host}:{}", server.smtp), format!("imaps://{host}:{}", server.imap)];
        let output = load(folder.path(), IMAP, &targets, more).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && said.contains(words), "{host} {more:?}: {said}");
    }
    assert_eq!(server.logins(), 0);
}

fn letter() -> Letter {
    let message = Message {
        id: "lab-user0002-1".to_owned(),
        number: MessageNumber { run: 7, sender: 2, sequence: 1 },
        form: Form::Memo,
        from: "user0002".to_owned(),
        recipients: vec!["user0001".to_owned()],
        subject: "the-subject".to_owned(),
        body: "figures\n".to_owned().into(),
        attachment_bytes: 0,
        posted: 1_800_000_000,
        delivered: false,
    };
    Letter::of(&message, "lab.invalid")
}

/// What a client makes of a server that answers to its wish for encryption so; and what the server has heard.
async fn after_wish(protocol: &str, steps: &[Step], answer: &str, authority: &Path) -> (Failure, String) {
    let mut steps = steps.to_vec();
    steps.push(say(answer));
    steps.push(Hear("what never comes"));
    let server = Scripted::start(steps).await;
    let mut session =
        session(format!("{protocol}+starttls://127.0.0.1:{}", server.port), PATIENT, Some(authority));
    let protocols = session.protocols().unwrap();
    let failure = match protocol {
        "imap" => protocols.imap.as_mut().unwrap().log_in().await.unwrap_err(),
        "pop3" => protocols.pop3.as_mut().unwrap().log_in().await.unwrap_err(),
        _ => protocols.sender.as_ref().unwrap().send(&letter()).await.unwrap_err(),
    };
    (failure, server.heard())
}

/// Nothing goes over a connection that was to be encrypted and is not, and nothing that came before counts after.
#[tokio::test]
async fn a_server_that_does_not_encrypt_hears_no_password_and_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.pem");
    Identity::new().write(&authority, &folder.path().join("key.pem"));
    let hello = "250-mail.invalid\r\n250 AUTH PLAIN\r\n";
    let smtp = |word| vec![say("220 x\r\n"), Hear(word), say(hello), Hear("STARTTLS\r\n")];
    let cases = [
        (
            "smtp",
            smtp("EHLO lab.invalid\r\n"),
            "502 no\r\n",
            "220 go\r\n250 more\r\n",
            FailureKind::Status(502),
        ),
        (
            "lmtp",
            smtp("LHLO lab.invalid\r\n"),
            "502 no\r\n",
            "220 go\r\n250 more\r\n",
            FailureKind::Status(502),
        ),
        (
            "imap",
            vec![say("* OK x\r\n"), Hear("L1 STARTTLS\r\n")],
            "L1 BAD no\r\n",
            "L1 OK go\r\nL2 OK more\r\n",
            FailureKind::Refused,
        ),
        (
            "pop3",
            vec![say("+OK x\r\n"), Hear("STLS\r\n")],
            "-ERR no\r\n",
            "+OK go\r\n+OK more\r\n",
            FailureKind::Refused,
        ),
    ];
    for (protocol, steps, refusal, spoken_on, kind) in cases {
        let (refused, heard) = after_wish(protocol, &steps, refusal, &authority).await;
        assert_eq!(refused.kind, kind, "{protocol}: {refused}");
        let (early, heard_too) = after_wish(protocol, &steps, spoken_on, &authority).await;
        assert_eq!(early.kind, FailureKind::WrongAnswer, "{protocol}: {early}");
        assert!(early.detail.contains("before the connection was encrypted"), "{early}");
        for heard in [heard, heard_too] {
            let secret = ["LOGIN", "AUTH", "USER", "PASS", "MAIL", "the-subject"];
            assert!(!secret.iter().any(|word| heard.contains(word)), "{protocol}: {heard}");
        }
    }
}
