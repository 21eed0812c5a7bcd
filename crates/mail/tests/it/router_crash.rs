//! The router's promise across kills: what was acknowledged reaches everybody, nobody gets it twice, what an
//! owner deleted stays deleted, and a sender is notified once.
//!
//! A child process deposits, routes and deletes; it is killed at random moments, again and again, and in the end
//! all is counted. `SCRINIUM_SEED=… SCRINIUM_KILLS=… cargo test -p scrinium-mail --test it router_crash` repeats a
//! run, as far as the moments of kills can be repeated, or makes it longer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_database::{Access, ChangesQuery, RowQuery};
use scrinium_fault::{Kills, Victim, tell};
use scrinium_mail::RouterOptions;
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value, json};

use crate::common::{Server, documents, fields, put};

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a test");

const PEOPLE: [&str; 6] = ["p0", "p1", "p2", "p3", "p4", "p5"];

/// Most memos of one child, so that a child that is never killed ends.
const MOST_MEMOS: u64 = 4_000;

/// To whom memo `number` goes: people, and whether somebody unknown too.
fn recipients(number: u64) -> (BTreeSet<&'static str>, bool) {
    let mut random = StdRng::seed_from_u64(number);
    let count = random.random_range(1..4);
    let mut people: BTreeSet<_> = (0..count).map(|_| PEOPLE[random.random_range(0..PEOPLE.len())]).collect();
    if random.random_ratio(1, 10) {
        people.extend(PEOPLE);
    }
    (people, random.random_ratio(1, 8))
}

fn memo(number: u64) -> Value {
    let (people, with_unknown) = recipients(number);
    let mut send_to: Vec<String> = people.iter().map(|name| (*name).to_owned()).collect();
    if people.len() == PEOPLE.len() {
        send_to = vec!["everybody".to_owned(), "p1".to_owned()];
    }
    if with_unknown {
        send_to.push(format!("unknown-{number}"));
    }
    json!({"Form": "Memo", "From": "p0", "SendTo": send_to, "Number": number, "Body": "b".repeat(3_000)})
}

/// Runs until it is killed; only the test below starts it.
#[test]
#[ignore = "a child process of the other test"]
fn child() {
    let Some((folder, first)) = Victim::order() else { return };
    let server = Server::open(&folder, &PEOPLE);
    server
        .add(json!({"_id": "group:everybody", "Form": "Group", "ListName": "everybody", "Members": PEOPLE}));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let options = RouterOptions { checkpoint_every: Duration::from_millis(20), ..RouterOptions::default() };
    let router = server.router_with(options);
    let _router = runtime.block_on(async { router.start() });
    tell("ready");
    std::thread::scope(|scope| {
        for depositor in 0..2 {
            let server = &server;
            scope.spawn(move || {
                for number in (first..first + MOST_MEMOS).filter(|number| number % 2 == depositor) {
                    server.mailboxes.deposit(fields(memo(number)), Vec::new()).unwrap();
                    tell(format_args!("ack {number}"));
                }
            });
        }
        scope.spawn(|| delete_some(&server, first));
    });
}

/// An owner of mail who deletes.
fn delete_some(server: &Server, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    loop {
        std::thread::sleep(Duration::from_millis(3));
        let file = format!("mail/{}", PEOPLE[random.random_range(0..PEOPLE.len())]);
        let Ok(database) = server.databases.get(&file) else { continue };
        let latest =
            ChangesQuery { descending: true, limit: Some(3), include_documents: true, ..Default::default() };
        let latest = database.changes(latest, &SERVER).unwrap().next_changes(3).unwrap();
        for change in latest.into_iter().filter(|change| !change.deleted) {
            let document: Value = serde_json::from_str(&change.document.unwrap()).unwrap();
            let Some(number) = document["Number"].as_u64() else { continue };
            tell(format_args!("deleting {file} {number}"));
            put(&database, json!({"_id": change.id, "_rev": document["_rev"], "_deleted": true})).unwrap();
            tell(format_args!("deleted {file} {number}"));
        }
    }
}

#[derive(Default)]
struct Told {
    acknowledged: BTreeSet<u64>,
    deleting: BTreeSet<(String, u64)>,
    deleted: BTreeSet<(String, u64)>,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let in_file = || (words[1].to_owned(), words[2].parse().unwrap());
        match words[0] {
            "ack" => drop(self.acknowledged.insert(words[1].parse().unwrap())),
            "deleting" => drop(self.deleting.insert(in_file())),
            "deleted" => drop(self.deleted.insert(in_file())),
            _ => {}
        }
    }
}

fn run_child_until_killed(folder: &Path, first: u64, lifetime: Duration, told: &mut Told) {
    let child = Victim::start(module_path!(), folder, first).unwrap();
    child.wait_until_ready().unwrap();
    std::thread::sleep(lifetime);
    for line in child.kill().unwrap() {
        told.hear(&line);
    }
}

#[test]
fn everybody_gets_once_what_was_acknowledged_whenever_the_server_is_killed() {
    let kills = Kills::from_environment(6);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let folder = tempfile::tempdir().unwrap();
    let mut told = Told::default();
    for run in 0..kills.count {
        let lifetime = Duration::from_millis(random.random_range(20..400));
        run_child_until_killed(folder.path(), run * MOST_MEMOS, lifetime, &mut told);
    }
    assert!(told.acknowledged.len() > 20, "only {} memos: the test shows nothing", told.acknowledged.len());

    let server = Server::open(folder.path(), &PEOPLE);
    let mut router = server.router();
    server.route_all(&mut router);
    for mailbox in server.mailboxes.all() {
        assert!(documents(mailbox).is_empty(), "{} is not empty", mailbox.name());
    }
    for name in PEOPLE {
        check_mail(&server, name, &told);
    }
    check_failures(&server, &told);
    println!("{} memos, {} deleted by their owners", told.acknowledged.len(), told.deleted.len());
}

fn check_mail(server: &Server, name: &str, told: &Told) {
    let file = format!("mail/{name}");
    let database = server.databases.get(&file).unwrap();
    let mut there: BTreeMap<u64, u64> = BTreeMap::new();
    let all = documents(&database);
    check_inbox(&database, &all);
    for memo in all {
        if let Some(number) = memo.get("Number").and_then(Value::as_u64) {
            *there.entry(number).or_default() += 1;
        }
    }
    for (number, count) in &there {
        assert_eq!(*count, 1, "{file} has memo {number} twice");
        assert!(recipients(*number).0.contains(name), "{file} has memo {number} that is for others");
        assert!(!told.deleted.contains(&(file.clone(), *number)), "memo {number} came back to {file}");
    }
    for number in told.acknowledged.iter().filter(|number| recipients(**number).0.contains(name)) {
        let gone = told.deleting.contains(&(file.clone(), *number));
        assert!(gone || there.contains_key(number), "{file} lacks memo {number}");
    }
    let deleted = tombstones(&database);
    let at_least = told.deleted.iter().filter(|(of, _)| *of == file).count();
    let at_most = told.deleting.iter().filter(|(of, _)| *of == file).count();
    assert!(
        (at_least..=at_most).contains(&deleted),
        "{file}: {deleted} tombstones, not {at_least} to {at_most}"
    );
}

/// Whatever is there is in the Inbox, each memo once, and nothing else is.
fn check_inbox(database: &OpenDatabase, all: &[Map<String, Value>]) {
    let (mut members, mut since) = (Vec::new(), 0);
    let total = loop {
        let some = database.folder_members("Inbox", since, usize::MAX, (None, &SERVER)).unwrap();
        members.extend(some.members.into_iter().map(|member| member.id));
        since = some.last_uid;
        if !some.more {
            break some.total.unwrap();
        }
    };
    let ids: BTreeSet<&str> = all.iter().map(|memo| memo["_id"].as_str().unwrap()).collect();
    assert_eq!((members.len() as u64, members.len()), (total, ids.len()), "{}", database.name());
    let members: BTreeSet<&str> = members.iter().map(String::as_str).collect();
    assert_eq!(members, ids, "{}", database.name());
    let mut rows = database.folder_rows("Inbox", RowQuery::default(), (None, &SERVER)).unwrap();
    let rows = rows.next_rows(usize::MAX).unwrap();
    assert_eq!(rows.len(), ids.len());
    assert_eq!(rows.iter().map(|row| row.id.as_deref().unwrap()).collect::<BTreeSet<_>>(), ids);
    assert_eq!(database.unread("p0").unwrap().database, total);
}

fn tombstones(database: &OpenDatabase) -> usize {
    let mut changes = database.changes(ChangesQuery::default(), &SERVER).unwrap();
    let all = changes.next_changes(usize::MAX).unwrap();
    all.iter().filter(|change| change.deleted).count()
}

fn check_failures(server: &Server, told: &Told) {
    let mut told_of: BTreeMap<String, u64> = BTreeMap::new();
    for memo in server.documents("mail/p0") {
        if let Some(recipient) = memo.get("IntendedRecipient").and_then(|list| list[0].as_str()) {
            *told_of.entry(recipient.to_owned()).or_default() += 1;
        }
    }
    assert!(told_of.values().all(|count| *count == 1), "the sender was told twice: {told_of:?}");
    for number in told.acknowledged.iter().filter(|number| recipients(**number).1) {
        assert!(
            told_of.contains_key(&format!("unknown-{number}")),
            "the sender was not told of memo {number}"
        );
    }
}
