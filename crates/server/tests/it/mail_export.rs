//! A person's mail as files, by a running server and without one, and back again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use scrinium_fault::wait_until;
use serde_json::{Value, json};

use crate::common::{answer, beside};
use crate::imap::{IMAP, Talker};
use crate::mail_ports::{MailServer, SECRET};

const WITHIN: Duration = Duration::from_secs(60);
const MAILBOXES: [&str; 3] = ["INBOX", "Arbeit/2026", "Sent"];

fn fill(talker: &mut Talker) {
    talker.ask("CREATE Arbeit/2026");
    for number in 0..30 {
        let flags = ["", "\\Seen", "\\Flagged $Work", "\\Answered \\Seen $Forwarded"][number % 4];
        let (mailbox, body) = (MAILBOXES[number % 3], "From here on\r\n>From there\r\n".repeat(number % 5));
        let text = format!("From: a{number}@far.example\r\nSubject: number {number}.\r\n\r\n{body}");
        let date = "\"17-Jul-1996 02:44:25 -0700\"";
        talker.ask(&format!("APPEND {mailbox} ({flags}) {date} {{{}+}}\r\n{text}", text.len()));
    }
}

/// What a mail program sees of each mailbox, but for UIDs and the zones of dates: sorted, since copies need not be in the same order.
fn seen(mail: &MailServer, name: &str) -> BTreeMap<&'static str, Vec<String>> {
    let mut talker = Talker::logged_in(mail, name, SECRET);
    let mut of = |mailbox: &str| {
        talker.ask(&format!("EXAMINE {mailbox}"));
        let count = talker.ask("FETCH 1:* (UID)").len() - 1;
        let mut all = Vec::new();
        for number in 1..=count {
            let found = talker.ask(&format!("FETCH {number} (FLAGS RFC822.SIZE BODY.PEEK[])"));
            let flags = found[0].split("FLAGS (").nth(1).unwrap().split(')').next().unwrap();
            let mut flags: Vec<&str> = flags.split(' ').collect();
            flags.sort_unstable();
            assert!(talker.ask("SEARCH ON 17-Jul-1996")[0].split(' ').count() == count + 2);
            all.push(format!("{flags:?} {}", found[1]));
        }
        all.sort();
        all
    };
    MAILBOXES.iter().map(|mailbox| (*mailbox, of(mailbox))).collect()
}

fn command(mail: &MailServer, folder: &Path, arguments: &[&str]) -> Value {
    let none: [(&str, &str); 0] = [];
    let more = [arguments, &["--json"]].concat();
    answer(&beside(folder, none, &mail.server.address().to_string(), &more).output().unwrap())
}

#[test]
fn what_is_exported_comes_back_with_folders_flags_and_dates() {
    let folder = tempfile::tempdir().unwrap();
    let mut mail = MailServer::start_with(folder.path(), &IMAP);
    fill(&mut Talker::logged_in(&mail, "ada", SECRET));
    let expected = seen(&mail, "ada");
    assert!(expected.values().all(|all| all.len() == 10), "{expected:?}");
    let mut roots = Vec::new();
    for format in ["maildir", "mbox", "eml"] {
        let begun = command(&mail, folder.path(), &["export", format, "ada"]);
        let root = PathBuf::from(begun["folder"].as_str().unwrap());
        wait_until("the export", WITHIN, || root.join("scrinium-export.json").exists());
        let told = fs::read_to_string(root.join("scrinium-export.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&told).unwrap()["messages"], json!(30), "{told}");
        roots.push(root);
    }
    let mut client = mail.server.client();
    for (number, root) in roots.iter().enumerate() {
        let name = format!("copy{number}");
        let person = json!({"Form": "Person", "ShortName": name, "FullName": [format!("{name} Someone")], "password": SECRET});
        client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
        let path = root.display().to_string();
        let imported = command(&mail, folder.path(), &["import", "mail", &path, "--person", &name]);
        assert_eq!((&imported["added"], &imported["left_out"]), (&json!(30), &json!(0)), "{imported}");
        assert_eq!(seen(&mail, &name), expected, "{path}");
    }
    // Only the server's own user reads it.
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&roots[0]).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(mail.server.terminate(WITHIN).success());
    let alone = command(&mail, folder.path(), &["export", "mbox", "ada"]);
    assert_eq!((&alone["messages"], &alone["left_out"]), (&json!(30), &json!(0)), "{alone}");
    let alone = PathBuf::from(alone["folder"].as_str().unwrap());
    for name in ["Inbox.mbox", "Arbeit.sbd/2026.mbox"] {
        assert_eq!(fs::read(alone.join(name)).unwrap(), fs::read(roots[1].join(name)).unwrap(), "{name}");
    }
}
