//! The queue on the disk in simulated time: a courier that does what the test says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_clock::ManualClock;
use scrinium_mail_queue::outcome::Outcome;
use scrinium_mail_queue::route::{RouteError, Target};
use scrinium_mail_queue::show::{QueueCommand, Selection};
use scrinium_mail_queue::{Cause, ConnectionId, ConnectionUse, Effect, Ending, QueueEntry, SchedulerOptions};
use scrinium_outbound::{AttemptReport, Courier, Event, QueueManager, SendJob, Way, WayJob, queue_report};
use serde_json::json;

use crate::common::{START_MS, Server, manual};

/// What becomes of mail for a domain.
#[derive(Clone, Debug)]
enum Fate {
    Taken,
    Refused,
    Down,
    /// The end of the text was sent, and the connection broke.
    LostAnswer,
    NoDomain,
    /// Nothing is ever heard.
    Silent,
}

#[derive(Default)]
struct Play {
    fates: BTreeMap<String, Fate>,
    events: VecDeque<Event>,
    /// Messages that were taken: entry, recipient.
    taken: Vec<(String, String)>,
    attempts: usize,
    open: usize,
    most_open: usize,
}

/// A courier that answers at once.
#[derive(Clone, Default)]
struct Actor(Arc<Mutex<Play>>);

impl Actor {
    fn fate(&self, domain: &str, fate: Fate) {
        self.0.lock().fates.insert(domain.to_owned(), fate);
    }

    fn events(&self) -> Vec<Event> {
        self.0.lock().events.drain(..).collect()
    }
}

fn report_of(entry: &QueueEntry, outcome: Outcome, effect: Effect) -> AttemptReport {
    let outcomes = entry.waiting().into_iter().map(|place| (place, outcome.clone())).collect();
    AttemptReport { outcomes, effect, connection: ConnectionUse::Closed }
}

impl Courier for Actor {
    fn find_way(&self, job: WayJob) {
        let mut play = self.0.lock();
        let domain = job.domain.to_string();
        let way = match play.fates.get(&domain) {
            Some(Fate::NoDomain) => Err(RouteError::NoSuchDomain(domain)),
            _ => Ok(Way {
                targets: vec![Target { host: format!("mx.{domain}"), address: [192, 0, 2, 1].into() }],
            }),
        };
        play.events.push_back(Event::Way { attempt: job.attempt, way });
    }

    fn send(&self, job: SendJob) {
        let mut play = self.0.lock();
        assert!(job.entry.attempt.is_some(), "an attempt is written down before it is made");
        play.attempts += 1;
        let domain = job.entry.destination.host.clone();
        let fate = play.fates.get(&domain).cloned().unwrap_or(Fate::Taken);
        let outcome = |ending, cause| {
            let mut outcome = Outcome::new(ending, cause);
            outcome.host = Some(format!("mx.{domain}"));
            outcome
        };
        let report = match fate {
            Fate::Taken | Fate::NoDomain => {
                for place in job.entry.waiting() {
                    let to = job.entry.recipient(place).unwrap().address.to_string();
                    play.taken.push((job.entry.id.clone(), to));
                }
                report_of(&job.entry, outcome(Ending::Relayed, Cause::Accepted), Effect::Delivered)
            }
            Fate::Refused => {
                let mut outcome = outcome(Ending::Failed, Cause::RecipientRefused);
                outcome.reply = Some("550 5.1.1 No such user".to_owned());
                report_of(&job.entry, outcome, Effect::Reached)
            }
            Fate::Down => report_of(
                &job.entry,
                outcome(Ending::Deferred, Cause::ConnectionRefused),
                Effect::Unreachable,
            ),
            Fate::LostAnswer => {
                report_of(&job.entry, outcome(Ending::Unknown, Cause::AnswerLost), Effect::Throttled)
            }
            Fate::Silent => {
                play.open += 1;
                play.most_open = play.most_open.max(play.open);
                return;
            }
        };
        play.events.push_back(Event::Ended { attempt: job.attempt, report });
    }

    fn close(&self, _: ConnectionId) {}
}

/// Runs rounds, and moves the clock to where something is due, until `end_ms`.
fn run_until(manager: &mut QueueManager, actor: &Actor, clock: &ManualClock, end_ms: u64) {
    loop {
        let report = manager.round(actor.events()).unwrap();
        if report.has_more || !actor.0.lock().events.is_empty() {
            continue;
        }
        let now_ms = clock.clock().now_ms();
        let next_ms = report.wake_ms.unwrap_or(u64::MAX).max(now_ms + 1);
        if next_ms > end_ms {
            clock.advance(std::time::Duration::from_millis(end_ms.saturating_sub(now_ms)));
            return;
        }
        clock.advance(std::time::Duration::from_millis(next_ms - now_ms));
    }
}

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

struct Scene {
    server: Server,
    manager: QueueManager,
    actor: Actor,
    clock: ManualClock,
    _folder: tempfile::TempDir,
}

fn scene() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let clock = manual();
    let server = Server::open(folder.path(), &clock.clock());
    let actor = Actor::default();
    let manager = server.manager(Arc::new(actor.clone()), SchedulerOptions::default());
    Scene { server, manager, actor, clock, _folder: folder }
}

impl Scene {
    /// How often ada has heard of a failure.
    fn failures(&self) -> usize {
        let notices = self.server.documents("mail/ada").into_iter();
        notices.filter(|notice| notice["Subject"] == "Your message was not delivered").count()
    }

    fn send(&self, memo: serde_json::Value) {
        self.server.deposit(memo);
        self.server.route_all(&mut self.server.router());
    }

    fn run_for(&mut self, time_ms: u64) {
        let end_ms = self.clock.clock().now_ms() + time_ms;
        run_until(&mut self.manager, &self.actor, &self.clock, end_ms);
        self.server.route_all(&mut self.server.router());
    }
}

#[test]
fn a_memo_for_somebody_elsewhere_leaves_as_a_message() {
    let mut scene = scene();
    scene.send(json!({"Form": "Memo", "From": "ada Someone <ada@acme.example>", "SendTo": ["bob", "Eve <eve@else.example>"],
        "CopyTo": "Group of G\u{f6}del <mal@third.example>", "BlindCopyTo": ["secret@else.example"],
        "Subject": "Gr\u{fc}\u{df}e", "Body": "Hello\n.\nG\u{f6}del", "PostedDate": "2026-01-01T08:00:00Z"}));
    let entries = scene.server.documents("smtp.box");
    assert_eq!(entries.len(), 2, "one for each destination");
    let id = entries[0]["_id"].as_str().unwrap();
    let source = scene.server.source("smtp.box", id);
    for line in [
        "From: ada Someone <ada@acme.example>\r\n",
        "To: bob Someone <bob@acme.example>,\r\n Eve <eve@else.example>\r\n",
        "Date: Thu, 01 Jan 2026 08:00:00 +0000\r\n",
        "Subject: =?utf-8?B?R3LDvMOfZQ==?=\r\n",
        "Content-Transfer-Encoding: quoted-printable\r\n",
        "Hello\r\n.\r\nG=C3=B6del\r\n",
    ] {
        assert!(source.contains(line), "{line} in {source}");
    }
    assert!(!source.contains("secret@else.example"), "nobody sees who got it blindly");
    assert!(source.is_ascii() && source.contains("Message-ID: <") && source.contains("with HTTP"));
    scene.run_for(MINUTE_MS);
    let mut taken: Vec<String> = scene.actor.0.lock().taken.iter().map(|(_, to)| to.clone()).collect();
    taken.sort();
    assert_eq!(taken, ["eve@else.example", "mal@third.example", "secret@else.example"]);
    assert!(scene.server.documents("smtp.box").is_empty());
    assert_eq!(scene.server.documents("mail/bob").len(), 1);
    // A round that is repeated, as after a crash, finds what was handed over.
    assert!(scene.server.documents("mail.box").is_empty() && scene.server.documents("mail1.box").is_empty());
}

#[test]
fn who_is_refused_elsewhere_is_told_to_the_sender_once_and_in_his_language() {
    let mut scene = scene();
    scene.actor.fate("else.example", Fate::Refused);
    scene.send(json!({"Form": "Memo", "From": "bob", "SendTo": ["nobody@else.example"], "Subject": "x", "Body": "y"}));
    scene.run_for(DAY_MS);
    let [notice] = <[_; 1]>::try_from(scene.server.documents("mail/bob")).unwrap();
    assert_eq!(notice["Subject"], "Ihre Nachricht wurde nicht zugestellt");
    let source = scene.server.source("mail/bob", notice["_id"].as_str().unwrap());
    for part in ["Action: failed", "Status: 5.1.0", "smtp; 550 5.1.1 No such user", "message/rfc822"] {
        assert!(source.contains(part), "{part} in {source}");
    }
    assert_eq!(notice["$ReturnPath"], "");
    assert_eq!(scene.actor.0.lock().attempts, 1);
    assert!(scene.server.documents("smtp.box").is_empty());
}

#[test]
fn nobody_is_told_of_a_notice_that_cannot_be_sent() {
    let mut scene = scene();
    scene.actor.fate("else.example", Fate::Refused);
    // A delivery failure of the router's own, for somebody elsewhere.
    scene.send(json!({"Form": "NonDelivery Report", "From": "Mail Router", "SendTo": ["x@else.example"], "Subject": "f"}));
    scene.run_for(DAY_MS);
    let [dead] = <[_; 1]>::try_from(scene.server.documents("smtp.box")).unwrap();
    assert!(dead.get("envelope").is_none_or(|envelope| envelope.get("sender").is_none()));
    let report = queue_report(scene.server.queue.database(), Some(&Selection::All), 10).unwrap();
    assert!(report.entries[0].1.contains("no sender who could be notified"), "{:?}", report.entries[0].1);
    scene.run_for(31 * DAY_MS);
    assert!(scene.server.documents("smtp.box").is_empty(), "it goes after a month");
}

#[test]
fn a_dead_destination_is_tried_for_five_days_and_its_sender_hears_twice() {
    let mut scene = scene();
    scene.actor.fate("dead.example", Fate::Down);
    scene.send(
        json!({"Form": "Memo", "From": "ada", "SendTo": ["x@dead.example", "y@live.example"], "Body": "z"}),
    );
    scene.run_for(2 * MINUTE_MS);
    assert_eq!(scene.actor.0.lock().taken.len(), 1, "the other one is not held up");
    let report = queue_report(scene.server.queue.database(), None, 0).unwrap();
    let (destination, summary) = report.destinations.iter().next().unwrap();
    assert_eq!(destination.host, "dead.example");
    assert_eq!(summary.reason.as_deref(), Some("mx.dead.example refuses connections."));
    assert!(summary.next_ms.unwrap() > scene.clock.clock().now_ms());
    scene.run_for(5 * 60 * MINUTE_MS);
    let subjects = |scene: &Scene| -> Vec<String> {
        let notices = scene.server.documents("mail/ada");
        notices.iter().map(|notice| notice["Subject"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(subjects(&scene), ["Your message is delayed"]);
    scene.run_for(5 * DAY_MS);
    assert_eq!(subjects(&scene), ["Your message is delayed", "Your message was not delivered"]);
    let attempts = scene.actor.0.lock().attempts;
    assert!((20..60).contains(&attempts), "{attempts} attempts in five days");
    assert!(scene.server.documents("smtp.box").is_empty());
}

#[test]
fn a_domain_that_does_not_exist_is_told_at_once() {
    let mut scene = scene();
    scene.actor.fate("typo.example", Fate::NoDomain);
    scene.send(json!({"Form": "Memo", "From": "ada", "SendTo": ["x@typo.example"], "Body": "z"}));
    scene.run_for(MINUTE_MS);
    let [notice] = <[_; 1]>::try_from(scene.server.documents("mail/ada")).unwrap();
    assert!(
        notice["Body"].as_str().unwrap().contains("the recipient's domain does not exist")
            || notice["Body"].as_str().unwrap().contains("The recipient's domain does not exist")
    );
    assert_eq!(scene.actor.0.lock().attempts, 0, "nobody was connected to");
}

#[test]
fn many_recipients_are_split_by_destination_and_each_gets_the_message_once() {
    let mut scene = scene();
    let recipients: Vec<String> =
        (0..3_000).map(|number| format!("p{number}@d{}.example", number % 7)).collect();
    scene.send(json!({"Form": "Memo", "From": "ada", "SendTo": recipients, "Body": "z"}));
    assert_eq!(scene.server.documents("smtp.box").len(), 7);
    scene.run_for(MINUTE_MS);
    let mut taken: Vec<String> = scene.actor.0.lock().taken.iter().map(|(_, to)| to.clone()).collect();
    taken.sort();
    let mut expected = recipients;
    expected.sort();
    assert_eq!(taken, expected);
}

#[test]
fn a_list_has_a_sender_for_each_recipient() {
    let scene = scene();
    scene
        .send(json!({"Form": "Memo", "From": "list", "SendTo": ["a@x.example", "b@x.example"], "Body": "z"}));
    let report = queue_report(scene.server.queue.database(), Some(&Selection::All), 10).unwrap();
    let transactions = report.entries[0].0.transactions(None);
    let senders: Vec<String> =
        transactions.iter().map(|one| one.sender.as_ref().unwrap().to_string()).collect();
    assert_eq!(senders, ["list+a=x.example@acme.example", "list+b=x.example@acme.example"]);
    // And what comes back to such an address is for the list.
    scene.send(json!({"Form": "Memo", "From": "bob", "SendTo": [senders[0]], "Body": "bounce"}));
    assert_eq!(scene.server.documents("mail/list").len(), 1);
}

#[test]
fn orders_are_carried_out() {
    let mut scene = scene();
    scene.actor.fate("else.example", Fate::Down);
    scene.send(json!({"Form": "Memo", "From": "ada", "SendTo": ["x@else.example"], "Body": "z"}));
    scene.run_for(MINUTE_MS);
    let order = |scene: &mut Scene, command: QueueCommand| {
        let ids = scene
            .server
            .documents("smtp.box")
            .iter()
            .map(|entry| entry["_id"].as_str().unwrap().into())
            .collect();
        let (event, answer) = Event::order(ids, command, "root");
        scene.manager.round(vec![event]).unwrap();
        answer.blocking_recv().unwrap()
    };
    let attempts = |scene: &Scene| scene.actor.0.lock().attempts;
    let before = attempts(&scene);
    assert_eq!(order(&mut scene, QueueCommand::Hold("asked".to_owned())).done, 1);
    scene.run_for(2 * DAY_MS);
    assert_eq!(attempts(&scene), before, "what is kept back is not tried");
    let refused = order(&mut scene, QueueCommand::Retry);
    assert!(refused.reasons[0].contains("release it first"), "{refused:?}");
    scene.actor.fate("else.example", Fate::Taken);
    assert_eq!(order(&mut scene, QueueCommand::Release).done, 1);
    scene.run_for(MINUTE_MS);
    assert_eq!(scene.actor.0.lock().taken.len(), 1);
    scene.actor.fate("else.example", Fate::Down);
    scene.send(json!({"Form": "Memo", "From": "ada", "SendTo": ["x@else.example"], "Body": "z"}));
    scene.run_for(MINUTE_MS);
    assert_eq!(order(&mut scene, QueueCommand::Delete { notifies: true }).done, 1);
    scene.run_for(MINUTE_MS);
    assert_eq!(scene.failures(), 1);
    assert!(scene.server.documents("smtp.box").is_empty());
}

#[test]
fn a_manager_that_ends_anywhere_loses_no_message_and_repeats_no_notice() {
    let mut scene = scene();
    scene.actor.fate("silent.example", Fate::Silent);
    scene.actor.fate("lost.example", Fate::LostAnswer);
    scene.actor.fate("no.example", Fate::Refused);
    for number in 0..10 {
        for domain in ["live", "silent", "lost", "no"] {
            let to = format!("p{number}@{domain}.example");
            scene.send(json!({"Form": "Memo", "From": "ada", "SendTo": [to], "Body": "z"}));
        }
    }
    for _ in 0..12 {
        // A round or two, and then another manager over the same store.
        let events = scene.actor.events();
        scene.manager.round(events).unwrap();
        let lost = scene.actor.events();
        drop(lost);
        scene.actor.0.lock().open = 0;
        scene.manager = scene.server.manager(Arc::new(scene.actor.clone()), SchedulerOptions::default());
        scene.clock.advance(std::time::Duration::from_secs(700));
    }
    for domain in ["silent.example", "lost.example"] {
        scene.actor.fate(domain, Fate::Taken);
    }
    scene.run_for(DAY_MS);
    let taken: std::collections::BTreeSet<String> =
        scene.actor.0.lock().taken.iter().map(|(_, to)| to.clone()).collect();
    for number in 0..10 {
        for domain in ["live", "silent", "lost"] {
            assert!(taken.contains(&format!("p{number}@{domain}.example")), "p{number}@{domain}.example");
        }
    }
    assert_eq!(scene.failures(), 10, "each failure is reported once");
    assert!(scene.server.documents("smtp.box").is_empty());
}

#[test]
fn an_index_that_is_lost_is_made_again_from_the_documents() {
    let folder = tempfile::tempdir().unwrap();
    let clock = manual();
    let server = Server::open(folder.path(), &clock.clock());
    let actor = Actor::default();
    actor.fate("else.example", Fate::Down);
    let mut manager = server.manager(Arc::new(actor.clone()), SchedulerOptions::default());
    for number in 0..50 {
        server.deposit(json!({"Form": "Memo", "From": "ada", "SendTo": [format!("p{number}@else.example")], "Body": "z"}));
    }
    server.route_all(&mut server.router());
    run_until(&mut manager, &actor, &clock, START_MS + MINUTE_MS);
    drop(manager);
    let number = server.queue.database().number();
    let mut index = scrinium_outbound::DiskDueIndex::open(server.store.clone(), number).unwrap();
    index.clear().unwrap();
    drop(index);
    actor.fate("else.example", Fate::Taken);
    let mut manager = server.manager(Arc::new(actor.clone()), SchedulerOptions::default());
    run_until(&mut manager, &actor, &clock, START_MS + 60 * MINUTE_MS);
    assert_eq!(actor.0.lock().taken.len(), 50);
    drop(manager);
    server.close();
}

#[test]
fn a_destination_gets_no_more_attempts_at_once_than_it_may() {
    let mut scene = scene();
    scene.actor.fate("silent.example", Fate::Silent);
    for number in 0..100 {
        scene.send(json!({"Form": "Memo", "From": "ada", "SendTo": [format!("p{number}@silent.example")], "Body": "z"}));
    }
    scene.send(json!({"Form": "Memo", "From": "ada", "SendTo": ["x@live.example"], "Body": "z"}));
    scene.run_for(MINUTE_MS);
    assert_eq!(scene.actor.0.lock().taken.len(), 1, "one that hangs slows no other");
    assert!(scene.actor.0.lock().most_open <= 5, "{}", scene.actor.0.lock().most_open);
}
