//! Whole runs against a server in memory: what is counted, checked and called an error.

use std::time::Duration;

use crate::fake::{FakeServer, Faults};
use scrinium_lab::driver::{HttpDriver, HttpOptions};
use scrinium_lab::load::{Cut, Measured, Plan, StopConditions, load};
use scrinium_lab::measure::OperationTimes;
use scrinium_lab::report::report_of;
use scrinium_lab::{LabError, Progress};
use scrinium_lab_script::{Operation, Script, Variables, Workload};

const TIME_OUT: Duration = Duration::from_secs(20);

fn options(server: &FakeServer) -> HttpOptions {
    HttpOptions {
        admin: Some(("admin".to_owned(), "secret".to_owned())),
        user_password: "word".to_owned(),
        time_out: TIME_OUT,
        ..HttpOptions::new(server.url())
    }
}

fn variables() -> Variables {
    let mut given = Variables::default();
    given.set("NumMailNotesPerUser", "12");
    given.set("NormalMessageSize", "500");
    given.set("nb_dbdir", "mail/");
    given.set("MailServer", "");
    given.set("MailTemplate", "");
    given
}

/// A plan for `script`. Scripts that end are counted from beginning to end, so that what they count does not
/// depend on how busy the machine is.
fn plan(script: &str, users: usize) -> Plan {
    let (script, variables) = Script::parse(script, &variables()).unwrap();
    Plan {
        duration: Duration::from_secs(600),
        ramp_up: Some(Duration::from_millis(200)),
        ramp_down: Duration::from_millis(100),
        seed: 7,
        time_out: TIME_OUT,
        stop: StopConditions { time_outs: 1000, errors_percent: 100.0, average_ms: None },
        ..Plan::new("test", script, variables, users)
    }
}

async fn run(server: &FakeServer, plan: &Plan) -> Measured {
    let driver = HttpDriver::new(options(server)).unwrap();
    load(driver, plan, &Progress::silent()).await.unwrap()
}

fn failures(measured: &Measured) -> Vec<(Operation, String, u64)> {
    let failures = measured.run.recorder.failures();
    failures.into_iter().map(|(operation, kind, log)| (operation, kind.to_string(), log.count)).collect()
}

fn times(measured: &Measured, operation: Operation) -> OperationTimes {
    let all = measured.run.recorder.operations();
    all.into_iter().find(|(found, _)| *found == operation).map(|(_, times)| times).unwrap_or_default()
}

/// Reads a document now and then, `rounds` times.
fn reading(pause_ms: u64, rounds: &str) -> String {
    format!(
        "ChangeTo MAIL\nOpen $Inbox\nBeginLoop\nNavigate 1 NEXT CIRCULAR\nPause {pause_ms}\nRewind {rounds}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_users_do_three_rounds_of_r5_mail() {
    let server = FakeServer::start(Faults::default()).await;
    let mut sixty = variables();
    // Two pages of the inbox, so that scrolling down always shows enough documents to read.
    sixty.set("NumMailNotesPerUser", "60");
    let workload = Workload::find("R5Mail", &sixty).unwrap();
    let three_rounds = workload.text.replace("\nRewind\n", "\nRewind 3\n");
    let plan = Plan { variables: workload.variables, speedup: 900.0, ..plan(&three_rounds, 20) };
    let measured = run(&server, &plan).await;
    assert_eq!(failures(&measured), []);
    assert_eq!(measured.run.cut, Some(Cut::UsersEnded));
    assert_eq!((measured.preparation.databases_created, measured.preparation.documents_added), (20, 1200));

    let report = report_of(&plan, &measured, "test");
    let count = |command: &str, transaction: &str| {
        let mut rows = report.operations.iter();
        rows.find(|row| (row.command.as_str(), row.transaction.as_str()) == (command, transaction))
            .map_or(0, |row| row.answered)
    };
    let per_round = [
        ("Entries", "READ_ENTRIES", 1),
        ("Navigate", "OPEN_NOTE", 5),
        ("Stamp", "OPEN_NOTE", 2),
        ("Stamp", "UPDATE_NOTE", 2),
        ("SendMessage", "MAIL_DEPOSIT", 1),
        ("Cal Appointment", "MAIL_DEPOSIT", 1),
        ("Cal Invitation", "MAIL_DEPOSIT", 1),
        ("Add", "UPDATE_NOTE", 1),
        ("Delete", "DELETE_NOTE", 1),
    ];
    for (command, transaction, times) in per_round {
        assert_eq!(count(command, transaction), 20 * 3 * times, "{command} {transaction}");
    }
    // Before the rounds the mail file is opened, and found to be full.
    assert_eq!((count("ChangeTo", "OPEN_DB"), count("Open", "OPEN_COLLECTION")), (20 * 5, 20 * 4));
    assert_eq!(report.summary.latency.count, 20 * (3 * 15 + 9));
    assert_eq!((report.summary.failed, report.summary.conflicts), (0, 0));

    // Every message has arrived with each of its three recipients.
    assert_eq!(server.count("mail.box"), 20 * 3 * 3);
    let delivered: usize = (1..=20)
        .flat_map(|user| server.documents(&format!("mail/user{user:04}")))
        .filter(|document| document["SendTo"].as_array().is_some_and(|people| people.len() == 3))
        .count();
    let deleted = server
        .deleted()
        .iter()
        .filter(|document| document["SendTo"].as_array().is_some_and(|people| people.len() == 3))
        .count();
    assert_eq!(delivered + deleted, 3 * 20 * 3 * 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_is_opened_as_what_it_is() {
    for folders in [true, false] {
        let server = FakeServer::start(Faults { folders, ..Faults::default() }).await;
        let script = "ChangeTo MAIL\nOpen $Inbox\nEntries\nAdd 1";
        for prepare in [true, false] {
            let measured = run(&server, &Plan { prepare, ..plan(script, 2) }).await;
            assert_eq!(failures(&measured), []);
        }
        let log = server.log();
        let was_asked = |what: &str| log.iter().any(|line| line.starts_with("GET /") && line.ends_with(what));
        let asked = (was_asked("/_folder/Inbox"), was_asked("/_design/mail/_view/inbox"));
        assert_eq!(asked, (folders, !folders), "{log:#?}");
    }
}

/// Counting begins when everyone has done a round, and what is there already is left alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_begins_when_everyone_is_at_work() {
    let server = FakeServer::start(Faults::default()).await;
    let short = Plan { ramp_up: None, duration: Duration::from_millis(500), ..plan(&reading(20, ""), 5) };
    let measured = run(&server, &short).await;
    assert_eq!((measured.run.users_past_first_round, failures(&measured)), (5, Vec::new()));
    assert_eq!(measured.run.behind.len(), 5);
    let all = measured.run.recorder.totals().requests;
    assert!(times(&measured, Operation::Navigate).answered < all, "what came before does not count");
    let again = run(&server, &short).await;
    assert_eq!((again.preparation.databases_created, again.preparation.documents_added), (0, 0));
}

/// Users who think longer than they keep an idle connection come back on a new one, on time and without an error.
#[tokio::test(flavor = "multi_thread")]
async fn users_come_back_after_they_closed_an_idle_connection() {
    let server = FakeServer::start(Faults::default()).await;
    let connections = async |plan: &Plan| {
        let before = server.connections();
        let measured = run(&server, plan).await;
        assert_eq!(failures(&measured), Vec::new());
        assert_eq!(times(&measured, Operation::Navigate).answered, 2 * 6);
        server.connections() - before
    };
    let keep = plan(&reading(300, "6"), 2);
    run(&server, &keep).await;
    let close = Plan { keep_alive: Some(Duration::from_millis(30)), ..keep.clone() };
    let longer = Plan { keep_alive: Some(Duration::from_secs(60)), ..keep.clone() };
    // A user who is held up by the machine until it is late does not rest, and closes nothing.
    for left in (0..5).rev() {
        let (kept, closed) = (connections(&keep).await, connections(&close).await);
        assert!(kept < closed && closed <= kept + 2 * 5, "a new one for each but the first reading");
        let kept_longer = connections(&longer).await;
        if left == 0 || closed == kept + 2 * 5 {
            assert_eq!((closed, kept_longer), (kept + 2 * 5, kept));
            break;
        }
    }
    let with_mail = Plan { target: "http://a, imap://a".to_owned(), ..close.clone() };
    assert_eq!(with_mail.connected(1000), 1000, "who is logged in to mail stays connected");
    assert_eq!((keep.connected(1000), longer.connected(1000), close.connected(1000)), (1000, 1000, 150));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_server_cannot_hide() {
    let server = FakeServer::start(Faults::default()).await;
    let plan = plan(&reading(20, "80"), 4);
    let stalling = async {
        // Preparing is done when the first user begins to read.
        while !server.log().iter().any(|request| request.contains("/lab-")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.stall_for(Duration::from_millis(300));
    };
    let (measured, ()) = tokio::join!(run(&server, &plan), stalling);
    let latency = times(&measured, Operation::Navigate).latency.summary();
    assert_eq!(latency.count, 4 * 80);
    // Each user had 15 reads due in the stall: 10 of its 80 waited for 100 ms or longer. Counted from the
    // sending it would be one of 80, and no percentile but the hundredth would show it.
    assert!(latency.max_ms >= 270.0 && latency.p95_ms >= 100.0, "{latency:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_is_an_error_and_no_sample() {
    let server = FakeServer::start(Faults { wrong_bodies: Some(5), ..Faults::default() }).await;
    let plan = plan(&reading(1, "50"), 4);
    let measured = run(&server, &plan).await;
    assert_eq!(failures(&measured), [(Operation::Navigate, "wrong answer".to_owned(), 40)]);
    let reads = times(&measured, Operation::Navigate);
    assert_eq!((reads.answered, reads.failed, reads.latency.summary().count), (160, 40, 160));
    let report = report_of(&plan, &measured, "test");
    assert!(report.failures[0].first.len() == 3 && report.failures[0].first[0].contains("digest"));
    assert!(!report.passed() && !report.objectives[0].reached);
}

#[tokio::test(flavor = "multi_thread")]
async fn known_delays_and_errors_are_reported() {
    let delay = Duration::from_millis(40);
    let server =
        FakeServer::start(Faults { delay, failing_reads: Some((10, 503)), ..Faults::default() }).await;
    let measured = run(&server, &plan(&reading(60, "20"), 5)).await;
    assert_eq!(failures(&measured), [(Operation::Navigate, "status 503".to_owned(), 10)]);
    let reads = times(&measured, Operation::Navigate);
    assert_eq!((reads.answered, reads.latency.summary().count), (90, 90));
    assert!(reads.latency.summary().min_ms >= 40.0 && reads.service.summary().min_ms >= 40.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_read_again() {
    let server = FakeServer::start(Faults { conflicts: Some(4), ..Faults::default() }).await;
    let plan = plan("ChangeTo MAIL\nOpen $Inbox\nNavigate 10\nStamp 8", 3);
    let measured = run(&server, &plan).await;
    assert_eq!(failures(&measured), []);
    // Eight stamps take ten changes, of which two are tried again.
    assert_eq!(measured.run.recorder.totals().conflicts, 3 * 2);
    assert_eq!(times(&measured, Operation::Stamp).answered, 3 * 8);
    for user in 1..=3 {
        let stamped = server.documents(&format!("mail/user{user:04}"));
        let stamped = stamped.iter().filter(|document| document["Categories"][0] == "round 0").count();
        assert_eq!(stamped, 8);
    }
}

/// Where the machine is so slow that others than the unanswered requests time out, more time is given: what is never
/// answered times out all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_is_an_error() {
    for time_out in [1, 10, 100].map(Duration::from_secs) {
        let server = FakeServer::start(Faults { silent_deletes: true, ..Faults::default() }).await;
        let prepared = plan("ChangeTo MAIL", 3);
        run(&server, &prepared).await;
        let script = "ChangeTo MAIL\nOpen $Inbox\nBreak 1\nDelete 1\nAdd 1";
        let plan = Plan { prepare: false, time_out, ..plan(script, 3) };
        let options = HttpOptions { time_out, ..options(&server) };
        let driver = HttpDriver::new(options).unwrap();
        let Ok(measured) = load(driver, &plan, &Progress::silent()).await else { continue };
        let failures = failures(&measured);
        assert!(failures.iter().all(|(_, kind, _)| kind == "time-out"), "{failures:?}");
        let deletes = times(&measured, Operation::Delete);
        assert_eq!((deletes.answered, times(&measured, Operation::Add).answered), (0, 0));
        if failures != [(Operation::Delete, "time-out".to_owned(), 3)] {
            continue;
        }
        // A time-out is a latency of at least its length.
        let least_ms = time_out.as_secs_f64() * 1000.0 * 0.99;
        assert!(deletes.latency.summary().min_ms >= least_ms, "{:?}", deletes.latency.summary());
        return;
    }
    panic!("requests that are answered timed out after 100 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_too_much_is_stopped() {
    let server = FakeServer::start(Faults { failing_reads: Some((1, 500)), ..Faults::default() }).await;
    let mut plan = plan(&reading(5, ""), 4);
    plan.stop.errors_percent = 40.0;
    let measured = run(&server, &plan).await;
    assert!(matches!(measured.run.cut, Some(Cut::Errors(percent)) if percent > 40.0));
    let report = report_of(&plan, &measured, "test");
    assert!(!report.validity.valid && report.validity.reasons[0].contains("stopped early"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_at_a_time_is_in_a_critical_region() {
    let server = FakeServer::start(Faults { delay: Duration::from_millis(20), ..Faults::default() }).await;
    let plan = Plan {
        ramp_up: Some(Duration::from_millis(1)),
        ..plan("ChangeTo MAIL\nBeginCrit\nAdd 2\nEndCrit", 5)
    };
    let measured = run(&server, &plan).await;
    assert_eq!(failures(&measured), []);
    let adds =
        server.log().into_iter().filter(|line| line.starts_with("PUT /mail%2F") && line.contains("/lab-"));
    let users: Vec<String> = adds.map(|line| line[..22].to_owned()).collect();
    let mut entered = users.clone();
    entered.dedup();
    assert_eq!((users.len(), entered.len()), (10, 5), "{users:?}");
}

#[tokio::test]
async fn what_cannot_be_done_is_said_before_anything_is_sent() {
    let server = FakeServer::start(Faults::default()).await;
    let try_it = async |options: HttpOptions, script: &str| {
        let driver = HttpDriver::new(options).unwrap();
        load(driver, &plan(script, 1), &Progress::silent()).await.err().unwrap()
    };
    let later = try_it(options(&server), "Close\nLDAPLookup").await;
    assert_eq!(later.to_string(), "test cannot be run yet: line 2: LDAPLookup");
    assert!(server.log().is_empty());

    let admin = Some(("admin".to_owned(), "guess".to_owned()));
    let refused = try_it(HttpOptions { admin, ..options(&server) }, "Close").await;
    assert!(
        matches!(refused, LabError::Prepare { .. }) && refused.to_string().contains("status 401"),
        "{refused}"
    );

    let target = "http://127.0.0.1:9".to_owned();
    let nobody = try_it(HttpOptions { target, ..options(&server) }, "Close").await;
    assert!(matches!(nobody, LabError::NoServer { .. }), "{nobody}");
}
