//! Records and the states that they give.

use scrinium_mail_queue::outcome::{SessionEnd, Stage, Trouble};
use scrinium_mail_queue::{
    Cause, Change, ENTRY_RECIPIENTS_MAX, Ending, HoldMark, NoticeKind, Outcome, Queue, QueueEntry,
    QueuePolicy, Random, RebuildError, RecipientState, Record, RecordError, ReleaseError, SplitError, Step,
    rebuild, release_time_ms, verp_decode, verp_encode,
};
use scrinium_smtp_wire::{Hold, Notify, OriginalRecipient, Return};

use crate::kit::{DAY_MS, HOUR_MS, MINUTE_MS, START_MS, by_domain, entry, mailbox, message, session, to};

/// Carries out a record, as written and read back.
fn apply(entry: &mut QueueEntry, record: impl FnOnce(&QueueEntry) -> Option<Record>) {
    let record = record(entry).expect("the record is possible");
    let read = Record::decode(&record.encode()).unwrap();
    assert_eq!(read, record);
    entry.apply(&read).unwrap();
}

fn attempt(entry: &mut QueueEntry, now_ms: u64, outcomes: &[(u32, Outcome)]) {
    let policy = QueuePolicy::default();
    apply(entry, |entry| entry.begin(now_ms, &policy));
    assert_eq!(entry.queue(), Queue::Active);
    assert_eq!(entry.step(now_ms, &policy), Step::Await);
    apply(entry, |entry| entry.end(now_ms + 1_000, outcomes, &policy, &mut Random::new(1)));
}

fn outcome(ending: Ending) -> Outcome {
    let cause = match ending {
        Ending::Failed => Cause::RecipientRefused,
        Ending::Deferred => Cause::Throttled,
        _ => Cause::Accepted,
    };
    Outcome::new(ending, cause)
}

#[test]
fn records_lead_through_the_queues() {
    let policy = QueuePolicy::default();
    let mut entry = entry("m", Some("ada@example.org"), &["bob@example.net", "eve@example.net"]);
    let mut records = vec![entry.snapshot(START_MS)];
    assert_eq!(entry.queue(), Queue::Incoming);
    assert_eq!(entry.step(START_MS, &policy), Step::Attempt);
    attempt(&mut entry, START_MS, &[(0, outcome(Ending::Relayed)), (1, outcome(Ending::Deferred))]);
    assert_eq!(entry.queue(), Queue::Deferred);
    assert_eq!(entry.waiting(), [1]);
    let first_due = entry.due_ms - START_MS - 1_000;
    assert!((270_000..=330_000).contains(&first_due), "{first_due}");
    apply(&mut entry, |entry| entry.keep_back(START_MS + 2_000, "admin", "looks odd"));
    assert_eq!(entry.queue(), Queue::Hold);
    assert_eq!(
        entry.step(START_MS + 20 * DAY_MS, &policy),
        Step::Wait(None),
        "what is kept back does not expire"
    );
    let expires_ms = entry.expires_ms;
    apply(&mut entry, |entry| entry.release(START_MS + 2_000 + DAY_MS, "admin"));
    assert_eq!(entry.expires_ms, expires_ms + DAY_MS);
    assert_eq!(entry.due_ms, START_MS + 2_000 + DAY_MS);
    let now_ms = START_MS + 2 * DAY_MS;
    let Step::Notify(plan) = entry.step(now_ms, &policy) else { panic!("a day is a delay") };
    assert_eq!((plan.kind, plan.recipients.as_slice()), (NoticeKind::Delay, [1].as_slice()));
    apply(&mut entry, |entry| Some(entry.noticed(now_ms, &plan)));
    assert_eq!(entry.step(now_ms, &policy), Step::Attempt, "one notice of a delay");
    attempt(&mut entry, now_ms, &[(1, outcome(Ending::Failed))]);
    let Step::Notify(plan) = entry.step(now_ms, &policy) else { panic!("a failure needs a notice") };
    assert_eq!(plan.kind, NoticeKind::Failure);
    assert_eq!(entry.notice(now_ms, &policy).unwrap().id, plan.id);
    apply(&mut entry, |entry| Some(entry.noticed(now_ms, &plan)));
    assert_eq!(entry.queue(), Queue::Done);
    apply(&mut entry, |entry| entry.remove(now_ms, &policy));
    records.push(entry.snapshot(now_ms));
    assert_eq!(rebuild(&records).unwrap(), Some(entry));
}

#[test]
fn a_message_is_given_up_after_its_lifetime_and_a_last_attempt() {
    let policy = QueuePolicy::default();
    let mut entry = entry("m", Some("ada@example.org"), &["bob@example.net"]);
    let mut attempts = 0;
    loop {
        match entry.step(entry.due_ms, &policy) {
            Step::Attempt => {
                let due_ms = entry.due_ms;
                attempt(&mut entry, due_ms, &[(0, outcome(Ending::Deferred))]);
                attempts += 1;
            }
            Step::Notify(plan) => {
                let due_ms = entry.due_ms;
                apply(&mut entry, |entry| Some(entry.noticed(due_ms, &plan)));
                if plan.kind == NoticeKind::Failure {
                    break;
                }
            }
            Step::Expire => {
                let due_ms = entry.due_ms;
                apply(&mut entry, |entry| entry.expire(due_ms, &policy));
            }
            step => panic!("{step:?}"),
        }
        if let Step::Expire = entry.step(entry.expires_ms + 2_000, &policy) {
            apply(&mut entry, |entry| entry.expire(START_MS + 5 * DAY_MS + 2_000, &policy));
        }
    }
    assert!((30..=45).contains(&attempts), "{attempts}");
    let outcome = entry.recipients[0].outcome.clone().unwrap();
    assert_eq!((outcome.cause, outcome.status.to_string().as_str()), (Cause::Expired, "5.4.7"));
}

#[test]
fn what_was_never_tried_is_given_up_only_after_a_grace() {
    let mut policy = QueuePolicy::default();
    let entry = entry("m", Some("ada@example.org"), &["bob@example.net"]);
    let late_ms = START_MS + 6 * DAY_MS;
    assert_eq!(entry.step(late_ms, &policy), Step::Expire);
    // The server was away: everything gets its attempt first.
    policy.serving_since_ms = late_ms;
    assert_eq!(entry.step(late_ms, &policy), Step::Attempt);
    assert_eq!(entry.step(late_ms + policy.expiry_grace_ms, &policy), Step::Expire);
}

#[test]
fn nobody_hears_of_the_null_sender_nor_of_a_report() {
    let policy = QueuePolicy::default();
    let mut null = entry("m", None, &["bob@example.net"]);
    let mut report = entry("n", Some("ada@example.org"), &["bob@example.net"]);
    report.envelope.is_report = true;
    for entry in [&mut null, &mut report] {
        attempt(entry, START_MS, &[(0, outcome(Ending::Failed))]);
        assert_eq!(entry.notice(START_MS + DAY_MS, &policy), None);
        assert_eq!(entry.queue(), Queue::Dead);
        assert!(matches!(entry.step(START_MS + DAY_MS, &policy), Step::Wait(Some(_))));
        assert_eq!(entry.step(START_MS + 40 * DAY_MS, &policy), Step::Remove);
        apply(entry, |entry| entry.delete(START_MS + DAY_MS, "admin", false));
        assert_eq!(entry.step(START_MS + DAY_MS, &policy), Step::Remove);
    }
}

#[test]
fn notify_is_obeyed() {
    let policy = QueuePolicy::default();
    let never = Notify::default();
    let success = Notify { success: true, ..never };
    let all = Notify { success: true, failure: true, delay: true };
    let kinds = |notify: Option<Notify>, ending: Ending| {
        let mut entry = entry("m", Some("ada@example.org"), &["bob@example.net"]);
        entry.recipients[0].notify = notify;
        attempt(&mut entry, START_MS, &[(0, outcome(ending))]);
        let mut kinds = Vec::new();
        while let Some(plan) = entry.notice(START_MS + 5 * HOUR_MS, &policy) {
            apply(&mut entry, |entry| Some(entry.noticed(START_MS, &plan)));
            kinds.push(plan.kind);
        }
        kinds
    };
    assert_eq!(kinds(None, Ending::Failed), [NoticeKind::Failure]);
    assert_eq!(kinds(None, Ending::Deferred), [NoticeKind::Delay]);
    assert_eq!(kinds(None, Ending::Delivered), []);
    assert_eq!(kinds(Some(never), Ending::Failed), []);
    assert_eq!(kinds(Some(never), Ending::Deferred), []);
    assert_eq!(kinds(Some(success), Ending::Failed), []);
    assert_eq!(kinds(Some(success), Ending::Delivered), [NoticeKind::Success]);
    assert_eq!(kinds(Some(success), Ending::RelayedSilently), [NoticeKind::Relayed]);
    assert_eq!(kinds(Some(success), Ending::Relayed), [], "the next server writes it");
    assert_eq!(kinds(Some(all), Ending::Failed), [NoticeKind::Failure]);
    assert_eq!(kinds(Some(all), Ending::Deferred), [NoticeKind::Delay]);
}

#[test]
fn ids_of_notices_follow_from_message_recipients_and_kind() {
    let policy = QueuePolicy::default();
    let mut ids = std::collections::BTreeSet::new();
    for id in ["m", "n"] {
        for failed in [vec![0], vec![1], vec![0, 1]] {
            let mut entry = entry(id, Some("ada@example.org"), &["bob@example.net", "eve@example.net"]);
            let outcomes: Vec<_> = failed.iter().map(|place| (*place, outcome(Ending::Failed))).collect();
            attempt(&mut entry, START_MS, &outcomes);
            assert!(ids.insert(entry.notice(START_MS, &policy).unwrap().id));
        }
    }
}

#[test]
fn an_attempt_that_was_cut_off_is_unknown_and_repeated() {
    let policy = QueuePolicy::default();
    let mut entry = entry("m", Some("ada@example.org"), &["bob@example.net"]);
    let mut now_ms = START_MS;
    let mut waits = Vec::new();
    for _ in 0..8 {
        apply(&mut entry, |entry| entry.begin(now_ms, &policy));
        apply(&mut entry, |entry| entry.interrupted(now_ms + 1));
        assert_eq!(entry.recipients[0].outcome.as_ref().unwrap().ending, Ending::Unknown);
        waits.push(entry.due_ms - now_ms - 1);
        now_ms = entry.due_ms;
    }
    assert_eq!(waits[..4], [0, 1_000, 4_000, 16_000], "at once, unless it is cut off again and again");
    assert_eq!(waits[7], 5 * MINUTE_MS);
}

#[test]
fn records_out_of_order_are_refused_and_change_nothing() {
    let policy = QueuePolicy::default();
    let mut entry = entry("m", Some("ada@example.org"), &["bob@example.net"]);
    let begin = entry.begin(START_MS, &policy).unwrap();
    assert_eq!(rebuild([&begin]), Err(RebuildError::NotQueued("m/1".to_owned())));
    let queued = entry.snapshot(START_MS);
    entry.apply(&begin).unwrap();
    let end = entry.end(START_MS, &[(7, outcome(Ending::Failed))], &policy, &mut Random::new(1)).unwrap();
    let before = entry.clone();
    assert_eq!(entry.apply(&end), Err(RebuildError::NoSuchRecipient("m/1".to_owned())));
    assert_eq!(
        entry.apply(&begin).unwrap_err().to_string(),
        "the entry m/1 of the mail queue cannot be \"began\" after the records before"
    );
    assert_eq!(entry, before);
    let mut other = begin.clone();
    other.entry = "n/1".to_owned();
    assert!(matches!(rebuild([&queued, &other]), Err(RebuildError::OtherEntry { .. })));
    assert!(entry.begin(START_MS, &policy).is_none(), "one attempt at a time");
    assert!(entry.delete(START_MS, "admin", true).is_none(), "its outcome is to be known first");
    let removed = Record { entry: "m/1".to_owned(), at_ms: 1, change: Change::Removed };
    let again = Record { entry: "m/1".to_owned(), at_ms: 1, change: Change::Expired };
    assert!(rebuild([&queued, &removed, &again]).is_err());
}

#[test]
fn records_are_read_as_they_were_written() {
    let mut message = message("m", Some("\"a b\"@example.org"), START_MS);
    message.envelope.return_content = Some(Return::Full);
    message.envelope.envelope_id = Some("QQ314159".to_owned());
    message.envelope.utf8 = true;
    message.envelope.submitter = Some("ada".to_owned());
    message.hold = Some(HoldMark { by: "rule".to_owned(), reason: "why".to_owned(), since_ms: 3 });
    let mut recipient = to("jörg@exämple.net");
    recipient.original = OriginalRecipient::new("utf-8", "jörg+x@exämple.net");
    recipient.notify = Some(Notify { success: true, failure: false, delay: true });
    let mut never = to("eve@exämple.net");
    never.notify = Some(Notify::default());
    let mut entry = message.split(vec![recipient, never], by_domain).unwrap().remove(0);
    let report =
        session(&["550 5.1.1 no\tsuch"], SessionEnd::Broken { stage: Stage::Data, trouble: Trouble::Closed });
    entry.recipients[0].outcome = Some(report.outcomes(1).remove(0));
    let record = entry.snapshot(START_MS);
    assert_eq!(Record::decode(&record.encode()).unwrap(), record);
    let text = String::from_utf8(record.encode()).unwrap();
    assert!(
        text.starts_with(r#"{"version":1,"entry":"m/1","at_ms":1795683600000,"change":"queued","#),
        "{text}"
    );
    assert!(text.contains(r#""notify":"SUCCESS,DELAY""#) && text.contains(r#""notify":"NEVER""#), "{text}");
}

#[test]
fn the_form_of_a_record_stays() {
    // Written by the first version: what lies on disks must be read by every later one.
    let queued = r#"{"version":1,"entry":"m/1","at_ms":5,"change":"queued","id":"m/1","message":"m","destination":{"transport":"smtp","host":"example.net"},"envelope":{"sender":"ada@example.org","language":"german"},"size_bytes":9,"arrived_ms":5,"expires_ms":432000005,"due_ms":5,"recipients":[{"address":"bob@example.net"}]}"#;
    let began = r#"{"version":1,"entry":"m/1","at_ms":6,"change":"began","attempt":1}"#;
    let ended = r#"{"version":1,"entry":"m/1","at_ms":7,"change":"ended","attempt":1,"outcomes":[{"recipients":[0],"outcome":{"ending":"deferred","cause":"throttled","status":"4.3.2","reply":"421 later","host":"mx"}}],"due_ms":300007}"#;
    let held = r#"{"version":1,"entry":"m/1","at_ms":8,"change":"held","by":"admin","reason":""}"#;
    let records: Vec<Record> = [queued, began, ended, held]
        .into_iter()
        .map(|text| Record::decode(text.as_bytes()).unwrap())
        .collect();
    let entry = rebuild(&records).unwrap().unwrap();
    assert_eq!((entry.queue(), entry.attempts, entry.due_ms), (Queue::Hold, 1, 300_007));
}

#[test]
fn records_of_another_version_or_out_of_bounds_are_refused() {
    let decode = |text: &str| Record::decode(text.as_bytes());
    assert_eq!(decode(r#"{"version":2}"#), Err(RecordError::Version(2)));
    assert!(matches!(decode("[]"), Err(RecordError::Fields(_))));
    assert!(matches!(decode(&"[".repeat(100_000)), Err(RecordError::Fields(_))));
    assert_eq!(Record::decode(&vec![b' '; (8 << 20) + 1]), Err(RecordError::TooLong));
    let long = format!(r#"{{"version":1,"entry":"{}","at_ms":1,"change":"expired"}}"#, "x".repeat(300));
    assert_eq!(decode(&long), Err(RecordError::Limits));
    let line = r#"{"version":1,"entry":"m","at_ms":1,"change":"held","by":"a\nb","reason":""}"#;
    assert_eq!(decode(line), Err(RecordError::Limits));
    let mut entry = entry("m", None, &["bob@example.net"]);
    entry.recipients = vec![entry.recipients[0].clone(); ENTRY_RECIPIENTS_MAX + 1];
    assert_eq!(Record::decode(&entry.snapshot(1).encode()), Err(RecordError::Limits));
    entry.recipients.clear();
    assert_eq!(Record::decode(&entry.snapshot(1).encode()), Err(RecordError::Limits));
}

#[test]
fn ten_thousand_recipients_are_split_by_destination() {
    let recipients: Vec<_> =
        (0..10_000).map(|number| to(&format!("r{number}@d{}.example", number % 7))).collect();
    let entries = message("m", Some("ada@example.org"), START_MS).split(recipients, by_domain).unwrap();
    assert_eq!(entries.len(), 14, "seven destinations with more than 1,000 each");
    assert_eq!(entries.iter().map(|entry| entry.recipients.len()).sum::<usize>(), 10_000);
    assert!(entries.iter().all(|entry| entry.recipients.len() <= ENTRY_RECIPIENTS_MAX));
    assert!(
        entries
            .iter()
            .all(|entry| entry.recipients.iter().all(|r| by_domain(&r.address) == entry.destination))
    );
    assert_eq!(
        entries.iter().map(|entry| entry.id.as_str()).collect::<std::collections::BTreeSet<_>>().len(),
        14
    );
    assert!(entries[0].snapshot(START_MS).encode().len() < 200_000);
    let transactions = entries[0].transactions(None);
    assert!(transactions.iter().all(|transaction| transaction.recipients.len() <= 100));
    let split = |recipients: &[&str]| {
        message("m", None, START_MS).split(recipients.iter().map(|address| to(address)).collect(), by_domain)
    };
    assert_eq!(split(&[]), Err(SplitError::NoRecipients));
    let twice = split(&["a@Example.NET", "a@example.net", "A@example.net"]).unwrap();
    assert_eq!(twice[0].recipients.len(), 2, "a domain has no case, a local part has");
}

#[test]
fn a_sender_of_verp_is_named_after_each_recipient() {
    let list = mailbox("list@example.org");
    for recipient in ["bob@example.net", "a=b@example.net", "x+y@example.net"] {
        let named = verp_encode(&list, &mailbox(recipient)).unwrap();
        assert_eq!(verp_decode(&named, &list), Some(mailbox(recipient)));
    }
    assert_eq!(
        verp_encode(&list, &mailbox("bob@example.net")).unwrap().to_string(),
        "list+bob=example.net@example.org"
    );
    assert_eq!(verp_decode(&mailbox("list@example.org"), &list), None);
    assert_eq!(verp_decode(&mailbox("list+bob=example.net@elsewhere.org"), &list), None);
    assert_eq!(verp_encode(&list, &mailbox(&format!("{}@example.net", "x".repeat(60)))), None);
    let mut entry = entry("m", Some("list@example.org"), &["bob@example.net", "eve@example.net"]);
    entry.envelope.verp = true;
    let transactions = entry.transactions(Some(50));
    let senders: Vec<_> = transactions.iter().map(|t| t.sender.as_ref().unwrap().to_string()).collect();
    assert_eq!(senders, ["list+bob=example.net@example.org", "list+eve=example.net@example.org"]);
}

#[test]
fn a_release_in_the_future_is_waited_for_and_is_no_part_of_the_lifetime() {
    let day = |hold: Hold| release_time_ms(&hold, START_MS, 30 * DAY_MS);
    assert_eq!(day(Hold::ForSeconds(60)), Ok(START_MS + MINUTE_MS));
    assert_eq!(day(Hold::Until("2026-11-27T09:00:00Z".to_owned())), Ok(1_795_770_000_000));
    assert_eq!(day(Hold::Until("2026-11-27T10:00:00+01:00".to_owned())), Ok(1_795_770_000_000));
    assert_eq!(day(Hold::Until("2020-01-01T00:00:00Z".to_owned())), Ok(START_MS), "what has passed is now");
    assert_eq!(day(Hold::Until("20261127090000".to_owned())), Err(ReleaseError::Time));
    assert_eq!(day(Hold::ForSeconds(u64::MAX)), Err(ReleaseError::TooFar));
    let policy = QueuePolicy::default();
    let mut message = message("m", Some("ada@example.org"), START_MS);
    message.release_ms = Some(START_MS + 3 * DAY_MS);
    let entry = message.split(vec![to("bob@example.net")], by_domain).unwrap().remove(0);
    assert_eq!(entry.step(START_MS, &policy), Step::Wait(Some(START_MS + 3 * DAY_MS)));
    assert_eq!(entry.notice(START_MS + DAY_MS, &policy), None, "its sender wanted the delay");
    assert_eq!(entry.expires_ms, START_MS + 8 * DAY_MS);
    assert_eq!(entry.step(START_MS + 3 * DAY_MS, &policy), Step::Attempt);
}

#[test]
fn a_deletion_is_told_only_if_it_is_to_be() {
    let policy = QueuePolicy::default();
    for notifies in [true, false] {
        let mut entry = entry("m", Some("ada@example.org"), &["bob@example.net"]);
        apply(&mut entry, |entry| entry.keep_back(START_MS, "admin", "spam?"));
        apply(&mut entry, |entry| entry.delete(START_MS, "admin", notifies));
        assert_eq!(entry.recipients[0].state, RecipientState::Failed);
        assert_eq!(entry.notice(START_MS, &policy).is_some(), notifies);
    }
}
