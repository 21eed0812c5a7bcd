//! The laboratory against a server whose delays, stalls and faults are known: it reports each as the server itself
//! has measured it, or refuses the run. Nothing is compared with a constant of time: on a busy machine the server
//! is late as well, and says how late.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::fake::{Delivery, FakeServer, Faults, Served};
use scrinium_lab::Progress;
use scrinium_lab::driver::{HttpDriver, HttpOptions};
use scrinium_lab::load::{Measured, Objectives, Plan, StopConditions, load};
use scrinium_lab::measure::{OperationTimes, Times};
use scrinium_lab::report::report_of;
use scrinium_lab_report::run::Report;
use scrinium_lab_script::{Operation, Script, Variables};
use serde_json::Value;

/// What the laboratory promises: figures are within this of what happened.
const PROMISE: f64 = 0.02;

/// A driver that is starved by the rest of the machine refuses the run; then it is tried again.
const TRIES: usize = 5;

/// Users read documents, `rounds` times each, due every `pause_ms`. Everything counts, from beginning to end.
fn plan(server: &FakeServer, users: usize, pause_ms: u64, rounds: usize) -> Plan {
    let mut given = Variables::default();
    for (name, value) in [("NumMailNotesPerUser", "20"), ("NormalMessageSize", "2000"), ("nb_dbdir", "mail/")]
    {
        given.set(name, value);
    }
    let text = format!(
        "ChangeTo MAIL\nOpen $Inbox\nBeginLoop\nNavigate 1 NEXT CIRCULAR\nPause {pause_ms}\nRewind {rounds}"
    );
    let (script, variables) = Script::parse(&text, &given).unwrap();
    Plan {
        target: server.url(),
        duration: Duration::from_secs(3600),
        ramp_up: Some(Duration::from_millis(500)),
        ramp_down: Duration::from_millis(100),
        seed: 7,
        time_out: Duration::from_secs(120),
        stop: StopConditions { time_outs: 1000, errors_percent: 100.0, average_ms: None },
        objectives: Objectives { average_ms: None, p99_ms: None, errors_percent: 100.0 },
        ..Plan::new("test", script, variables, users)
    }
}

async fn run(server: &FakeServer, plan: &Plan) -> Measured {
    let driver = HttpDriver::new(HttpOptions {
        admin: Some(("admin".to_owned(), "secret".to_owned())),
        user_password: "word".to_owned(),
        time_out: plan.time_out,
        ..HttpOptions::new(server.url())
    });
    load(driver.unwrap(), plan, &Progress::silent()).await.unwrap()
}

fn reads(measured: &Measured) -> OperationTimes {
    let all = measured.run.recorder.operations();
    all.into_iter().find(|(operation, _)| *operation == Operation::Navigate).map(|(_, times)| times).unwrap()
}

fn failures(measured: &Measured) -> Vec<(String, u64)> {
    let failures = measured.run.recorder.failures();
    failures.into_iter().map(|(_, kind, log)| (kind.to_string(), log.count)).collect()
}

fn times(served: &[Served]) -> Times {
    let mut times = Times::default();
    served.iter().for_each(|served| times.record(served.took));
    times
}

/// The driver's complaints about itself.
fn refused(report: &Report) -> bool {
    let own = |reason: &String| reason.contains("the driver") || reason.contains("timers of");
    !report.validity.valid && report.validity.reasons.iter().all(own)
}

/// `late_ms`: how late the driver's heart beat at most, by its own account, on a machine that had no time for it; else
/// nothing. The server's task has to be woken for a request, and two of the driver's for the answer; each can be as late.
fn assert_within_promise(what: &str, reported: f64, measured: f64, late_ms: f64) {
    let error = (reported - measured).abs() - 3.0 * late_ms;
    assert!(
        error <= PROMISE * measured,
        "{what}: reported {reported}, and the server measured {measured}; the driver was late by {late_ms} ms at most"
    );
}

/// Two delays, one for 90 % and one for 10 % of the readings: the mean and every percentile are known. On a machine that
/// starves the driver in every try, what is reported beyond what the server has measured is no more than the lateness that
/// the driver admits.
#[tokio::test(flavor = "multi_thread")]
async fn known_delays_are_reported_within_two_percent() {
    let (short, long) = (Duration::from_millis(600), Duration::from_millis(2400));
    for left in (0..TRIES).rev() {
        let server =
            FakeServer::start(Faults { read_delays: Some((short, 10, long)), ..Faults::default() }).await;
        // Many people with few readings each take a third of the time of few with many.
        let ramp_up = Some(Duration::from_secs(2));
        let plan = Plan { ramp_up, ..plan(&server, 100, 3000, 3) };
        let measured = run(&server, &plan).await;
        let (served, report) = (server.served(), report_of(&plan, &measured, "test"));
        let (ours, theirs) = (reads(&measured).service.summary(), times(&served).summary());
        assert_eq!((ours.count, theirs.count), (300, 300));
        assert_eq!(failures(&measured), []);
        // Whatever the machine does, nothing is reported as faster than it was.
        assert!(ours.mean_ms >= theirs.mean_ms * (1.0 - PROMISE), "{ours:?} {theirs:?}");
        let late_ms = measured.run.drivers[0].beat.max_ms;
        let was_starved = refused(&report) || 3.0 * late_ms > PROMISE * theirs.p50_ms;
        if was_starved && left > 0 {
            continue;
        }
        let allowed_ms = if was_starved { late_ms } else { 0.0 };
        assert_within_promise("mean", ours.mean_ms, theirs.mean_ms, allowed_ms);
        assert_within_promise("median", ours.p50_ms, theirs.p50_ms, allowed_ms);
        assert_within_promise("95 %", ours.p95_ms, theirs.p95_ms, allowed_ms);
        assert_within_promise("99 %", ours.p99_ms, theirs.p99_ms, allowed_ms);
        assert!(report.validity.valid || refused(&report), "{:?}", report.validity);
        assert!(theirs.p95_ms >= 2400.0 && theirs.p50_ms >= 600.0, "{theirs:?}");
        return;
    }
}

/// Nobody is answered for 10 s. What is due in the meantime is due all the same: it is counted, and has waited.
#[tokio::test(flavor = "multi_thread")]
async fn a_stall_of_ten_seconds_shows_in_the_99th_percentile() {
    const STALL_MS: u64 = 10_000;
    const USERS: usize = 10;
    const ROUNDS: usize = 100;
    const PAUSE_MS: u64 = 200;
    let server = FakeServer::start(Faults::default()).await;
    let plan = plan(&server, USERS, PAUSE_MS, ROUNDS);
    let stalling = async {
        while server.served().len() < 5 * USERS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.stall_for(Duration::from_millis(STALL_MS));
    };
    let (measured, ()) = tokio::join!(run(&server, &plan), stalling);
    let latency = reads(&measured).latency.summary();
    let longest_ms = times(&server.served()).summary().max_ms;
    // A slow machine only makes it longer; the users are held up for as long as the server has measured.
    assert!(longest_ms >= 9500.0, "the server has stalled for {longest_ms} ms");
    assert!(latency.max_ms >= longest_ms * (1.0 - PROMISE), "{latency:?}, {longest_ms}");
    // Every reading that was due is there: the stall has taken none away.
    assert_eq!((latency.count, failures(&measured).len()), ((USERS * ROUNDS) as u64, 0));
    // Half of all readings were due while it stalled, spread evenly over it, so that the last one in a hundred of
    // all has waited for 98 % of it.
    assert!(latency.p99_ms >= 0.98 * longest_ms * (1.0 - PROMISE), "{latency:?}, {longest_ms}");
    let pairs: Vec<(u32, u64)> =
        serde_json::from_value(serde_json::to_value(reads(&measured).latency.sparse()).unwrap()).unwrap();
    let waited: u64 = pairs.iter().filter(|(us, _)| *us >= 5_000_000).map(|(_, count)| count).sum();
    // Due in the first half of the stall; one of each user was sent just before it, and may be missing.
    let wanted = USERS as u64 * (STALL_MS / 2 / PAUSE_MS - 1);
    assert!(
        waited as f64 >= wanted as f64 * (1.0 - PROMISE),
        "{waited} of {wanted} operations that were due"
    );
}

/// A share of the readings goes wrong in a way of its own; each is an error, and none is a sample.
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_wrong_answer_is_counted() {
    let kinds: [(&str, Faults); 3] = [
        ("status 503", Faults { failing_reads: Some((5, 503)), ..Faults::default() }),
        ("wrong answer", Faults { wrong_bodies: Some(5), ..Faults::default() }),
        ("connection", Faults { truncated: Some(5), ..Faults::default() }),
    ];
    for (kind, faults) in kinds {
        let server = FakeServer::start(faults).await;
        let measured = run(&server, &plan(&server, 10, 5, 40)).await;
        assert_eq!(failures(&measured), [(kind.to_owned(), 80)]);
        let reads = reads(&measured);
        assert_eq!((reads.answered, reads.failed, reads.latency.summary().count), (320, 80, 320), "{kind}");
        assert_eq!(server.served().len(), 400, "{kind}");
    }
}

/// An answer that nobody asked for comes after the right one. It is seen when the connection is used again, which
/// the last one of each user never is.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_twice_is_an_error() {
    let server = FakeServer::start(Faults { doubled: Some(4), ..Faults::default() }).await;
    let measured = run(&server, &plan(&server, 10, 20, 40)).await;
    let doubled = server.served().iter().filter(|served| served.delivery == Delivery::Doubled).count() as u64;
    let counted: u64 = failures(&measured).iter().map(|(_, count)| count).sum();
    let kinds: Vec<String> = failures(&measured).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["wrong answer"]);
    assert!(counted <= doubled && counted + 10 >= doubled, "{counted} of {doubled}");
    // What was due and not sent for that reason is counted as due.
    let reads = reads(&measured);
    assert_eq!((reads.answered + reads.failed, reads.failed), (400, counted));
}

/// An answer that comes byte by byte has its latency when its last byte is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_dribbled_answer_counts_to_its_last_byte() {
    let time = Duration::from_secs(1);
    let server = FakeServer::start(Faults { dribbled: Some((2, time)), ..Faults::default() }).await;
    let measured = run(&server, &plan(&server, 10, 1500, 6)).await;
    let reads = reads(&measured).service.summary();
    let theirs = times(&server.served()).summary();
    assert_eq!((reads.count, theirs.count, failures(&measured).len()), (60, 60, 0));
    assert!(
        theirs.p95_ms >= 1000.0 && reads.p95_ms >= theirs.p95_ms * (1.0 - PROMISE),
        "{reads:?} {theirs:?}"
    );
    assert!(reads.mean_ms >= theirs.mean_ms * (1.0 - PROMISE), "{reads:?} {theirs:?}");
}

/// Processes that do nothing but use a CPU; they end with this.
struct Competitors(Vec<Child>);

impl Drop for Competitors {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A command on one CPU, the first that this process may use.
fn on_one_cpu(program: &str) -> Command {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let first: String = list.chars().take_while(char::is_ascii_digit).collect();
    let mut command = Command::new("taskset");
    command.args(["-c", &first, program]);
    command
}

/// A driver that shares one CPU with many others wants to send far more than it can. It must not call that the
/// server's slowness: the run is refused, and the driver named as the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_starved_driver_refuses_its_own_run() {
    let server = FakeServer::start(Faults { forgetful: true, ..Faults::default() }).await;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("hurry.script");
    std::fs::write(
        &script,
        "ChangeTo MAIL\nOpen $Inbox\nBeginLoop\nNavigate 1 NEXT CIRCULAR\nPause 2\nRewind\n",
    )
    .unwrap();
    let competitors: Vec<Child> =
        (0..16).map(|_| on_one_cpu("sh").args(["-c", "while :; do :; done"]).spawn().unwrap()).collect();
    let competitors = Competitors(competitors);
    let mut command = on_one_cpu(env!("CARGO_BIN_EXE_scrinium-lab"));
    command
        .args(["load", script.to_str().unwrap(), "--target", &server.url(), "--json", "--no-report"])
        .args(["--admin", "admin", "--password", "secret", "--users", "30", "--messages-per-user", "5"])
        .args(["--ramp-up", "1s", "--duration", "4s", "--ramp-down", "100ms"])
        .stderr(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    drop(competitors);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reasons = report["validity"]["reasons"].to_string();
    assert_eq!(
        (output.status.code(), &report["validity"]["valid"]),
        (Some(99), &Value::Bool(false)),
        "{reasons}"
    );
    assert!(reasons.contains("the driver"), "{reasons}");
    let driver = &report["drivers"][0];
    assert!((driver["cpus"].as_f64().unwrap() - 1.0).abs() < 0.01, "it may use one CPU: {driver}");
    assert!(driver["beat_p99_ms"].as_f64().unwrap() > 0.0 && driver["users"] == 30, "{driver}");
}
