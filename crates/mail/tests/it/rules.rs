//! Mail rules of the server and of people, for memos and for messages that go straight into mail files.

use bytes::Bytes;
use scrinium_mail::{
    DepositError, Deposited, EnvelopeItems, IncomingMail, IncomingMessage, MessageSource, Resolver, RuleBook,
    RuleOwner, RulesError,
};
use serde_json::{Value, json};

use crate::common::{SERVER, Server, put};

/// Ways by which a message comes.
const WAYS: [bool; 2] = [true, false];

struct World {
    server: Server,
    book: RuleBook,
    mail: IncomingMail,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::open(folder.path(), &["ada", "bob"]);
        let book = RuleBook::new(&server.databases);
        let resolver = Resolver::new(server.directory.clone(), &["home.example".to_owned()]);
        let mail =
            IncomingMail::new(&server.databases, server.mailboxes.clone(), resolver, &server.statistics);
        Self { server, book, mail, _folder: folder }
    }

    fn rules(&self, owner: RuleOwner<'_>, rules: Value) {
        self.book.set(owner, &json!({"rules": rules})).unwrap();
    }

    /// Brings a message straight, or by a mail.box.
    fn bring(&self, subject: &str, to: &[&str], is_direct: bool) -> Result<Deposited, DepositError> {
        let text = format!(
            "From: eve@far.example\r\nMessage-ID: <{subject}@far.example>\r\nSubject: {subject}\r\n\r\nText.\r\n"
        );
        let message = IncomingMessage {
            source: MessageSource::from(Bytes::from(text)),
            recipients: to.iter().map(|name| (*name).to_owned()).collect(),
            return_path: "eve@far.example".to_owned(),
            envelope: EnvelopeItems { repeat_id: Some(subject.to_owned()), ..EnvelopeItems::default() },
        };
        let brought = if is_direct {
            self.mail.accept(subject, &message)
        } else {
            self.server.mailboxes.deposit_message(subject, &message)
        };
        self.route();
        brought
    }

    fn route(&self) {
        let mut router = self.server.router();
        self.server.route_all(&mut router);
    }

    fn in_folder(&self, name: &str, folder: &str) -> Vec<String> {
        let Ok(database) = self.server.databases.get(&format!("mail/{name}")) else { return Vec::new() };
        let Ok(found) = database.folder_members(folder, 0, 100, (Some(name), &SERVER)) else {
            return Vec::new();
        };
        let subject = |id: &str| {
            let all = self.server.documents(&format!("mail/{name}"));
            let memo = all.into_iter().find(|memo| memo["_id"] == *id).unwrap();
            memo["Subject"].as_str().unwrap().to_owned()
        };
        found.members.iter().map(|member| subject(&member.id)).collect()
    }

    fn waiting(&self) -> Vec<serde_json::Map<String, Value>> {
        ["mail.box", "mail1.box"].iter().flat_map(|name| self.server.documents(name)).collect()
    }
}

fn rule(when: &str, actions: Value) -> Value {
    json!({"name": "one", "when": when, "actions": actions})
}

const ADA: RuleOwner<'static> = RuleOwner::Person("person:ada");
const BOB: RuleOwner<'static> = RuleOwner::Person("person:bob");

#[test]
fn a_person_s_rules_sort_marks_and_refuse_whichever_way_a_message_comes() {
    for is_direct in WAYS {
        let world = World::new();
        world.rules(
            ADA,
            json!([
                rule(
                    "@Begins(Subject; \"list\")",
                    json!([{"move": "Lists\\A"}, {"copy": "Later"}, {"mark": ["read", "flagged", "work"]}])
                ),
                rule("@Contains(From; \"eve@\") & Subject = \"spam\"", json!([{"reject": "No, thank you."}])),
            ]),
        );
        world.bring("list one", &["ada", "bob"], is_direct).unwrap();
        world.bring("other", &["ada"], is_direct).unwrap();
        assert_eq!(world.in_folder("ada", "Lists\\A"), ["list one"]);
        assert_eq!(world.in_folder("ada", "Later"), ["list one"]);
        assert_eq!(world.in_folder("ada", "Inbox"), ["other"]);
        assert_eq!(world.in_folder("bob", "Inbox"), ["list one"], "rules are their owner's alone");
        let memo = |name: &str| {
            let all = world.server.documents(&format!("mail/{name}"));
            all.into_iter().find(|memo| memo["Subject"] == "list one").unwrap()
        };
        assert_eq!(memo("ada")["$Flags"], json!(["\\Flagged", "work"]));
        assert!(!memo("bob").contains_key("$Flags"));
        let database = world.server.databases.get("mail/ada").unwrap();
        assert_eq!(database.unread("ada").unwrap().database, 1, "what is marked as read is");
        let spam = world.bring("spam", &["ada"], is_direct);
        if is_direct {
            assert!(matches!(spam, Err(DepositError::Rejected(text)) if text == "No, thank you."));
            assert!(world.waiting().is_empty());
        } else {
            // Nobody of this server can hear of it.
            assert_eq!(world.waiting()[0]["FailureReason"], json!(["No, thank you."]));
        }
        assert_eq!(world.server.documents("mail/ada").len(), 2);
    }
}

#[test]
fn rules_of_the_server_hold_reject_and_journal() {
    for is_direct in WAYS {
        let world = World::new();
        world.rules(
            RuleOwner::Server,
            json!([
                rule("Subject = \"held\"", json!([{"hold": "to be looked at"}])),
                rule("Subject = \"refused\"", json!([{"reject": "We do not take this."}])),
                rule("@Contains(Subject; \"deal\")", json!([{"journal": "journal"}, {"copy": "Deals"}])),
            ]),
        );
        for _ in 0..2 {
            world.bring("a deal", &["ada", "bob"], is_direct).unwrap();
        }
        let [kept] = <[_; 1]>::try_from(world.server.documents("journal")).unwrap();
        assert_eq!((&kept["Subject"], &kept["Recipients"]), (&json!("a deal"), &json!(["ada", "bob"])));
        assert_eq!(kept["$ReturnPath"], "eve@far.example");
        assert_eq!(world.in_folder("ada", "Deals"), ["a deal"]);
        assert_eq!(world.in_folder("bob", "Inbox"), ["a deal"]);

        world.bring("held", &["ada"], is_direct).unwrap();
        let held = world.waiting().remove(0);
        assert_eq!((&held["$State"], &held["HoldReason"]), (&json!("Held"), &json!("to be looked at")));
        assert_eq!(world.in_folder("ada", "Inbox"), ["a deal"]);
        // Somebody lets it go.
        for name in ["mail.box", "mail1.box"] {
            for mut memo in world.server.documents(name) {
                memo.shift_remove("$State");
                put(&world.server.databases.get(name).unwrap(), Value::Object(memo)).unwrap();
            }
        }
        world.route();
        assert_eq!(world.in_folder("ada", "Inbox"), ["a deal", "held"]);
        let refused = world.bring("refused", &["ada"], is_direct);
        assert_eq!(refused.is_err(), is_direct);
        assert_eq!(world.server.documents("mail/ada").len(), 2);
        let delivered = world.server.documents("mail/ada");
        assert!(
            delivered.iter().all(|memo| !memo.contains_key("$RulesDone") && !memo.contains_key("HoldReason"))
        );
    }
}

#[test]
fn who_forwards_in_a_circle_has_a_message_once() {
    for is_direct in WAYS {
        let world = World::new();
        world.rules(ADA, json!([rule("1", json!([{"forward": "bob@home.example"}]))]));
        world.rules(BOB, json!([rule("1", json!([{"forward": "ada@home.example"}]))]));
        for _ in 0..2 {
            world.bring("round", &["ada"], is_direct).unwrap();
        }
        let told = |to: &str| format!("Your mail is forwarded to {to}@home.example");
        for (name, to) in [("ada", "bob"), ("bob", "ada")] {
            let mut inbox = world.in_folder(name, "Inbox");
            inbox.sort();
            assert_eq!(inbox, [told(to), "round".to_owned()]);
        }
        assert!(world.waiting().is_empty());
        // What was written here, too, and comes from nobody who could hear of it.
        world.server.deposit(json!({"Form": "Memo", "From": "ada", "SendTo": ["ada"], "Subject": "note"}));
        world.route();
        for name in ["ada", "bob"] {
            let inbox = world.in_folder(name, "Inbox");
            assert_eq!((inbox.len(), inbox.last().map(String::as_str)), (3, Some("note")));
        }
    }
}

#[test]
fn rules_are_shown_as_they_were_written_and_hold_at_once() {
    let world = World::new();
    assert_eq!(world.book.show(ADA).unwrap(), json!({"rules": []}));
    let rules = json!({"rules": [{"name": "n", "when": "1", "actions": [{"move": "A"}], "stop": true}]});
    world.book.set(ADA, &rules).unwrap();
    assert_eq!(RuleBook::new(&world.server.databases).show(ADA).unwrap(), rules);
    assert_eq!(world.book.show(BOB).unwrap(), json!({"rules": []}));
    let wrong = json!({"rules": [{"name": "n", "when": "@NoSuchFunction", "actions": [{"move": "A"}]}]});
    assert!(matches!(world.book.set(ADA, &wrong), Err(RulesError::Rules(_))));
    world.bring("one", &["ada"], true).unwrap();
    world.book.set(ADA, &json!({"rules": []})).unwrap();
    world.bring("two", &["ada"], true).unwrap();
    assert_eq!((world.in_folder("ada", "A").len(), world.in_folder("ada", "Inbox").len()), (1, 1));
}
