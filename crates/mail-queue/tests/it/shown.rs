//! What administrators see and say.

use scrinium_mail_queue::outcome::SessionEnd;
use scrinium_mail_queue::show::{QueueCommand, Selection, by_destination, trace, why};
use scrinium_mail_queue::{Destination, Queue, QueuePolicy, Random};

use crate::kit::{START_MS, entry, reply, session};

#[test]
fn the_queue_is_shown_by_destination_with_reason_and_next_attempt() {
    let policy = QueuePolicy::default();
    let mut deferred = entry("m", Some("ada@example.org"), &["bob@example.net", "eve@example.net"]);
    let mut records = vec![deferred.snapshot(START_MS)];
    records.extend(deferred.begin(START_MS, &policy));
    deferred.apply(&records[1]).unwrap();
    let report = session(&["250 Ok", "450 4.2.1 Try later"], SessionEnd::Answered(reply("250 Ok")));
    let outcomes: Vec<_> = (0..).zip(report.outcomes(2)).collect();
    records.extend(deferred.end(START_MS + 1, &outcomes, &policy, &mut Random::new(1)));
    deferred.apply(&records[2]).unwrap();
    let mut held = entry("n", None, &["kim@example.net"]);
    let record = QueueCommand::Hold("looks odd".to_owned()).record(&held, "admin", START_MS).unwrap();
    held.apply(&record).unwrap();
    let other = entry("o", None, &["kim@example.com"]);
    let shown = by_destination([&deferred, &held, &other]);
    let summary = &shown[&Destination::domain("example.net")];
    assert_eq!(summary.counts, [(Queue::Deferred, 1), (Queue::Hold, 1)].into());
    assert_eq!((summary.recipients, summary.next_ms), (2, Some(deferred.due_ms)));
    let reason =
        "mx.example.net does not accept the recipient at the moment. It answered: 450 4.2.1 Try later";
    assert_eq!(summary.reason.as_deref(), Some(reason));
    assert_eq!(why(&deferred), reason);
    assert_eq!(why(&held), "Kept back by admin: looks odd");
    assert_eq!(why(&other), "Waits for its first attempt.");
    let lines: Vec<String> = trace(&records).into_iter().map(|line| line.words).collect();
    assert_eq!(
        lines,
        [
            "queued for 2 recipients at example.net",
            "attempt 1 began",
            "bob@example.net: mx.example.net has taken the message. It answered: 250 Ok (2.0.0)",
            "eve@example.net: mx.example.net does not accept the recipient at the moment. It answered: 450 4.2.1 Try later (4.2.1)",
        ]
    );
    assert_eq!(
        trace(&records)[0].to_string(),
        "2026-11-26T09:00:00Z  m/1  queued for 2 recipients at example.net"
    );
}

#[test]
fn commands_mean_entries_by_id_destination_sender_and_recipient() {
    let one = entry("m", Some("ada@example.org"), &["bob@example.net"]);
    let other = entry("n", None, &["eve@example.com"]);
    for (selection, of_one, of_other) in [
        (Selection::All, true, true),
        (Selection::Message("m".to_owned()), true, false),
        (Selection::Message("<n@example.org>".to_owned()), false, true),
        (Selection::Destination("EXAMPLE.net".to_owned()), true, false),
        (Selection::Sender("<>".to_owned()), false, true),
        (Selection::Sender("Ada@example.org".to_owned()), true, false),
        (Selection::Recipient("eve@example.com".to_owned()), false, true),
    ] {
        assert_eq!(
            (selection.includes(&one), selection.includes(&other)),
            (of_one, of_other),
            "{selection:?}"
        );
    }
    assert_eq!(QueueCommand::Release.record(&one, "admin", 1), None);
    assert_eq!(QueueCommand::Release.refusal(&one), "m/1: it is not kept back");
    let mut held = one;
    held.apply(&QueueCommand::Hold(String::new()).record(&held, "admin", 1).unwrap()).unwrap();
    assert_eq!(QueueCommand::Retry.record(&held, "admin", 1), None);
    assert_eq!(QueueCommand::Retry.refusal(&held), "m/1: it is kept back; release it first");
    let delete = QueueCommand::Delete { notifies: false }.record(&held, "admin", 2).unwrap();
    held.apply(&delete).unwrap();
    assert_eq!(held.queue(), Queue::Done);
}
