//! Scripts of people: what becomes of a message, whichever way it comes.

use std::time::Duration;

use bytes::Bytes;
use scrinium_clock::{Clock, ManualClock};
use scrinium_database::DatabaseOptions;
use scrinium_directory::{NameLookup as _, Person};
use scrinium_mail::{
    DepositError, Deposited, EnvelopeItems, IncomingMail, IncomingMessage, MessageSource, Resolver, RuleBook,
    RuleOwner, SCRIPTS_MAX, ScriptBook, ScriptsError, SenderVerdict, TEXTS_MAX_BYTES,
};
use serde_json::{Map, Value, json};

use crate::common::{SERVER, Server, put};

/// Ways by which a message comes.
const WAYS: [bool; 2] = [true, false];

const NOTICE: &str = "Your mail is forwarded to ";

struct World {
    server: Server,
    scripts: ScriptBook,
    mail: IncomingMail,
    clock: ManualClock,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::manual(1_800_000_000_000);
        let server = Server::at(folder.path(), &["ada", "bob"], DatabaseOptions::default(), clock.clock());
        let resolver = Resolver::new(server.directory.clone(), &["home.example".to_owned()]);
        let mail =
            IncomingMail::new(&server.databases, server.mailboxes.clone(), resolver, &server.statistics);
        let scripts = ScriptBook::new(&server.databases);
        Self { server, scripts, mail, clock, _folder: folder }
    }

    fn person(&self, name: &str) -> std::sync::Arc<Person> {
        match self.server.directory.find(name) {
            scrinium_directory::Found::Person(person) => person,
            other => panic!("{other:?}"),
        }
    }

    fn script(&self, name: &str, text: &str) {
        let person = self.person(name);
        self.scripts.put(&person, "main", text).unwrap();
        self.scripts.set_active(&person, "main").unwrap();
    }

    fn message(&self, from: &str, head: &str, subject: &str, to: &[&str]) -> IncomingMessage {
        let text = format!(
            "From: {from}\r\nTo: ada@acme.example\r\nMessage-ID: <{subject}@far.example>\r\n{head}Subject: {subject}\r\n\r\nThe text.\r\n"
        );
        IncomingMessage {
            source: MessageSource::from(Bytes::from(text)),
            recipients: to.iter().map(|name| (*name).to_owned()).collect(),
            return_path: from.to_owned(),
            envelope: EnvelopeItems { repeat_id: Some(subject.to_owned()), ..EnvelopeItems::default() },
        }
    }

    /// Brings a message straight, or by a mail.box.
    fn take(
        &self,
        message: &IncomingMessage,
        subject: &str,
        is_direct: bool,
    ) -> Result<Deposited, DepositError> {
        let brought = if is_direct {
            self.mail.accept(subject, message)
        } else {
            self.server.mailboxes.deposit_message(subject, message)
        };
        self.route();
        brought
    }

    fn bring(&self, subject: &str, to: &[&str], is_direct: bool) -> Result<Deposited, DepositError> {
        self.take(&self.message("bob@acme.example", "", subject, to), subject, is_direct)
    }

    fn route(&self) {
        let mut router = self.server.router();
        self.server.route_all(&mut router);
    }

    fn memo(&self, name: &str, subject: &str) -> Map<String, Value> {
        let all = self.server.documents(&format!("mail/{name}"));
        all.into_iter().find(|memo| memo.get("Subject") == Some(&json!(subject))).unwrap()
    }

    fn in_folder(&self, name: &str, folder: &str) -> Vec<String> {
        let Ok(database) = self.server.databases.get(&format!("mail/{name}")) else { return Vec::new() };
        let Ok(found) = database.folder_members(folder, 0, 100, (Some(name), &SERVER)) else {
            return Vec::new();
        };
        let all = self.server.documents(&format!("mail/{name}"));
        let subject = |id: &str| {
            all.iter().find(|memo| memo["_id"] == *id).unwrap()["Subject"].as_str().unwrap().to_owned()
        };
        found.members.iter().map(|member| subject(&member.id)).collect()
    }

    fn waiting(&self) -> Vec<Map<String, Value>> {
        ["mail.box", "mail1.box"].iter().flat_map(|name| self.server.documents(name)).collect()
    }
}

#[test]
fn a_script_files_flags_and_throws_away_and_comes_after_the_rules() {
    for is_direct in WAYS {
        let world = World::new();
        let rules = json!({"rules": [{"name": "n", "when": "@Begins(Subject; \"ruled\")", "actions": [{"move": "Ruled"}]}]});
        RuleBook::new(&world.server.databases).set(RuleOwner::Person("person:ada"), &rules).unwrap();
        world.script(
            "ada",
            "require [\"fileinto\", \"copy\", \"imap4flags\", \"envelope\", \"body\", \"mailbox\"];\r\n\
             if header :is \"Subject\" \"list\" { setflag [\"\\\\Seen\", \"\\\\flagged\", \"work\"]; fileinto :create \"Lists/A\"; }\r\n\
             elsif header :contains \"Subject\" \"both\" { fileinto :copy \"Both\"; }\r\n\
             elsif envelope :is \"to\" \"ada+tag@home.example\" { fileinto \"Tagged\"; }\r\n\
             elsif allof (body :contains \"The text\", header :is \"Subject\" \"bin\") { discard; }\r\n",
        );
        for subject in ["list", "both", "bin", "ruled", "ruled both"] {
            world.bring(subject, &["ada", "bob"], is_direct).unwrap();
        }
        world.bring("tagged", &["ada+tag@home.example"], is_direct).unwrap();
        for (folder, subjects) in [
            ("Lists\\A", &["list"][..]),
            ("Both", &["both", "ruled both"]),
            ("Inbox", &["both"]),
            ("Ruled", &["ruled", "ruled both"]),
            ("Tagged", &["tagged"]),
        ] {
            assert_eq!(world.in_folder("ada", folder), subjects, "{folder}");
        }
        assert_eq!(world.memo("ada", "list")["$Flags"], json!(["\\Flagged", "work"]));
        let unread = world.server.databases.get("mail/ada").unwrap().unread("ada").unwrap();
        assert_eq!(unread.database, 4, "the scripts are no news");
        assert_eq!(world.in_folder("bob", "Inbox").len(), 5, "scripts are their owner's alone");
        assert!(world.waiting().is_empty());
        // What was thrown away comes once more, and again.
        world.bring("bin", &["ada"], is_direct).unwrap();
        assert_eq!(world.in_folder("ada", "Inbox"), ["both"]);
    }
}

#[test]
fn a_refusal_is_answered_at_once_or_told_to_those_alone_who_have_sent_it() {
    let script = "require \"reject\"; reject \"No,\r\nthank you.\";";
    let world = World::new();
    world.script("ada", script);
    let refused = world.bring("one", &["ada"], true);
    assert!(matches!(refused, Err(DepositError::Rejected(text)) if text == "No, thank you."));
    assert!(world.server.documents("mail/bob").is_empty());
    // Others take it: the sender hears of the one who does not.
    world.bring("two", &["ada", "bob"], true).unwrap();
    let mail = world.in_folder("bob", "Inbox");
    assert_eq!(mail.len(), 2);
    assert!(mail.iter().any(|subject| subject.contains("No, thank you.")), "{mail:?}");
    // A sender for whom nobody vouches has perhaps not sent it, and hears nothing.
    let mut message = world.message("bob@acme.example", "", "three", &["ada", "bob"]);
    message.envelope.sender = Some(SenderVerdict::default());
    world.take(&message, "three", true).unwrap();
    assert_eq!(world.in_folder("bob", "Inbox").len(), 3);
    assert_eq!(world.in_folder("ada", "Junk"), ["three"]);
}

#[test]
fn what_is_passed_on_is_there_once_and_its_owner_knows() {
    for is_direct in WAYS {
        let world = World::new();
        world.script("ada", "redirect \"bob@home.example\";");
        assert_eq!(world.in_folder("ada", "Inbox"), [format!("{NOTICE}bob@home.example")], "at once");
        for _ in 0..2 {
            world.bring("one", &["ada"], is_direct).unwrap();
        }
        assert_eq!(world.in_folder("bob", "Inbox"), ["one"]);
        assert_eq!(world.in_folder("ada", "Inbox").len(), 1, "the notice alone");
        // In a circle nothing is lost, and nothing runs for ever.
        world.script("bob", "redirect \"ada@home.example\";");
        world.bring("round", &["ada"], is_direct).unwrap();
        assert_eq!(world.in_folder("ada", "Inbox")[1..], ["round"]);
        world.script("bob", "redirect \"bob+self@home.example\"; redirect \"bob@acme.example\";");
        world.bring("self", &["bob"], is_direct).unwrap();
        assert!(world.in_folder("bob", "Inbox").contains(&"self".to_owned()));
        // One that somebody has written into the document, with no more than a cookie, leads nothing away.
        let database = world.server.databases.get("mail/bob").unwrap();
        let mut document =
            world.server.documents("mail/bob").into_iter().find(|one| one["_id"] == "sieve:scripts").unwrap();
        document["Scripts"]["main"] =
            json!("redirect :copy \"eve@far.example\";".replace("redirect", "require \"copy\"; redirect"));
        put(&database, Value::Object(document)).unwrap();
        world.bring("written", &["bob"], is_direct).unwrap();
        let inbox = world.in_folder("bob", "Inbox");
        assert!(
            !inbox.contains(&format!("{NOTICE}eve@far.example")) && inbox.contains(&"written".to_owned()),
            "{inbox:?}"
        );
        assert!(world.waiting().is_empty());
    }
}

#[test]
fn an_answer_goes_once_to_each_sender_and_period_and_never_to_programs() {
    for is_direct in WAYS {
        let world = World::new();
        world.script("ada", "require \"vacation\"; vacation :days 7 :subject \"Away\" \"I am away.\";");
        let answers = || world.in_folder("bob", "Inbox");
        world.bring("one", &["ada"], is_direct).unwrap();
        assert_eq!(answers(), ["Away"]);
        let answer = world.memo("bob", "Away");
        assert_eq!(
            (&answer["From"], &answer["InReplyTo"]),
            (&json!("ada@acme.example"), &json!("<one@far.example>"))
        );
        assert_eq!((&answer["$ReturnPath"], &answer["Body"]), (&json!(""), &json!("I am away.\n")));
        world.bring("two", &["ada"], is_direct).unwrap();
        assert_eq!(answers().len(), 1, "within the period");
        assert_eq!(world.in_folder("ada", "Inbox"), ["one", "two"]);
        world.clock.advance(Duration::from_hours(24 * 8));
        let mut forged = world.message("bob@acme.example", "", "forged", &["ada"]);
        forged.envelope.sender = Some(SenderVerdict::default());
        let mut null = world.message("bob@acme.example", "", "null", &["ada"]);
        null.return_path = String::new();
        for (message, subject) in [
            (world.message("bob@acme.example", "List-Id: <a.b>\r\n", "list", &["ada"]), "list"),
            (world.message("bob@acme.example", "Precedence: bulk\r\n", "bulk", &["ada"]), "bulk"),
            (world.message("bob@acme.example", "Auto-Submitted: auto-replied\r\n", "auto", &["ada"]), "auto"),
            (forged, "forged"),
            (null, "null"),
        ] {
            world.take(&message, subject, is_direct).unwrap();
            assert_eq!(answers().len(), 1, "{subject}");
        }
        world.bring("three", &["ada"], is_direct).unwrap();
        assert_eq!(answers().len(), 2);
        // Two who are away do not talk to each other.
        world.script("bob", "require \"vacation\"; vacation :days 7 \"I am away too.\";");
        world.clock.advance(Duration::from_hours(24 * 8));
        world.bring("four", &["ada"], is_direct).unwrap();
        assert_eq!((answers().len(), world.in_folder("ada", "Inbox").len()), (3, 9));
    }
}

#[test]
fn a_message_that_comes_by_two_ways_is_there_once() {
    for is_direct in WAYS {
        let world = World::new();
        let bring = |subject: &str, id: Option<&str>| {
            let mut message = world.message("bob@acme.example", "", "same", &["ada"]);
            message.envelope.repeat_id = id.map(str::to_owned);
            world.take(&message, subject, is_direct).unwrap();
        };
        world.script("ada", "require \"duplicate\"; if duplicate :seconds 3600 { discard; }");
        for (name, id) in [("1", Some("one")), ("2", Some("two")), ("1", Some("one")), ("3", None)] {
            bring(name, id);
            assert_eq!(world.in_folder("ada", "Inbox"), ["same"], "{name}");
        }
        world.clock.advance(Duration::from_hours(2));
        // It has no id of its own until it is in a mail.box.
        bring("4", None);
        bring("5", None);
        assert_eq!(world.in_folder("ada", "Inbox").len(), 2);
        // What lasts until it has not come for a while.
        world.script(
            "ada",
            "require \"duplicate\"; if duplicate :handle \"h\" :last :seconds 3600 { discard; }",
        );
        for number in 0..4 {
            bring(&format!("last {number}"), Some(&format!("last {number}")));
            world.clock.advance(Duration::from_mins(40));
        }
        assert_eq!(world.in_folder("ada", "Inbox").len(), 3);
        assert!(world.waiting().is_empty());
    }
}

#[test]
fn somebody_hears_that_mail_has_come_and_its_owner_knows() {
    for is_direct in WAYS {
        let world = World::new();
        let script = "require [\"enotify\", \"fcc\", \"variables\"]; set \"s\" \"gr\u{fc}n\"; \
                      notify :from \"eve@far.example\" :importance \"1\" :fcc \"Told\" :message \"Mail: ${s}\" \
                      \"mailto:bob@home.example?body=Look%20here\";";
        world.script("ada", script);
        for _ in 0..2 {
            world.bring("one", &["ada"], is_direct).unwrap();
        }
        assert_eq!(world.in_folder("bob", "Inbox"), ["Mail: gr\u{fc}n"]);
        let told = world.memo("bob", "Mail: gr\u{fc}n");
        assert_eq!((&told["$ReturnPath"], &told["From"]), (&json!(""), &json!("ada@acme.example")));
        assert_eq!(told["Body"], json!("Look here\n"));
        assert_eq!(world.in_folder("ada", "Told"), ["Mail: gr\u{fc}n"]);
        let inbox = world.in_folder("ada", "Inbox");
        assert_eq!(inbox, ["bob@home.example hears of your mail", "one"]);
        // A notice is no mail to notify of, and nobody runs in circles.
        world.script("bob", &script.replace("bob@", "ada@"));
        world.bring("two", &["ada"], is_direct).unwrap();
        assert_eq!(world.in_folder("bob", "Inbox").len(), 2);
        // One that somebody has written into the document tells nobody.
        let database = world.server.databases.get("mail/bob").unwrap();
        let mut document =
            world.server.documents("mail/bob").into_iter().find(|one| one["_id"] == "sieve:scripts").unwrap();
        document["Scripts"]["main"] = json!("require \"enotify\"; notify \"mailto:ada@home.example\";");
        put(&database, Value::Object(document)).unwrap();
        let before = world.in_folder("ada", "Inbox").len();
        world.bring("three", &["bob"], is_direct).unwrap();
        assert_eq!(world.in_folder("ada", "Inbox").len(), before);
        assert!(world.waiting().is_empty());
    }
}

#[test]
fn an_answer_is_kept_where_the_script_says() {
    let world = World::new();
    world.script(
        "ada",
        "require [\"vacation\", \"fcc\", \"imap4flags\", \"special-use\"]; \
         vacation :subject \"Away\" :fcc \"Sent/Away\" :flags [\"\\\\Flagged\", \"auto\"] \"I am away.\";",
    );
    for _ in 0..2 {
        world.bring("one", &["ada"], true).unwrap();
    }
    assert_eq!(world.in_folder("bob", "Inbox"), ["Away"]);
    assert_eq!(world.in_folder("ada", "Sent\\Away"), ["Away"]);
    assert_eq!(world.memo("ada", "Away")["$Flags"], json!(["\\Flagged", "auto"]));
    let unread = world.server.databases.get("mail/ada").unwrap().unread("ada").unwrap();
    assert_eq!(unread.database, 1, "the message, and not the answer");
}

#[test]
fn a_script_changes_the_head_of_a_message_and_finds_folders_by_what_they_are() {
    for is_direct in WAYS {
        let world = World::new();
        let database = world.server.databases.get("mail/ada");
        let database = database.unwrap_or_else(|_| {
            world.bring("first", &["ada"], true).unwrap();
            world.server.databases.get("mail/ada").unwrap()
        });
        let make = scrinium_database::FolderChange::Make {
            folder: "Known".to_owned(),
            columns: None,
            special_use: Some(scrinium_database::SpecialUse::Archive),
        };
        let first = world.server.documents("mail/ada").into_iter().find(|one| one["Form"] == "Memo").unwrap();
        let id = first["_id"].as_str().unwrap().to_owned();
        database.change_folders(vec![(id, make)], &SERVER).unwrap().wait().unwrap();
        let known = scrinium_mail::folder_id(&database.folder("Known", None).unwrap());
        world.script(
            "ada",
            &format!(
                "require [\"editheader\", \"fileinto\", \"mailboxid\", \"special-use\"]; \
                 deleteheader \"X-Old\"; addheader \"X-Mood\" \"gr\u{fc}n\"; addheader :last \"Subject\" \"other\"; \
                 deleteheader :index 1 \"Subject\"; \
                 if header :is \"Subject\" \"other\" {{ fileinto :mailboxid \"{known}\" \"No\"; fileinto :specialuse \"\\\\Archive\" \"No\"; }}"
            ),
        );
        let message = world.message("bob@acme.example", "X-Old: 1\r\n", "one", &["ada", "bob"]);
        world.take(&message, "one", is_direct).unwrap();
        assert_eq!(world.in_folder("ada", "Known"), ["other"]);
        let memo = world.memo("ada", "other");
        let source = database
            .open_attachment(memo["_id"].as_str().unwrap(), scrinium_mail::SOURCE_ATTACHMENT, None, &SERVER)
            .unwrap();
        let text = String::from_utf8(source.read(0, 1 << 20).unwrap().to_vec()).unwrap();
        assert!(text.starts_with("X-Mood: =?utf-8?"), "{text}");
        assert!(
            !text.contains("X-Old") && text.ends_with("\r\nSubject: other\r\n\r\nThe text.\r\n"),
            "{text}"
        );
        assert_eq!(memo["$ReturnPath"], json!("bob@acme.example"));
        assert!(world.in_folder("bob", "Inbox").contains(&"one".to_owned()), "others have it as it came");
    }
}

#[test]
fn a_script_that_fails_or_cannot_be_read_keeps_the_message() {
    for is_direct in WAYS {
        let world = World::new();
        world.script("ada", "require [\"ihave\", \"fileinto\"]; fileinto \"Lost\"; error \"out of order\";");
        world.bring("one", &["ada"], is_direct).unwrap();
        let database = world.server.databases.get("mail/ada").unwrap();
        for wrong in [
            json!({"Active": "main", "Scripts": {"main": "discard"}}),
            json!({"Active": "main", "Scripts": {}}),
            json!({"Active": 7}),
            json!({"Active": "main", "Scripts": {"main": format!("discard; # {}", "x".repeat(TEXTS_MAX_BYTES))}}),
        ] {
            let mut document = world
                .server
                .documents("mail/ada")
                .into_iter()
                .find(|one| one["_id"] == "sieve:scripts")
                .unwrap();
            document.shift_remove("Active");
            document.shift_remove("Scripts");
            document.extend(crate::common::fields(wrong));
            put(&database, Value::Object(document)).unwrap();
            let subject = format!("{}", world.in_folder("ada", "Inbox").len());
            world.bring(&subject, &["ada"], is_direct).unwrap();
        }
        assert_eq!(world.in_folder("ada", "Inbox"), ["one", "1", "2", "3", "4"]);
    }
}

#[test]
fn scripts_are_kept_named_and_limited() {
    let world = World::new();
    let ada = world.person("ada");
    let book = &world.scripts;
    assert_eq!(book.kept(&ada).unwrap().scripts.len(), 0);
    let long_comment = format!("# {}\nkeep;", "x".repeat(20_000));
    book.put(&ada, "a", &long_comment).unwrap();
    assert_eq!(book.kept(&ada).unwrap().scripts["a"], long_comment);
    book.put(&ada, "a", "keep;").unwrap();
    book.put(&ada, "Gr\u{f6}\u{df}e", "discard;").unwrap();
    book.set_active(&ada, "a").unwrap();
    assert!(matches!(book.put(&ada, "a", "no_such;"), Err(ScriptsError::Script(_))));
    assert!(matches!(book.put(&ada, "", "keep;"), Err(ScriptsError::Name)));
    assert!(matches!(book.put(&ada, "x\ny", "keep;"), Err(ScriptsError::Name)));
    assert!(matches!(book.delete(&ada, "a"), Err(ScriptsError::Active)));
    assert!(matches!(book.delete(&ada, "b"), Err(ScriptsError::Missing)));
    assert!(matches!(book.rename(&ada, "a", "Gr\u{f6}\u{df}e"), Err(ScriptsError::Exists)));
    book.rename(&ada, "a", "b").unwrap();
    let kept = book.kept(&ada).unwrap();
    assert_eq!((kept.active.as_str(), kept.scripts["b"].as_str()), ("b", "keep;"));
    book.set_active(&ada, "").unwrap();
    book.delete(&ada, "b").unwrap();
    assert!(matches!(book.set_active(&ada, "b"), Err(ScriptsError::Missing)));
    let long = format!("# {}\n", "x".repeat(TEXTS_MAX_BYTES));
    assert!(book.put(&ada, "long", &long).is_err());
    assert!(matches!(book.has_room(&ada, "long", long.len() as u64), Err(ScriptsError::TooLarge)));
    for number in 1..SCRIPTS_MAX {
        book.put(&ada, &number.to_string(), "keep;").unwrap();
    }
    assert!(matches!(book.put(&ada, "one more", "keep;"), Err(ScriptsError::TooMany)));
    book.put(&ada, "1", "discard;").unwrap();
    assert!(book.kept(&world.person("bob")).unwrap().scripts.is_empty());
}
