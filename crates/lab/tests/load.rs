//! Whole runs against a server in memory: what is counted, checked and called an error.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fall over")]

mod fake;

use std::sync::Arc;
use std::time::Duration;

use fake::{FakeServer, Faults};
use scrinium_lab::driver::{HttpDriver, HttpOptions, Login, ViewLanguage};
use scrinium_lab::load::{Cut, Measured, Objectives, Plan, StopConditions, load};
use scrinium_lab::measure::Operation;
use scrinium_lab::report::Report;
use scrinium_lab::schedule::Model;
use scrinium_lab::script::{Script, Variables};
use scrinium_lab::{LabError, Progress, Workload};

fn driver(server: &FakeServer) -> HttpDriver {
    HttpDriver::new(HttpOptions {
        target: server.url(),
        admin: Some(("admin".to_owned(), "secret".to_owned())),
        login: Login::Users,
        user_password: "word".to_owned(),
        view_language: ViewLanguage::Formula,
        directory: "directory".to_owned(),
        mail_box: "mail.box".to_owned(),
        time_out: Duration::from_millis(1500),
    })
    .unwrap()
}

/// A plan for `script`, with times that let a test be short.
fn plan(script: &str, users: usize) -> Plan {
    let mut given = Variables::default();
    given.set("NumMailNotesPerUser", "12");
    given.set("NormalMessageSize", "500");
    let (script, variables) = Script::parse(script, &given).unwrap();
    Plan {
        workload: "test".to_owned(),
        origin: "test".to_owned(),
        script: Arc::new(script),
        variables,
        users,
        user_prefix: "user".to_owned(),
        target: String::new(),
        duration: Duration::from_secs(2),
        ramp_up: Some(Duration::from_millis(500)),
        ramp_down: Duration::from_millis(200),
        speedup: 1.0,
        model: Model::Open,
        seed: 7,
        time_out: Duration::from_millis(1500),
        prepare: true,
        server_pid: None,
        stop: StopConditions { time_outs: 1000, errors_percent: 100.0, average_ms: None },
        objectives: Objectives { average_ms: None, p99_ms: None, errors_percent: 1.0 },
    }
}

fn r5mail(users: usize) -> Plan {
    let mut given = Variables::default();
    given.set("NumMailNotesPerUser", "12");
    given.set("NormalMessageSize", "500");
    let workload = Workload::find("R5Mail", &given).unwrap();
    Plan { speedup: 900.0, ..plan("Close", users).set_workload(&workload) }
}

async fn run(server: &FakeServer, plan: &Plan) -> Measured {
    load(driver(server), plan, &Progress::silent()).await.unwrap()
}

fn failures(measured: &Measured) -> Vec<(Operation, String, u64)> {
    let failures = measured.run.recorder.failures();
    failures.into_iter().map(|(operation, kind, log)| (operation, kind.to_string(), log.count)).collect()
}

/// Reads documents one after the other, some hundred a second and user.
const READING: &str = "ChangeTo MAIL\nOpen $Inbox\nBeginLoop\nNavigate 1 NEXT CIRCULAR\nPause 5\nRewind";

#[tokio::test(flavor = "multi_thread")]
async fn twenty_users_do_the_mail_of_r5() {
    let server = FakeServer::start(Faults::default()).await;
    let plan = Plan { ramp_up: None, duration: Duration::from_secs(3), ..r5mail(20) };
    let measured = run(&server, &plan).await;
    assert_eq!(failures(&measured), []);
    assert_eq!((measured.preparation.databases_created, measured.preparation.documents_added), (20, 240));
    assert_eq!(measured.run.users_past_first_round, 20);

    let report = Report::of(&plan, &measured, "test");
    assert_eq!(report.workload.round_with_speedup_s, 1.0);
    assert!(
        report
            .heading
            .starts_with("R5Mail \u{b7} 20 users \u{b7} speed-up 900: 15 min of think time took 1 s")
    );
    let count = |operation: &str| -> u64 {
        let rows = report.operations.iter().filter(|row| row.command == operation);
        rows.map(|row| row.answered).sum()
    };
    // 20 users, 3 rounds each. A round is an even draw, so that not everyone is done with the last.
    let rounds = count("ChangeTo");
    assert!((50..=70).contains(&rounds), "{rounds} rounds");
    for (command, per_round) in
        [("Navigate", 5), ("Entries", 1), ("Add", 1), ("SendMessage", 1), ("Delete", 1)]
    {
        assert!(count(command).abs_diff(rounds * per_round) <= 20 * per_round, "{command}");
    }
    assert!(report.summary.latency.count > 500);
    assert_eq!(report.summary.failed, 0);
    // Every message has arrived with each of its three recipients.
    let sent = server.count("mail.box");
    let delivered: usize = (1..=20)
        .flat_map(|user| server.documents(&format!("mail/user{user:04}")))
        .filter(|document| document["SendTo"].as_array().is_some_and(|people| people.len() == 3))
        .count();
    assert!(sent > 100 && delivered <= 3 * sent && delivered + 20 * 8 > 3 * sent, "{sent} {delivered}");

    // What is there already is left alone.
    let again = run(&server, &Plan { duration: Duration::from_millis(300), ..r5mail(20) }).await;
    assert_eq!(again.preparation.databases_created, 0);
    assert_eq!(failures(&again), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_server_cannot_hide() {
    let server = FakeServer::start(Faults::default()).await;
    let plan = plan(READING, 8);
    let stalling = async {
        // Preparing is done when the first user begins to read.
        while !server.log().iter().any(|request| request.contains("/lab-")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(1200)).await;
        server.stall_for(Duration::from_millis(300));
    };
    let (measured, ()) = tokio::join!(run(&server, &plan), stalling);
    let operations = measured.run.recorder.operations();
    let (_, reads) = operations.iter().find(|(operation, _)| *operation == Operation::Navigate).unwrap();
    let (latency, service) = (reads.latency.summary(), reads.service.summary());
    assert!((295.0..1200.0).contains(&latency.max_ms), "{latency:?}");
    // The stall is 15 % of the time: all that fell due in it waited, 7 % for half of it or longer.
    assert!(latency.p95_ms > 100.0, "{latency:?}");
    // Only one request of each user was under way; counted from the sending, the stall would be hidden.
    assert!(service.p95_ms < latency.p95_ms / 2.0, "{service:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_is_an_error_and_no_sample() {
    let server = FakeServer::start(Faults { wrong_bodies: Some(5), ..Faults::default() }).await;
    let measured = run(&server, &plan(READING, 4)).await;
    let failures = measured.run.recorder.failures();
    let [(Operation::Navigate, kind, log)] = failures.as_slice() else { panic!("{failures:?}") };
    assert_eq!(kind.to_string(), "wrong answer");
    assert!(log.first.len() == 3 && log.first[0].contains("digest"), "{:?}", log.first);
    let operations = measured.run.recorder.operations();
    let (_, reads) = operations.iter().find(|(operation, _)| *operation == Operation::Navigate).unwrap();
    assert_eq!(reads.latency.summary().count, reads.answered);
    let share = reads.failed as f64 / (reads.failed + reads.answered) as f64;
    assert!((share - 0.2).abs() < 0.01, "{share}");
    let report = Report::of(&plan(READING, 4), &measured, "test");
    assert!(!report.passed() && !report.objectives[0].reached);
}

#[tokio::test(flavor = "multi_thread")]
async fn known_delays_and_errors_are_reported_as_they_are() {
    let delay = Duration::from_millis(40);
    let server =
        FakeServer::start(Faults { delay, failing_reads: Some((10, 503)), ..Faults::default() }).await;
    let script = "ChangeTo MAIL\nOpen $Inbox\nBeginLoop\nNavigate 1 NEXT CIRCULAR\nPause 100\nRewind";
    let measured = run(&server, &plan(script, 6)).await;
    let (_, kind, count) = failures(&measured).remove(0);
    assert_eq!(kind, "status 503");
    let report = Report::of(&plan(script, 6), &measured, "test");
    let reads = report.operations.iter().find(|row| row.command == "Navigate").unwrap();
    assert!((40.0..80.0).contains(&reads.latency.p50_ms), "{reads:?}");
    assert!(count >= 6 && reads.failed.abs_diff(reads.answered / 9) <= 3, "{reads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_read_again_and_a_time_out_is_an_error() {
    let faults = Faults { conflicts: Some(4), silent_deletes: true, ..Faults::default() };
    let server = FakeServer::start(faults).await;
    let script =
        "ChangeTo MAIL\nOpen $Inbox\nNavigate 10\nStamp 8\nBreak 1\nDelete 1\nBeginLoop\nPause 50\nRewind";
    let plan = plan(script, 3);
    let measured = run(&server, &plan).await;
    assert!(measured.run.recorder.totals().conflicts >= 6);
    assert_eq!(failures(&measured), [(Operation::Delete, "time-out".to_owned(), 3)]);
    // Break 1 has ended the script of everyone, and with it the run.
    assert_eq!(measured.run.cut, Some(Cut::UsersEnded));
    let stamped = server.documents("mail/user0001");
    let stamped = stamped.iter().filter(|document| document["Categories"][0] == "round 0").count();
    assert_eq!(stamped, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_too_much_is_stopped() {
    let server = FakeServer::start(Faults { failing_reads: Some((1, 500)), ..Faults::default() }).await;
    let mut plan = plan(READING, 4);
    plan.duration = Duration::from_secs(60);
    plan.stop.errors_percent = 40.0;
    let measured = run(&server, &plan).await;
    assert!(matches!(measured.run.cut, Some(Cut::Errors(percent)) if percent > 40.0));
    let report = Report::of(&plan, &measured, "test");
    assert!(!report.validity.valid && report.validity.reasons[0].contains("stopped early"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_at_a_time_is_in_a_critical_region() {
    let server = FakeServer::start(Faults { delay: Duration::from_millis(20), ..Faults::default() }).await;
    let script = "ChangeTo MAIL\nBeginCrit\nAdd 2\nEndCrit\nBeginLoop\nPause 50\nRewind";
    let plan = Plan { ramp_up: Some(Duration::from_millis(1)), ..plan(script, 5) };
    let measured = run(&server, &plan).await;
    assert_eq!(failures(&measured), []);
    let adds: Vec<String> = server
        .log()
        .into_iter()
        .filter(|line| line.starts_with("PUT /mail%2Fuser000") && line.contains("lab-user"))
        .collect();
    let users: Vec<&str> = adds.iter().map(|line| &line[..22]).collect();
    let mut entered: Vec<&str> = users.clone();
    entered.dedup();
    assert_eq!((users.len(), entered.len()), (10, 5), "{users:?}");
}

#[tokio::test]
async fn what_cannot_be_done_is_said_before_anything_is_sent() {
    let server = FakeServer::start(Faults::default()).await;
    let silent = Progress::silent();
    let error = load(driver(&server), &plan("Close\nGetAll", 1), &silent).await.err().unwrap();
    assert_eq!(error.to_string(), "test cannot be run yet: line 2: GetAll");
    assert!(server.log().is_empty());

    let mut wrong = HttpOptions {
        target: server.url(),
        admin: Some(("admin".to_owned(), "guess".to_owned())),
        login: Login::Users,
        user_password: String::new(),
        view_language: ViewLanguage::Javascript,
        directory: "directory".to_owned(),
        mail_box: "mail.box".to_owned(),
        time_out: Duration::from_secs(1),
    };
    let refused =
        load(HttpDriver::new(wrong.clone()).unwrap(), &plan("Close", 1), &silent).await.err().unwrap();
    assert!(
        matches!(refused, LabError::Prepare { .. }) && refused.to_string().contains("status 401"),
        "{refused}"
    );

    wrong.target = "http://127.0.0.1:9".to_owned();
    let nobody = load(HttpDriver::new(wrong).unwrap(), &plan("Close", 1), &silent).await.err().unwrap();
    assert!(matches!(nobody, LabError::NoServer { .. }), "{nobody}");
}
