//! What a message is by IMAP, no matter who has written it, and in whose name it is read.

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use scrinium_fault::wait_until;
use serde_json::{Value, json};

use crate::common::{Client, SMALL, Server, answer, beside};
use crate::imap::{IMAP, Talker};
use crate::mail_ports::{MailServer, PORTS, SECRET};

const WITHIN: Duration = Duration::from_secs(60);

fn change(client: &mut Client, path: &str, change: impl FnOnce(&mut Value)) {
    let mut document = client.get(path).unwrap().expect(200).value();
    change(&mut document);
    client.json("PUT", path, &document).unwrap().expect(201);
}

fn put(client: &mut Client, id: &str, memo: &Value) {
    client.json("PUT", &format!("/mail%2Fada/{id}?folder=Inbox"), memo).unwrap().expect(201);
}

/// The UID and the bytes of a message with this subject, as they are told in one answer.
fn fetched(mail: &MailServer, subject: &str) -> (String, String) {
    let mut talker = Talker::logged_in(mail, "ada", SECRET);
    talker.ask("SELECT INBOX");
    let found = talker.ask(&format!("UID SEARCH SUBJECT \"{subject}\""));
    let uid = found[0].split(' ').nth(2).unwrap_or_default().to_owned();
    let sizes = talker.ask(&format!("UID FETCH {uid} (RFC822.SIZE)"));
    let whole = talker.ask(&format!("UID FETCH {uid} (BODY.PEEK[])"));
    assert!(sizes[0].contains(&format!("RFC822.SIZE {}", whole[1].len())), "{sizes:?} {whole:?}");
    (uid, whole[1].clone())
}

#[test]
fn a_memo_without_a_source_is_the_same_message_for_ever_and_an_edited_one_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut mail = MailServer::start_with(folder.path(), &IMAP);
    Talker::logged_in(&mail, "ada", SECRET);
    let mut client = mail.server.client();
    let memo = json!({"Form": "Memo", "Subject": "made here", "From": "ada", "SendTo": ["bob"], "Body": "Größe\n",
        "_attachments": {"note.txt": {"content_type": "text/plain", "data": STANDARD.encode("a note")}}});
    put(&mut client, "made", &memo);
    let first = fetched(&mail, "made here");
    assert!(
        first.1.contains("bob Someone") && first.1.contains("Content-Disposition: attachment"),
        "{first:?}"
    );
    // Others change the directory, the flags, and what is no part of the message; and it is another process, with another name.
    change(&mut client, "/directory/person:bob", |bob| bob["FullName"] = json!(["Robert Other"]));
    Talker::logged_in(&mail, "ada", SECRET).ask("STATUS INBOX (MESSAGES)");
    change(&mut client, "/mail%2Fada/made", |memo| memo["$Flags"] = json!(["\\Flagged"]));
    change(&mut client, "/mail%2Fada/made", |memo| memo["Categories"] = json!(["Work"]));
    assert_eq!(fetched(&mail, "made here"), first);
    drop(client);
    assert!(mail.server.terminate(WITHIN).success());
    let named = [("SCRINIUM_SMTP__HOST_NAME", "other.example")];
    mail.server = Server::start(folder.path(), &[&SMALL[..], &PORTS, &IMAP, &named].concat());
    assert_eq!(fetched(&mail, "made here"), first);
    // One that is edited is a new message: who was there hears of both.
    let mut talker = Talker::logged_in(&mail, "ada", SECRET);
    talker.ask("SELECT INBOX");
    change(&mut mail.server.client(), "/mail%2Fada/made", |memo| memo["Body"] = json!("Other.\n"));
    let told = talker.ask("NOOP");
    assert!(told.contains(&"* 1 EXPUNGE".to_owned()) && told.contains(&"* 2 EXISTS".to_owned()), "{told:?}");
    let edited = fetched(&mail, "made here");
    assert!(edited.0 != first.0 && edited.1.contains("Robert Other"), "{edited:?}");
    assert!(talker.ask("FETCH 1 (FLAGS)")[0].contains("\\Flagged"));
}

fn flags(mail: &MailServer, subject: &str) -> String {
    let mut talker = Talker::logged_in(mail, "ada", SECRET);
    talker.ask("EXAMINE INBOX");
    let found = talker.ask(&format!("SEARCH SUBJECT \"{subject}\""));
    let number = found[0].split(' ').nth(2).unwrap_or_default().to_owned();
    talker.ask(&format!("FETCH {number} (FLAGS)")).remove(0)
}

#[test]
fn flags_have_one_name_whoever_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    let mut talker = Talker::logged_in(&mail, "ada", SECRET);
    let text = |subject: &str| format!("Subject: {subject}\r\nFrom: x@y.test\r\n\r\ntext\r\n");
    let appended = text("appended");
    talker.ask(&format!("APPEND INBOX (\\Flagged) {{{}+}}\r\n{appended}", appended.len()));
    let files = folder.path().join("Mail");
    for part in ["cur", "new", "tmp"] {
        std::fs::create_dir_all(files.join(part)).unwrap();
    }
    std::fs::write(files.join("cur/1.host:2,FPb"), text("of a maildir")).unwrap();
    std::fs::write(files.join("dovecot-keywords"), "0 other\n1 work\n").unwrap();
    let mbox = format!("From - Mon Mar 02 10:00:00 2020\nX-Mozilla-Status: 0004\n{}\n", text("of an mbox"));
    std::fs::write(folder.path().join("Inbox.mbox"), mbox).unwrap();
    let none: [(&str, &str); 0] = [];
    for path in [files, folder.path().join("Inbox.mbox")] {
        let (path, listen) = (path.display().to_string(), mail.server.address().to_string());
        let arguments = ["import", "mail", &path, "--person", "ada", "--json"];
        let imported = answer(&beside(folder.path(), none, &listen, &arguments).output().unwrap());
        assert_eq!(imported["added"], json!(1), "{imported}");
    }
    let mut client = mail.server.client();
    put(&mut client, "written", &json!({"Form": "Memo", "Subject": "of a browser", "$Flags": ["\\Flagged"]}));
    put(
        &mut client,
        "earlier",
        &json!({"Form": "Memo", "Subject": "of a release before", "$Flags": ["flagged"]}),
    );
    for subject in ["appended", "of a maildir", "of an mbox", "of a browser", "of a release before"] {
        assert!(flags(&mail, subject).contains("\\Flagged"), "{subject}: {}", flags(&mail, subject));
    }
    let kept = flags(&mail, "of a maildir");
    assert!(kept.contains("$Forwarded") && kept.contains("work") && !kept.contains("other"), "{kept}");
    let mut talker = Talker::logged_in(&mail, "ada", SECRET);
    talker.ask("SELECT INBOX");
    assert_eq!(talker.ask("SEARCH FLAGGED")[0].split(' ').count(), 2 + 5);
    // What the client shows are the documents' fields: the columns of the list have them.
    talker.ask("STORE 1:* +FLAGS (\\Answered)");
    let all = client.get("/mail%2Fada/_all_docs?include_docs=true").unwrap().expect(200).value();
    let memos =
        all["rows"].as_array().unwrap().iter().map(|row| &row["doc"]).filter(|memo| memo["Form"] == "Memo");
    for memo in memos {
        let flags = memo["$Flags"].as_array().unwrap();
        assert!(flags.contains(&json!("\\Flagged")) && flags.contains(&json!("\\Answered")), "{memo}");
        assert!(!flags.contains(&json!("flagged")), "{memo}");
    }
}

#[test]
fn answers_are_of_the_conversation_of_what_they_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    let mut talker = Talker::logged_in(&mail, "ada", SECRET);
    for (id, refers) in
        [("a", ""), ("b", "In-Reply-To: <a@x>\r\n"), ("c", "References: <a@x> <b@x>\r\n"), ("d", "")]
    {
        let text = format!("Subject: {id}\r\nMessage-ID: <{id}@x>\r\n{refers}\r\ntext\r\n");
        talker.ask(&format!("APPEND INBOX {{{}+}}\r\n{text}", text.len()));
    }
    talker.ask("SELECT INBOX");
    let fetched = talker.ask("FETCH 1:4 (THREADID)");
    let id = |at: usize| fetched[at].split("THREADID (").nth(1).unwrap().trim_end_matches(')').to_owned();
    assert!(id(0) == id(1) && id(1) == id(2) && id(3) != id(0), "{fetched:?}");
    assert_eq!(talker.ask(&format!("SEARCH THREADID {}", id(0)))[0], "* SEARCH 1 2 3");
    assert_eq!(talker.ask(&format!("SEARCH NOT THREADID {}", id(0)))[0], "* SEARCH 4");
}

#[test]
fn notes_of_mailboxes_are_everybodys_or_ones_own_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    let mut client = mail.server.client();
    change(&mut client, "/directory/person:bob", |bob| bob["password"] = json!(SECRET));
    Talker::logged_in(&mail, "ada", SECRET);
    change(&mut client, "/directory/person:ada", |ada| ada["MailReaders"] = json!(["bob"]));
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    let mut bob = Talker::logged_in(&mail, "bob", SECRET);
    ada.ask("SETMETADATA INBOX (/shared/Comment \"for all\" /private/comment \"mine\" /shared/vendor/x/y \"deep\")");
    let told = ada.ask("GETMETADATA INBOX (/shared/comment /private/comment /private/none)").join(" ");
    assert!(
        told.contains("/shared/comment \"for all\"") && told.contains("/private/comment \"mine\""),
        "{told}"
    );
    assert!(told.contains("/private/none NIL"), "{told}");
    let deep = ada.ask("GETMETADATA (DEPTH infinity) INBOX /shared").join(" ");
    assert!(deep.contains("/shared/vendor/x/y") && deep.contains("/shared/comment"), "{deep}");
    let one = ada.ask("GETMETADATA (DEPTH 1) INBOX /shared").join(" ");
    assert!(!one.contains("/shared/vendor/x/y") && one.contains("/shared/comment"), "{one}");
    // A reader reads what is shared, changes nothing of it, and has notes of their own.
    let read = bob.ask("GETMETADATA Users/ada/INBOX (/shared/comment /private/comment)").join(" ");
    assert!(read.contains("\"for all\"") && read.contains("/private/comment NIL"), "{read}");
    assert!(bob.refused("SETMETADATA Users/ada/INBOX (/shared/comment \"his\")").contains("NOPERM"));
    bob.ask("SETMETADATA Users/ada/INBOX (/private/comment \"Bob's\")");
    assert!(ada.ask("GETMETADATA INBOX /private/comment").join(" ").contains("\"mine\""));
    assert!(bob.refused("SETMETADATA \"\" (/shared/admin \"x\")").contains("NOPERM"));
    bob.ask("SETMETADATA \"\" (/private/vendor/z \"x\")");
    assert!(bob.ask("GETMETADATA \"\" /private/vendor/z").join(" ").contains("\"x\""));
    // Nothing grows without an end, and what is too much changes nothing.
    let long = "x".repeat(9000);
    let refused = ada.refused(&format!("SETMETADATA INBOX (/shared/long {{9000+}}\r\n{long})"));
    assert!(refused.contains("[METADATA MAXSIZE 8192]"), "{refused}");
    let many: Vec<String> = (0..101).map(|number| format!("/private/n{number} \"x\"")).collect();
    let refused = ada.refused(&format!("SETMETADATA INBOX ({})", many.join(" ")));
    assert!(refused.contains("[METADATA TOOMANY]"), "{refused}");
    assert!(ada.ask("GETMETADATA INBOX /private/n1").join(" ").contains("/private/n1 NIL"));
    // It follows the mailbox, and goes with NIL.
    ada.ask("CREATE Notes");
    ada.ask("SETMETADATA Notes (/private/a \"1\" /shared/b \"2\")");
    ada.ask("RENAME Notes Other");
    let listed = ada.ask("LIST \"\" Other RETURN (METADATA (/private/a /shared/b))").join(" ");
    assert!(listed.contains("/private/a \"1\"") && listed.contains("/shared/b \"2\""), "{listed}");
    ada.ask("SETMETADATA Other (/private/a NIL /shared/b NIL)");
    assert!(
        ada.ask("GETMETADATA Other (/private/a /shared/b)")
            .join(" ")
            .contains("/private/a NIL /shared/b NIL")
    );
}

/// What is answered to SASL PLAIN with a name to act as.
fn plain(talker: &mut Talker, act_as: &str, name: &str, password: &str) -> String {
    let text = STANDARD.encode(format!("{act_as}\0{name}\0{password}"));
    talker.answers(&format!("AUTHENTICATE PLAIN {text}")).pop().unwrap()
}

fn openings(mail: &MailServer) -> Vec<Value> {
    let found = mail.server.client().get("/log/_all_docs?include_docs=true").unwrap();
    let found = found.expect(200).value();
    let records = found["rows"].as_array().unwrap().iter().map(|row| row["doc"].clone());
    records
        .filter(|record| record["Action"] == "mail file opened" && record["Details"]["by"] == "IMAP")
        .collect()
}

fn opening_server(folder: &Path, is_on: bool) -> MailServer {
    let on = [("SCRINIUM_IMAP__OPEN_AS_OTHERS", if is_on { "true" } else { "false" })];
    let mail = MailServer::start_with(folder, &[&IMAP[..], &on].concat());
    let mut client = mail.server.client();
    let person = |name: &str, roles: Value| json!({"Form": "Person", "ShortName": name, "FullName": [format!("{name} Someone")], "Roles": roles, "password": SECRET});
    for (name, roles) in [
        ("helper", json!(["_open_mail"])),
        ("chief", json!(["_open_mail", "_admin"])),
        ("root", json!(["_admin"])),
    ] {
        client.json("PUT", &format!("/directory/person:{name}"), &person(name, roles)).unwrap().expect(201);
    }
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    ada.ask("APPEND INBOX {20+}\r\nSubject: private\r\n\r\n");
    mail
}

#[test]
fn mail_is_opened_in_somebodys_name_only_with_the_right_to_and_each_time_on_record() {
    let folder = tempfile::tempdir().unwrap();
    let mail = opening_server(folder.path(), true);
    let heard = |act_as: &str, name: &str, password: &str| {
        plain(&mut Talker::connect(&mail), act_as, name, password).split_once(' ').unwrap().1.to_owned()
    };
    // Who may not hears the same of those who are there and those who are not, and who has shown nothing hears nothing.
    let refused = heard("ada", "root", SECRET);
    assert!(refused.starts_with("NO [AUTHENTICATIONFAILED]"), "{refused}");
    for (act_as, name) in
        [("nobody", "root"), ("bob", "ada"), ("nobody", "helper"), ("root", "helper"), ("chief", "helper")]
    {
        assert_eq!(heard(act_as, name, SECRET), refused, "{name} as {act_as}");
    }
    assert!(!heard("ada", "helper", "wrong").contains("act as"));
    assert_eq!(openings(&mail).len(), 0);
    for (number, (act_as, name)) in
        [("ada", "helper"), ("ada", "helper"), ("root", "chief")].into_iter().enumerate()
    {
        let mut talker = Talker::connect(&mail);
        assert!(plain(&mut talker, act_as, name, SECRET).contains(" OK "));
        let lines = talker.ask("SELECT INBOX");
        assert_eq!(lines.contains(&"* 1 EXISTS".to_owned()), act_as == "ada", "{lines:?}");
        wait_until("the record", WITHIN, || openings(&mail).len() == number + 1);
    }
    let records = openings(&mail);
    let is_told = |record: &&Value| record["Person"] == "helper" && record["Target"] == "person:ada";
    assert_eq!(records.iter().filter(is_told).count(), 2, "{records:?}");
    // Their own name is no other's, and is not put on record.
    assert!(heard("helper", "helper", SECRET).starts_with("OK"));
    assert_eq!(openings(&mail).len(), 3);
    // The right is looked at again with each command.
    let mut talker = Talker::connect(&mail);
    assert!(plain(&mut talker, "ada", "helper", SECRET).contains(" OK "));
    change(&mut mail.server.client(), "/directory/person:helper", |helper| helper["Roles"] = json!([]));
    talker.refused("SELECT INBOX");
    assert!(heard("ada", "helper", SECRET).starts_with("NO"));
}

#[test]
fn nobody_opens_mail_in_somebodys_name_unless_it_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let mail = opening_server(folder.path(), false);
    for name in ["helper", "chief"] {
        let heard = plain(&mut Talker::connect(&mail), "ada", name, SECRET);
        assert!(heard.contains("AUTHENTICATIONFAILED"), "{heard}");
    }
    assert_eq!(openings(&mail).len(), 0);
}

#[test]
fn mailboxes_of_others_are_watched_as_long_as_they_may_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    let mut client = mail.server.client();
    change(&mut client, "/directory/person:bob", |bob| bob["password"] = json!(SECRET));
    Talker::logged_in(&mail, "ada", SECRET);
    let mut bob = Talker::logged_in(&mail, "bob", SECRET);
    let set = "NOTIFY SET (mailboxes (Users/ada/INBOX Users/nobody/INBOX) (MessageNew MessageExpunge))";
    // Before Ada has let him in there is nothing to hear.
    bob.ask(set);
    let append = |subject: &str| {
        let text = format!("Subject: {subject}\r\n\r\n");
        Talker::logged_in(&mail, "ada", SECRET).ask(&format!("APPEND INBOX {{{}+}}\r\n{text}", text.len()));
    };
    append("one");
    let told = bob.ask("NOOP").join(" ");
    assert!(!told.contains("STATUS"), "{told}");
    change(&mut client, "/directory/person:ada", |ada| ada["MailReaders"] = json!(["bob"]));
    let mut bob = Talker::logged_in(&mail, "bob", SECRET);
    bob.ask(set);
    append("two");
    // It comes by itself.
    let line = bob.line();
    assert!(line.starts_with("* STATUS Users/ada/INBOX (MESSAGES 2"), "{line}");
    change(&mut client, "/directory/person:ada", |ada| ada["MailReaders"] = json!([]));
    append("three");
    let told = bob.ask("NOOP").join(" ");
    assert!(!told.contains("MESSAGES 3"), "{told}");
}
