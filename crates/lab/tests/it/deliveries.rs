//! What was sent is what arrives: digests of messages, and the ledger of a run.

use std::time::Duration;

use crate::fake::{FakeServer, Faults};
use proptest::prelude::*;
use scrinium_lab::driver::{
    Failure, FailureKind, FoundMessage, HttpOptions, Ledger, Letter, MessageNumber, Noted, Scan,
    TargetOptions, Targets,
};
use scrinium_lab::load::{Objectives, Plan, StopConditions, load};
use scrinium_lab::report::report_of;
use scrinium_lab::schedule::Model;
use scrinium_lab::{Form, Message, Progress};
use scrinium_lab_report::run::Deliveries;
use scrinium_lab_script::{Script, Variables};

fn message(body: String, attachment_bytes: usize) -> Message {
    Message {
        id: "lab-user0001-x".to_owned(),
        number: MessageNumber { run: 0x00ab_cdef, sender: 12, sequence: 345 },
        form: Form::Memo,
        from: "user0001".to_owned(),
        recipients: (2..30).map(|number| format!("user{number:04}")).collect(),
        subject: "figures".to_owned(),
        body: body.into(),
        attachment_bytes,
        posted: 1_800_000_000,
        delivered: false,
    }
}

fn scan(text: &[u8], pieces: &[usize]) -> Scan {
    let mut scan = Scan::new();
    let mut rest = text;
    for piece in pieces.iter().cycle().take(text.len()) {
        let (first, after) = rest.split_at((*piece).min(rest.len()));
        scan.feed(first);
        rest = after;
    }
    scan.feed(rest);
    scan.finish();
    scan
}

proptest! {
    /// A message is known again in whatever pieces it comes and whatever a server puts before it; and a change of any
    /// one byte of what the sender wrote shows.
    #[test]
    fn a_message_is_known_again_and_changes_show(
        body in "[ -~\n.]{0,400}",
        attachment in 0_usize..300,
        pieces in prop::collection::vec(1_usize..50, 1..5),
        at in any::<prop::sample::Index>(),
    ) {
        let letter = Letter::of(&message(body, attachment), "lab.invalid");
        let added = b"Return-Path: <x@y>\r\nReceived: from a\r\n\tby b; Sun\r\nX-To: user0009@lab.invalid\r\n";
        let mut arrived = [added.as_slice(), &letter.text].concat();
        let good = scan(&arrived, &pieces);
        prop_assert_eq!(good.check(), Ok(()));
        prop_assert_eq!(good.number(), Some(MessageNumber { run: 0x00ab_cdef, sender: 12, sequence: 345 }));
        prop_assert_eq!(good.place_of("user0009"), Some(7));
        prop_assert_eq!(good.place_of("user0001"), None);
        prop_assert_eq!(good.bytes(), arrived.len() as u64);

        let at = added.len() + at.index(letter.text.len());
        arrived[at] ^= 1;
        let bad = scan(&arrived, &pieces);
        // Where the line that names the message is hurt, it may name none, or another; else the digest tells.
        let text = String::from_utf8_lossy(&letter.text);
        let lab = text.find("X-Scrinium-Lab").unwrap();
        let line = lab..lab + text[lab..].find('\n').unwrap() + 1;
        if !line.contains(&(at - added.len())) {
            prop_assert!(bad.check().is_err() || bad.number().is_none());
        }
    }
}

/// What happens to one delivery.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Missing,
    Twice,
    Altered,
    ReadAndDeleted,
    DeletedAndAgain,
}

fn fates() -> impl Strategy<Value = Vec<(u32, Vec<Fate>, bool)>> {
    let fate = prop_oneof![
        6 => Just(Fate::Arrives),
        1 => Just(Fate::Missing),
        1 => Just(Fate::Twice),
        1 => Just(Fate::Altered),
        2 => Just(Fate::ReadAndDeleted),
        1 => Just(Fate::DeletedAndAgain),
    ];
    let message = (1_u32..4, prop::collection::vec(fate, 1..=3), prop::bool::weighted(0.9));
    prop::collection::vec(message, 0..120)
}

proptest! {
    /// The bitmaps say what a list of all deliveries would say.
    #[test]
    fn the_ledger_counts_every_fate(messages in fates()) {
        let ledger = Ledger::new(9, 3, 3, Duration::ZERO);
        let mut wanted = Deliveries::default();
        let mut sequences = [0_u32; 4];
        let mut found = Vec::new();
        for (sender, fates, answered) in &messages {
            sequences[*sender as usize] += 1;
            let number = MessageNumber { run: 9, sender: *sender, sequence: sequences[*sender as usize] };
            let answer = if *answered { Ok(()) } else { Err(failure(FailureKind::TimeOut)) };
            ledger.sent(number, fates.len(), &answer);
            let promised = u64::from(*answered);
            wanted.messages += promised;
            for (place, fate) in fates.iter().enumerate() {
                let copy = FoundMessage { number, place: Some(place), altered: None };
                wanted.promised += promised;
                wanted.uncertain += 1 - promised;
                wanted.delivered += promised;
                match fate {
                    Fate::Arrives => found.push(copy),
                    Fate::Missing => {
                        wanted.missing += promised;
                        wanted.delivered -= promised;
                    }
                    Fate::Twice => {
                        found.extend([copy.clone(), copy]);
                        wanted.twice += 1;
                    }
                    Fate::Altered => {
                        found.push(FoundMessage { altered: Some("changed".to_owned()), ..copy });
                        wanted.altered += 1;
                    }
                    Fate::ReadAndDeleted => {
                        ledger.deleting(&copy);
                        ledger.deleted(&copy);
                    }
                    Fate::DeletedAndAgain => {
                        ledger.deleting(&copy);
                        ledger.deleted(&copy);
                        found.push(copy);
                        wanted.twice += 1;
                    }
                }
            }
        }
        // Mailboxes that are read a second time are not counted twice.
        for _ in 0..2 {
            ledger.begin_reading();
            for copy in &found {
                ledger.found(copy, "somebody");
            }
        }
        let told = Deliveries { examples: Vec::new(), ..ledger.deliveries() };
        prop_assert_eq!(told, wanted);
    }
}

proptest! {
    /// What several drivers have noted, each of its own senders and recipients, is in the end what one would have noted.
    #[test]
    fn the_ledgers_of_several_drivers_come_together(
        messages in fates(),
        readers in prop::collection::vec(0_usize..3, 3),
        run in any::<u32>(),
    ) {
        let one = Ledger::new(run, 3, 3, Duration::ZERO);
        let several = [one.of_run(run), one.of_run(run), one.of_run(run)];
        let mut sequences = [0_u32; 4];
        for (sender, fates, answered) in &messages {
            let at = *sender as usize;
            sequences[at] += 1;
            let number = MessageNumber { run, sender: *sender, sequence: sequences[at] };
            let answer = if *answered { Ok(()) } else { Err(failure(FailureKind::TimeOut)) };
            for ledger in [&one, &several[at - 1]] {
                ledger.sent(number, fates.len(), &answer);
            }
            for (place, fate) in fates.iter().enumerate() {
                let copy = FoundMessage { number, place: Some(place), altered: None };
                let times = match fate {
                    Fate::ReadAndDeleted => 1,
                    Fate::DeletedAndAgain => 2,
                    _ => 0,
                };
                // Another driver than the sender's has the recipient.
                for ledger in [&one, &several[readers[place]]] {
                    for _ in 0..times {
                        ledger.deleting(&copy);
                        ledger.deleted(&copy);
                    }
                }
            }
        }
        let sum = one.of_run(run);
        for piece in several.iter().flat_map(Ledger::noted) {
            let sent = serde_json::to_string(&piece).unwrap();
            let come: Noted = serde_json::from_str(&sent).unwrap();
            prop_assert_eq!(&come, &piece);
            sum.add(&come);
        }
        for ledger in [&one, &sum] {
            ledger.begin_reading();
        }
        prop_assert_eq!(sum.deliveries(), one.deliveries());
    }
}

fn failure(kind: FailureKind) -> Failure {
    Failure { kind, detail: String::new() }
}

#[test]
fn what_was_refused_need_not_arrive_and_what_nobody_sent_is_not_counted() {
    let ledger = Ledger::new(9, 2, 2, Duration::ZERO);
    let number = MessageNumber { run: 9, sender: 1, sequence: 1 };
    ledger.sent::<()>(number, 2, &Err(failure(FailureKind::Status(550))));
    let of_another_run = MessageNumber { run: 8, ..number };
    ledger.found(&FoundMessage { number: of_another_run, place: Some(0), altered: None }, "user0001");
    assert_eq!(ledger.deliveries(), Deliveries::default());
    ledger.found(&FoundMessage { number, place: None, altered: None }, "user0009");
    let astray = ledger.deliveries();
    assert_eq!((astray.strayed, astray.wrong()), (1, 1));
    assert!(astray.examples[0].contains("user0009, who is not a recipient"), "{astray:?}");
}

/// Memos through a mail box, some of them lost, doubled and changed on the way by turns.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_deliveries_of_memos_are_told() {
    let script = "ChangeTo MAIL\nOpen $Inbox\nBeginLoop\nSendMessage 300 2\nOpen\nDelete 1\nRewind 6";
    for nth in [None, Some(4)] {
        let server = FakeServer::start(Faults { wrong_deliveries: nth, ..Faults::default() }).await;
        let (script, variables) = Script::parse(script, &Variables::default()).unwrap();
        let http = HttpOptions {
            admin: Some(("admin".to_owned(), "secret".to_owned())),
            user_password: "word".to_owned(),
            time_out: Duration::from_secs(60),
            ..HttpOptions::new(String::new())
        };
        let plan = Plan {
            target: server.url(),
            duration: Duration::from_secs(50),
            ramp_up: Some(Duration::from_millis(1)),
            ramp_down: Duration::from_millis(100),
            model: Model::Closed,
            seed: 7,
            time_out: Duration::from_secs(60),
            stop: StopConditions { time_outs: 1000, errors_percent: 100.0, average_ms: None },
            objectives: Objectives { average_ms: None, p99_ms: None, errors_percent: 100.0 },
            ..Plan::new("test", script, variables, 4)
        };
        let driver = Targets::new(&TargetOptions {
            targets: vec![server.url()],
            http,
            domain: String::new(),
            login_name: String::new(),
            authority: None,
            check_deliveries: Some(true),
            users: plan.users,
            recipients: plan.script.recipients(),
            delivery_wait: Duration::from_millis(1),
        });
        let measured = load(driver.unwrap(), &plan, &Progress::silent()).await.unwrap();
        let deliveries = measured.deliveries.clone().unwrap();
        assert_eq!((deliveries.messages, deliveries.promised), (24, 48), "{deliveries:?}");
        let report = report_of(&plan, &measured, "test");
        let sentence =
            report.findings.iter().find(|finding| finding.contains("deliveries promised")).unwrap();
        if nth.is_none() {
            assert_eq!((deliveries.wrong(), deliveries.delivered), (0, 48), "{deliveries:?}");
            assert!(
                sentence.ends_with("48 deliveries promised: all delivered once, byte for byte."),
                "{sentence}"
            );
        } else {
            assert!(deliveries.missing > 0 && deliveries.wrong() > deliveries.missing, "{deliveries:?}");
            assert!(!report.passed() && sentence.contains("missing"), "{sentence}");
        }
    }
}
