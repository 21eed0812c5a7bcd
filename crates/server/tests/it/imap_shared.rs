//! Other people's mail and other databases by IMAP: what somebody may do there, and what strangers cannot learn.

use serde_json::{Value, json};

use crate::imap::{IMAP, Talker};
use crate::mail_ports::{MailServer, SECRET};

const PASSWORD: &str = "their own secret";

/// Bob and Carl, who has no rights, can log in.
fn start(folder: &std::path::Path) -> MailServer {
    let mail = MailServer::start_with(folder, &IMAP);
    for name in ["bob", "carl"] {
        change(&mail, name, &json!({"password": PASSWORD}));
    }
    mail
}

/// Changes fields of a person, who is made if there is none.
fn change(mail: &MailServer, name: &str, fields: &Value) {
    let mut client = mail.server.client();
    let path = format!("/directory/person:{name}");
    let found = client.get(&path).unwrap();
    let mut person = match found.status {
        404 => json!({"Form": "Person", "ShortName": name, "FullName": [format!("{name} Someone")]}),
        _ => found.expect(200).value(),
    };
    for (field, value) in fields.as_object().unwrap() {
        person[field] = value.clone();
    }
    client.json("PUT", &path, &person).unwrap().expect(201);
}

fn append(talker: &mut Talker, mailbox: &str, subject: &str) {
    let message = format!("Subject: {subject}\r\nFrom: x@y.test\r\n\r\ntext\r\n");
    talker.ask(&format!("APPEND {mailbox} {{{}+}}\r\n{message}", message.len()));
}

fn append_is_refused(talker: &mut Talker, mailbox: &str) -> String {
    talker.refused(&format!("APPEND {mailbox} {{5+}}\r\nA: b\n"))
}

fn names(talker: &mut Talker, pattern: &str) -> Vec<String> {
    let lines = talker.ask(&format!("LIST \"\" {pattern}"));
    let listed = lines.iter().filter(|line| line.starts_with("* LIST") && !line.contains("\\Noselect"));
    listed.map(|line| line.rsplit_once(' ').unwrap().1.trim_matches('"').to_owned()).collect()
}

#[test]
fn a_stranger_cannot_learn_that_a_mailbox_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mail = start(folder.path());
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    append(&mut ada, "INBOX", "private");
    let mut client = mail.server.client();
    client.json("PUT", "/films", &json!(null)).unwrap().expect(201);
    client.json("PUT", "/films/_folder/Reviews", &json!({})).unwrap().expect(201);
    let nobody = json!({"default": {"level": "no_access"}, "entries": [{"name": "ada", "level": "manager"}]});
    client.json("PUT", "/films/_acl", &nobody).unwrap().expect(201);
    let mut carl = Talker::logged_in(&mail, "carl", PASSWORD);
    append(&mut carl, "INBOX", "his own");
    carl.ask("SELECT INBOX");
    let pairs = [
        ("Users/ada/INBOX", "Users/nobody/INBOX"),
        ("Databases/films/Reviews", "Databases/nothing/Reviews"),
        ("Databases/mail\u{2215}ada/INBOX", "Databases/mail\u{2215}nobody/INBOX"),
    ];
    for (there, not_there) in pairs {
        let (there, not_there) = (utf7(there), utf7(not_there));
        for command in [
            "SELECT @",
            "EXAMINE @",
            "STATUS @ (MESSAGES)",
            "MYRIGHTS @",
            "GETACL @",
            "LISTRIGHTS @ carl",
            "SETACL @ carl lr",
            "DELETEACL @ carl",
            "GETMETADATA @ /shared/comment",
            "SETMETADATA @ (/shared/comment \"x\")",
            "SETMETADATA @ (/private/comment \"x\")",
            "GETQUOTAROOT @",
            "CREATE @/new",
            "DELETE @",
            "RENAME @ mine",
            "RENAME INBOX @/x",
            "COPY 1 @",
            "MOVE 1 @",
            "APPEND @ {3+}\r\nA:b",
        ] {
            let heard = |talker: &mut Talker, name: &str| {
                let last = talker.refused(&command.replace('@', name));
                last.split_once(' ').unwrap().1.to_owned()
            };
            carl.ask("SELECT INBOX");
            assert_eq!(
                heard(&mut carl, &there),
                {
                    carl.ask("SELECT INBOX");
                    heard(&mut carl, &not_there)
                },
                "{command} {there}"
            );
        }
    }
    for pattern in ["*", "Users/*", "Users/ada/*", "Databases/*", "Databases/films/*"] {
        let listed = names(&mut carl, pattern);
        assert!(!listed.iter().any(|name| name.contains("ada") || name.contains("films")), "{listed:?}");
    }
}

/// The character that stands for a slash, as IMAP4rev1 writes it.
fn utf7(name: &str) -> String {
    name.replace('\u{2215}', "&IhU-")
}

#[test]
fn readers_read_editors_change_and_what_is_withdrawn_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mail = start(folder.path());
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    for subject in ["one", "two"] {
        append(&mut ada, "INBOX", subject);
    }
    change(&mail, "ada", &json!({"MailReaders": ["bob"]}));
    let mut bob = Talker::logged_in(&mail, "bob", PASSWORD);
    append(&mut bob, "INBOX", "Bob's");
    assert!(names(&mut bob, "*").contains(&"Users/ada/INBOX".to_owned()));
    assert!(names(&mut bob, "Users/%").is_empty() && names(&mut bob, "Users/ada/%").len() > 3);
    let space = bob.ask("NAMESPACE").join(" ");
    assert!(space.contains("((\"Users/\" \"/\")) ((\"Databases/\" \"/\"))"), "{space}");
    let opened = bob.ask("SELECT Users/ada/INBOX").join("\n");
    assert!(opened.contains("* 2 EXISTS") && opened.contains("PERMANENTFLAGS (\\Seen)"), "{opened}");
    assert!(bob.ask("MYRIGHTS Users/ada/INBOX")[0].ends_with(" lrs"));
    assert!(bob.ask("FETCH 1 (BODY[HEADER.FIELDS (SUBJECT)])").concat().contains("Subject: one"));
    // What he has read is his to say, and Ada hears nothing of it.
    assert!(bob.ask("SEARCH UNSEEN")[0].ends_with(" 2"));
    ada.ask("SELECT INBOX");
    assert!(ada.ask("SEARCH UNSEEN")[0].ends_with(" 1 2"));
    for command in [
        "STORE 1 +FLAGS (\\Flagged)",
        "STORE 1 +FLAGS (\\Deleted)",
        "STORE 1 +FLAGS ($Word)",
        "STORE 1 FLAGS ()",
        "MOVE 1 INBOX",
        "CREATE Users/ada/New",
        "DELETE Users/ada/Trash",
        "RENAME Users/ada/Trash Users/ada/T",
        "GETACL Users/ada/INBOX",
        "LISTRIGHTS Users/ada/INBOX bob",
        "SETACL Users/ada/INBOX bob lrswipkxtea",
        "COPY 1 Users/ada/Archive",
    ] {
        let heard = bob.refused(command);
        assert!(heard.contains("NOPERM"), "{command}: {heard}");
    }
    assert!(append_is_refused(&mut bob, "Users/ada/INBOX").contains("NOPERM"));
    // Into his own, as messages of their own.
    let copied = bob.ask("COPY 1:2 INBOX").pop().unwrap();
    assert!(copied.contains("COPYUID"), "{copied}");
    assert!(bob.ask("STATUS INBOX (MESSAGES)")[0].contains("MESSAGES 3"));
    change(&mail, "ada", &json!({"MailReaders": [], "MailEditors": ["bob"]}));
    bob.ask("STORE 1 +FLAGS (\\Flagged $Word)");
    append(&mut bob, "Users/ada/Archive", "from Bob");
    bob.ask("MOVE 2 INBOX");
    assert!(bob.ask("STATUS INBOX (MESSAGES)")[0].contains("MESSAGES 4"));
    let flags = ada.ask("FETCH 1 FLAGS").join(" ");
    assert!(flags.contains("\\Flagged") && flags.contains("$Word"), "{flags}");
    ada.ask("NOOP");
    assert!(ada.ask("STATUS INBOX (MESSAGES)")[0].contains("MESSAGES 1"));
    assert!(ada.ask("STATUS Archive (MESSAGES)")[0].contains("MESSAGES 1"));
    // He manages nothing, and Ada does.
    assert!(bob.refused("GETACL Users/ada/INBOX").contains("NOPERM"));
    assert!(ada.ask("GETACL INBOX")[0].contains("ada lrswipkxtea"));
    assert!(ada.refused("SETACL INBOX bob lr").contains("CANNOT"));
    change(&mail, "ada", &json!({"MailEditors": []}));
    Talker::logged_in(&mail, "bob", PASSWORD).refused("SELECT Users/ada/INBOX");
    bob.send("x FETCH 1 (FLAGS BODY.PEEK[])\r\n");
    let end = bob.rest();
    assert!(!end.contains("Subject") && !end.contains("FLAGS (\\"), "{end}");
}

#[test]
fn in_a_database_authors_change_what_is_theirs_and_nobody_sees_what_is_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let mail = start(folder.path());
    let mut client = mail.server.client();
    client.json("PUT", "/films", &json!(null)).unwrap().expect(201);
    client.json("PUT", "/films/_folder/Reviews", &json!({})).unwrap().expect(201);
    let list = json!({"default": {"level": "reader"}, "entries": [
        {"name": "ada", "level": "manager"}, {"name": "bob", "level": "author"}]});
    client.json("PUT", "/films/_acl", &list).unwrap().expect(201);
    let (mut ada, mut bob) =
        (Talker::logged_in(&mail, "ada", SECRET), Talker::logged_in(&mail, "bob", PASSWORD));
    let mut carl = Talker::logged_in(&mail, "carl", PASSWORD);
    assert!(names(&mut carl, "*").contains(&"Databases/films/Reviews".to_owned()));
    append(&mut ada, "Databases/films/Reviews", "Ada's");
    append(&mut bob, "Databases/films/Reviews", "Bob's");
    assert!(append_is_refused(&mut carl, "Databases/films/Reviews").contains("NOPERM"));
    assert!(bob.ask("MYRIGHTS Databases/films/Reviews")[0].ends_with(" lrsi"));
    bob.ask("SELECT Databases/films/Reviews");
    assert!(bob.refused("STORE 1 +FLAGS (\\Flagged)").contains("NOPERM"));
    bob.ask("STORE 2 +FLAGS (\\Flagged)");
    // One that is for Ada alone is for the others as if it were not there.
    carl.ask("SELECT Databases/films/Reviews");
    let secret = json!({"_id": "secret", "Form": "Memo", "Subject": "hush", "Readers": ["ada"]});
    client.json("PUT", "/films/secret", &secret).unwrap().expect(201);
    client.json("POST", "/films/_folder/Reviews", &json!({"add": ["secret"]})).unwrap();
    append(&mut ada, "Databases/films/Reviews", "for all");
    let mut carl = Talker::logged_in(&mail, "carl", PASSWORD);
    assert!(carl.ask("SELECT Databases/films/Reviews").contains(&"* 3 EXISTS".to_owned()));
    assert!(ada.ask("SELECT Databases/films/Reviews").contains(&"* 4 EXISTS".to_owned()));
    assert!(carl.ask("STATUS Databases/films/Reviews (MESSAGES)")[0].contains("MESSAGES 3"));
    assert!(!carl.ask("FETCH 1:* (ENVELOPE)").concat().contains("hush"));
    assert_eq!(carl.ask("UID FETCH 3 (FLAGS)").len(), 1);
    // One that he sees and may see no more ends his session, since its numbers would be wrong.
    let mut shown = client.get("/films/secret").unwrap().value();
    shown["Readers"] = json!(["ada", "carl"]);
    client.json("PUT", "/films/secret", &shown).unwrap().expect(201);
    carl.send("y FETCH 1:* (ENVELOPE)\r\n");
    let end = carl.rest();
    assert!(end.contains("BYE") && !end.contains("hush"), "{end}");
    let mut carl = Talker::logged_in(&mail, "carl", PASSWORD);
    assert!(carl.ask("SELECT Databases/films/Reviews").contains(&"* 4 EXISTS".to_owned()));
    assert!(carl.ask("FETCH 3 (ENVELOPE)").concat().contains("hush"));
    // Bob takes away what is his.
    let mut bob = Talker::logged_in(&mail, "bob", PASSWORD);
    bob.ask("SELECT Databases/films/Reviews");
    bob.ask("STORE 2 +FLAGS (\\Deleted)");
    assert!(bob.ask("EXPUNGE").contains(&"* 2 EXPUNGE".to_owned()));
}
