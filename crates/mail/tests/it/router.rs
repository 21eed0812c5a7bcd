//! The router: everybody gets a memo once, senders are told of failures, nothing is lost.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Server, fields, put};
use scrinium_clock::Clock;
use scrinium_database::{Access, DatabaseError, DatabaseOptions, InitialAccess, ReadOptions, RowQuery};
use scrinium_directory::{Directory, DirectoryDomain, Found, NameLookup, Person};
use scrinium_mail::{DepositError, MemoError, Round, Routed, RouterOptions};
use scrinium_store::{Batch, Direction, Family, KeyRange};
use serde_json::{Map, Value, json};

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a test");

#[test]
fn a_memo_reaches_everybody_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada", "bob", "eve"]);
    server.add(
        json!({"_id": "group:all", "Form": "Group", "ListName": "All", "Members": ["bob", "all", "ada"]}),
    );
    // Two people who share a mail database.
    server.add(json!({"_id": "person:bobby", "Form": "Person", "ShortName": "bobby", "FullName": "Bobby",
                      "MailFile": "mail/bob"}));
    let mut router = server.router();
    server.deposit(json!({
        "Form": "Memo", "From": "eve", "SendTo": ["All", "ada@home.example", "Bobby"], "BlindCopyTo": ["eve"],
        "Subject": "engine", "Body": "x".repeat(10_000), "PostedDate": "2026-01-05T08:58:59Z", "Colour": "green"
    }));
    let round = router.round().unwrap();
    assert_eq!(round, Round { memos: 1, delivered: 3, routed: 1, ..Round::default() });
    for name in ["ada", "bob", "eve"] {
        let [memo] = <[_; 1]>::try_from(server.documents(&format!("mail/{name}"))).unwrap();
        assert_eq!((&memo["Subject"], &memo["Colour"]), (&json!("engine"), &json!("green")));
        assert_eq!(memo["SendTo"].as_array().unwrap().len(), 3);
        assert_eq!(memo["PostedDate"], "2026-01-05T08:58:59Z");
        assert!(memo["DeliveredDate"].as_str().unwrap().starts_with("20"));
        assert!(!memo.contains_key("BlindCopyTo"), "nobody sees who got it blindly");
        check_inbox(&server, name, &memo);
    }
    for mailbox in ["mail.box", "mail1.box"] {
        assert!(server.documents(mailbox).is_empty());
    }
    assert_eq!(router.round().unwrap(), Round::default());
    assert_eq!(server.statistic("Mail.Delivered"), 3.0);
    assert_eq!(server.statistic("Mail.Routed"), 1.0);
    assert_eq!(server.statistic("Mail.Waiting"), 0.0);
    assert_eq!(server.statistics.snapshot().operations["MAIL_DEPOSIT"].count, 1);
    assert_eq!(server.statistics.snapshot().operations["MAIL_DELIVER"].count, 1);
}

/// The memo is unread in the Inbox, and its line there says when it came and what it is about.
fn check_inbox(server: &Server, name: &str, memo: &Map<String, Value>) {
    let database = server.databases.get(&format!("mail/{name}")).unwrap();
    let inbox = database.folder_members("Inbox", 0, 10, (Some(name), &SERVER)).unwrap();
    assert_eq!((inbox.total.unwrap(), inbox.members[0].id.as_str()), (1, memo["_id"].as_str().unwrap()));
    assert_eq!(inbox.members[0].read, Some(false));
    let mut rows = database.folder_rows("Inbox", RowQuery::default(), (None, &SERVER)).unwrap();
    let row: Value = serde_json::from_str(rows.next_rows(10).unwrap()[0].value.as_ref().unwrap()).unwrap();
    assert_eq!((&row["Subject"], &row["Date"]), (&memo["Subject"], &memo["DeliveredDate"]));
}

#[test]
fn what_becomes_of_memos_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada", "bob"]);
    let lines = Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = Arc::clone(&lines);
    let mut router = server.router().on_routed(move |routed| {
        let Routed { from, state, delivered, failed, reason, attempts, .. } = routed;
        let reason = reason.unwrap_or("-");
        told.lock()
            .unwrap()
            .push(format!("{from} {} {delivered} {failed} {attempts} {reason}", state.word()));
    });
    server.deposit(json!({"Form": "Memo", "From": "ada", "SendTo": ["ada", "bob"]}));
    server.deposit(json!({"Form": "Memo", "From": "bob", "SendTo": ["ada", "nobody"]}));
    server.deposit(json!({"Form": "Memo", "From": "a stranger", "SendTo": ["nobody"]}));
    server.route_all(&mut router);
    let mut lines = lines.lock().unwrap().clone();
    lines.sort();
    let starts = [
        "Mail Router delivered 1 0 0 -",
        "a stranger dead 0 1 0 nobody",
        "ada delivered 2 0 0 -",
        "bob returned 1 1 0 nobody",
    ];
    assert_eq!(lines.len(), starts.len(), "{lines:?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn attachments_are_shared_by_all_who_get_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada", "bob"]);
    let bytes: Vec<u8> = (0..400_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let mailbox = server.databases.get("mail.box").unwrap();
    let content = mailbox.store_content(&bytes, "application/zip").unwrap();
    let attachment = scrinium_database::NewAttachment {
        name: "a.zip".to_owned(),
        content_type: "application/zip".to_owned(),
        content,
    };
    let memo = fields(json!({"Form": "Memo", "From": "ada", "SendTo": "ada, bob"}));
    server.mailboxes.deposit(memo, vec![attachment]).unwrap();
    server.route_all(&mut server.router());
    server.databases.collect_contents().unwrap();
    for name in ["mail/ada", "mail/bob"] {
        let database = server.databases.get(name).unwrap();
        let id = server.documents(name)[0]["_id"].as_str().unwrap().to_owned();
        let reader = database.open_attachment(&id, "a.zip", None, &SERVER).unwrap();
        assert_eq!(reader.length, 400_000);
        assert_eq!(reader.read(399_000, 1_000).unwrap(), bytes[399_000..]);
    }
}

#[test]
fn senders_are_told_and_nobody_is_told_of_that() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada", "bob"]);
    let mut router = server.router();
    server.deposit(
        json!({"_id": "partly", "Form": "Memo", "From": "Ada <ada@acme.example>", "Subject": "half",
                          "SendTo": ["bob", "nobody", "x@elsewhere.example"], "$MessageID": "<1@x>"}),
    );
    server.deposit(
        json!({"_id": "lost", "Form": "Memo", "From": "stranger@elsewhere.example", "SendTo": ["nobody"]}),
    );
    server.deposit(json!({"_id": "unsigned", "Form": "Memo", "SendTo": ["nobody", "bob"]}));
    let circular =
        json!({"_id": "circular", "Form": "NonDelivery Report", "From": "ada", "SendTo": ["nobody"]});
    server.deposit(circular);
    server.route_all(&mut router);

    assert_eq!(server.documents("mail/bob").len(), 2);
    let [told] = <[_; 1]>::try_from(server.documents("mail/ada")).unwrap();
    assert_eq!(told["Form"], "NonDelivery Report");
    assert_eq!(told["IntendedRecipient"], json!(["nobody", "x@elsewhere.example"]));
    assert_eq!(told["InReplyTo"], "<1@x>");
    assert_eq!(told["Subject"], "DELIVERY FAILURE: nobody: nobody in the directory has this name or address");

    let mut dead: Vec<_> = ["mail.box", "mail1.box"].iter().flat_map(|name| server.documents(name)).collect();
    dead.sort_by_key(|memo| memo["_id"].to_string());
    let ids: Vec<&str> = dead.iter().map(|memo| memo["_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["circular", "lost", "unsigned"]);
    assert!(dead.iter().all(|memo| memo["$State"] == "Dead" && memo["FailureReason"].is_array()));
    assert_eq!(server.statistic("Mail.Dead"), 3.0);
    assert_eq!(server.statistic("Mail.Waiting"), 0.0);

    // The next router knows them still. An administrator makes good what was missing, and lets one go again:
    // those who have it do not get it twice.
    drop(router);
    let mut router =
        server.router_with(RouterOptions { checkpoint_every: Duration::ZERO, ..RouterOptions::default() });
    server.route_all(&mut router);
    assert_eq!(server.statistic("Mail.Dead"), 3.0);
    server
        .add(json!({"_id": "person:nobody", "Form": "Person", "ShortName": "nobody", "FullName": "No Body"}));
    let mut again = dead[2].clone();
    again.insert("$State".to_owned(), Value::Null);
    let mailbox = ["mail.box", "mail1.box"].map(|name| server.databases.get(name).unwrap());
    let home = mailbox
        .iter()
        .find(|mailbox| mailbox.read("unsigned", &ReadOptions::default(), &SERVER).is_ok())
        .unwrap();
    put(home, Value::Object(again)).unwrap();
    server.route_all(&mut router);
    assert_eq!(server.documents("mail/nobody").len(), 1);
    assert_eq!(server.documents("mail/bob").len(), 2);
    assert!(!server.documents("mail/nobody")[0].contains_key("FailureReason"));
    assert_eq!(server.statistic("Mail.Dead"), 2.0);
}

#[test]
fn a_memo_to_nobody_is_refused_at_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &[]);
    let refused = server.mailboxes.deposit(fields(json!({"Form": "Memo", "From": "ada"})), Vec::new());
    assert!(matches!(refused, Err(DepositError::Memo(MemoError::NoRecipients))));
    // One that came past the door is reported, or dies; it does not stop the others.
    put(&server.databases.get("mail.box").unwrap(), json!({"SendTo": 7})).unwrap();
    server.route_all(&mut server.router());
    assert_eq!(server.documents("mail.box")[0]["$State"], "Dead");
}

#[test]
fn an_id_used_again_is_another_memo() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada"]);
    let mut router = server.router();
    for number in 0..3 {
        // Into the same mail.box, whatever the turn.
        let mailbox = server.databases.get("mail.box").unwrap();
        put(&mailbox, json!({"_id": "same", "From": "ada", "SendTo": "ada", "Number": 1})).unwrap();
        server.route_all(&mut router);
        assert_eq!(server.documents("mail/ada").len(), number + 1);
    }
}

/// A directory in which asking for one name stops the router, as a crash would.
struct Crashing {
    directory: Arc<Directory>,
    name: &'static str,
}

impl NameLookup for Crashing {
    fn find(&self, name: &str) -> Found {
        assert_ne!(name, self.name, "the crash that this test needs");
        self.directory.find(name)
    }

    fn groups_of(&self, person: &Person) -> Arc<[String]> {
        self.directory.groups_of(person)
    }

    fn domain(&self, name: &str) -> Option<Arc<DirectoryDomain>> {
        self.directory.domain(name)
    }
}

#[test]
fn after_a_crash_nobody_gets_twice_what_they_had_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada", "bob"]);
    server.deposit(json!({"From": "bob", "SendTo": ["ada", "nobody"]}));
    // The sender is looked up after the deliveries, before anything is taken out of the mail.box.
    let crashing = Crashing { directory: server.directory.clone(), name: "bob" };
    let mut router = server.router_over(Arc::new(crashing), RouterOptions::default());
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| router.round())).is_err());
    drop(router);
    let delivered = server.documents("mail/ada").remove(0);
    assert_eq!(server.statistic("Mail.Waiting"), 1.0);

    let ada = server.databases.get("mail/ada").unwrap();
    put(&ada, json!({"_id": delivered["_id"], "_rev": delivered["_rev"], "_deleted": true})).unwrap();
    let mut router = server.router();
    assert_eq!(router.round().unwrap(), Round { memos: 1, routed: 1, failures: 1, ..Round::default() });
    server.route_all(&mut router);
    assert!(server.documents("mail/ada").is_empty());
    assert_eq!(server.documents("mail/bob").len(), 1, "the sender is notified once");
    assert_eq!(server.statistic("Mail.Waiting"), 0.0);
}

#[test]
fn a_memo_that_nothing_takes_stays_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada", "bob"]);
    let body: Vec<String> = (0..3_000).map(|number| number.to_string()).collect();
    server.deposit(json!({"From": "ada", "SendTo": ["bob"], "Subject": "long", "Body": body}));
    server.deposit(json!({"From": "ada", "SendTo": ["bob"], "Subject": "short"}));
    server.close();
    // Neither bob's mail database nor the mail.box takes a document of this length now, nor the word to ada.
    let options = DatabaseOptions { document_max_bytes: 200, ..DatabaseOptions::default() };
    let clock = Clock::manual(1_790_000_000_000);
    let server = Server::at(folder.path(), &[], options, clock.clock());
    let options = RouterOptions::default();
    let mut router = server.router_with(options.clone());
    let round = router.round().unwrap();
    assert_eq!((round.memos, round.delivered, round.routed, round.later), (2, 1, 1, 1));
    // Tried again after a second, then after twice as long, and so on, up to five minutes.
    for wait_s in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        clock.advance(Duration::from_secs(wait_s) - Duration::from_millis(1));
        assert_eq!(router.round().unwrap().memos, 0, "less than {wait_s} s");
        clock.advance(Duration::from_millis(1));
        assert_eq!(router.round().unwrap().later, 1, "{wait_s} s");
    }
    assert_eq!(server.statistic("Mail.Waiting"), 1.0);
    drop(router);
    server.close();

    let server = Server::open(folder.path(), &[]);
    server.route_all(&mut server.router_with(options));
    assert_eq!(server.documents("mail/bob").len(), 2);
}

#[test]
fn a_mail_database_that_refuses_a_memo_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada", "bob"]);
    let memo =
        fields(json!({"From": "ada", "SendTo": ["bob"], "_attachments": {}, "Long": "z".repeat(1_500)}));
    server.mailboxes.deposit(memo, Vec::new()).unwrap();
    server.close();
    let options = DatabaseOptions { document_max_bytes: 1_400, ..DatabaseOptions::default() };
    let server = Server::with(folder.path(), &[], options);
    server.route_all(&mut server.router());
    assert!(server.documents("mail/bob").is_empty());
    let told = server.documents("mail/ada");
    assert!(
        told[0]["FailureReason"][0]
            .as_str()
            .unwrap()
            .starts_with("bob Someone: the mail database does not take")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_task_routes_what_comes_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada", "bob"]);
    let handle = server.router().start();
    for number in 0..40 {
        let memo = fields(json!({"From": "ada", "SendTo": ["ada", "bob"], "Number": number}));
        server.mailboxes.deposit(memo, Vec::new()).unwrap();
    }
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while server.documents("mail/bob").len() < 40 && std::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    handle.stop().await;
    assert_eq!(server.documents("mail/ada").len(), 40);
    assert_eq!(server.documents("mail/bob").len(), 40);
}

/// Cuts off each record of `family` that has `mark` in it.
fn harm_records(server: &Server, mark: &str) -> usize {
    let snapshot = server.store.snapshot();
    let mut batch = Batch::new();
    let mut harmed = 0;
    for family in [Family::Point, Family::Scan, Family::Churn] {
        let mut cursor = snapshot.cursor(family, KeyRange::ALL, Direction::Forward);
        while let Some((key, value)) = cursor.next().unwrap() {
            if value.windows(mark.len()).any(|window| window == mark.as_bytes()) {
                batch.put(family, key, value.get(..2).unwrap_or_default());
                harmed += 1;
            }
        }
    }
    server.store.commit(batch).unwrap();
    harmed
}

#[test]
fn a_damaged_memo_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada", "bob"]);
    for text in ["the first", "to be harmed", "the last"] {
        server.deposit(json!({"Form": "Memo", "From": "ada", "SendTo": "bob", "Subject": text}));
    }
    assert_eq!(harm_records(&server, "to be harmed"), 1);
    let mut router = server.router();
    server.route_all(&mut router);
    let mut subjects: Vec<Value> =
        server.documents("mail/bob").into_iter().map(|memo| memo["Subject"].clone()).collect();
    subjects.sort_by_key(Value::to_string);
    assert_eq!(subjects, ["the first", "the last"]);
    // It stays where it is, and later memos pass it.
    server.deposit(json!({"Form": "Memo", "From": "ada", "SendTo": "bob", "Subject": "one more"}));
    server.route_all(&mut router);
    assert_eq!(server.documents("mail/bob").len(), 3);
}

/// They would be dead letters, all of them, since the log does not take what one mail file gets of a round in one piece.
#[test]
fn a_round_of_more_than_the_log_takes_at_once_reaches_everybody() {
    const MEMOS: u64 = 40;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada"]);
    for number in 0..MEMOS {
        // The recipient whom nobody knows makes a dead letter of each, since there is no sender to be told.
        server.deposit(
            json!({"Form": "Memo", "From": "outside", "SendTo": ["ada", "nobody"], "Subject": number,
            "Body": "x".repeat(100_000)}),
        );
    }
    let round = server.router().round().unwrap();
    assert_eq!(round, Round { memos: MEMOS, delivered: MEMOS, dead: MEMOS, ..Round::default() });
    assert_eq!(server.documents("mail/ada").len(), 40);
    let dead = ["mail.box", "mail1.box"].map(|name| server.documents(name)).concat();
    assert_eq!(dead.len(), 40);
    for letter in dead {
        let reasons = letter["FailureReason"].as_array().unwrap();
        assert_eq!(reasons.len(), 1, "ada has it: {reasons:?}");
    }
}

#[test]
fn mail_for_a_mail_in_database_comes_into_it_once_and_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path(), &["ada", "bob"]);
    server.databases.create("tickets", &InitialAccess::Closed).unwrap();
    for (id, name, database) in [("tickets", "Tickets", "tickets"), ("lost", "Lost", "lost")] {
        server.add(json!({"_id": format!("mail-in:{id}"), "Form": "MailInDatabase", "Name": name,
            "Database": database, "InternetAddress": format!("{id}@acme.example"), "Addresses": [format!("{id}@home.example")]}));
    }
    server.add(
        json!({"_id": "group:desk", "Form": "Group", "ListName": "Desk", "Members": ["bob", "Tickets"]}),
    );
    server.add(json!({"_id": "person:eve", "Form": "Person", "ShortName": "eve", "FullName": "eve",
        "ForwardTo": ["lost@acme.example"], "ForwardOnly": true}));
    let mut router = server.router();
    server.deposit(json!({"From": "ada", "Subject": "one", "Readers": ["ada"],
        "SendTo": ["Desk", "tickets@acme.example", "TICKETS@home.example", "tickets+x@home.example"]}));
    server.route_all(&mut router);
    let [memo] = <[_; 1]>::try_from(server.documents("tickets")).unwrap();
    assert_eq!((&memo["Subject"], memo.get("Readers")), (&json!("one"), None));
    let tickets = server.databases.get("tickets").unwrap();
    let inbox = tickets.folder_members("Inbox", 0, 10, (None, &SERVER)).unwrap();
    assert_eq!(inbox.members[0].id.as_str(), memo["_id"].as_str().unwrap());
    assert_eq!((server.documents("mail/bob").len(), server.documents("mail/ada").len()), (1, 0));
    // Of a database that is not there the sender is told, and none is made; what eve would have passed on there has failed too.
    server.deposit(json!({"From": "ada", "Subject": "two", "SendTo": ["lost@acme.example", "bob", "eve"]}));
    server.route_all(&mut router);
    let told = server.documents("mail/ada");
    assert_eq!(told[0]["FailureReason"], json!(["Lost: the database of this address is not there"]));
    assert!(matches!(server.databases.get("lost"), Err(DatabaseError::NotFound { .. })));
    assert_eq!(server.documents("mail/bob").len(), 2);
}
