//! The workloads, run: what a run counts compared with what was expected.

use std::time::Duration;

use scrinium_lab::driver::{HttpDriver, HttpOptions, ViewLanguage};
use scrinium_lab::load::{Measured, Plan, StopConditions, load};
use scrinium_lab::{LabError, Progress};
use scrinium_lab_script::{Ability, Command, Estimate, Operation, Script, Variables, Workload};

use crate::fake::{FakeServer, Faults};

const TIME_OUT: Duration = Duration::from_secs(20);

fn small() -> Variables {
    let mut given = Variables::default();
    for (name, value) in
        [("NumMailNotesPerUser", "70"), ("NumSharedNotes", "90"), ("ReplicateDocuments", "2")]
    {
        given.set(name, value);
    }
    given
}

/// A workload with what is small of it; a variable that it does not have is an error.
fn found_small(name: &str) -> Workload {
    let text = Workload::find(name, &Variables::default()).unwrap().text;
    let mut given = Variables::default();
    for (name, value) in small().iter().filter(|(name, _)| *name != "NumSharedNotes" || text.contains(name)) {
        given.set(name, value);
    }
    Workload::find(name, &given).unwrap()
}

fn options(server: &FakeServer, view_language: ViewLanguage) -> HttpOptions {
    HttpOptions {
        admin: Some(("admin".to_owned(), "secret".to_owned())),
        user_password: "word".to_owned(),
        view_language,
        time_out: TIME_OUT,
        ..HttpOptions::new(server.url())
    }
}

fn plan(script: Script, variables: Variables, users: usize) -> Plan {
    Plan {
        duration: Duration::from_secs(100),
        ramp_up: Some(Duration::from_millis(100)),
        ramp_down: Duration::from_millis(100),
        speedup: 20_000.0,
        seed: 7,
        time_out: TIME_OUT,
        stop: StopConditions { time_outs: 1000, errors_percent: 100.0, average_ms: None },
        ..Plan::new("test", script, variables, users)
    }
}

async fn run(server: &FakeServer, plan: &Plan) -> Measured {
    let driver = HttpDriver::new(options(server, ViewLanguage::Formula)).unwrap();
    load(driver, plan, &Progress::silent()).await.unwrap()
}

fn failures(measured: &Measured) -> Vec<String> {
    let failures = measured.run.recorder.failures();
    failures
        .into_iter()
        .map(|(operation, kind, log)| format!("{operation:?} {kind} {:?}", log.first))
        .collect()
}

fn answered(measured: &Measured, operation: Operation) -> u64 {
    let all = measured.run.recorder.operations();
    all.into_iter().find(|(found, _)| *found == operation).map_or(0, |(_, times)| times.answered)
}

/// As many rounds that what comes in every nth one comes the same number of times for each user: two at least.
fn rounds(script: &Script) -> u64 {
    let nth = |command: &Command| match command {
        Command::SkipUnlessNth { nth, .. } | Command::Accept { nth } => *nth,
        Command::SendMessage { sending, .. }
        | Command::Answer { sending, .. }
        | Command::Calendar { sending, .. } => sending.nth,
        _ => 1,
    };
    let all: Vec<u64> = script.statements.iter().map(|statement| nth(&statement.command)).collect();
    (2..).find(|rounds| all.iter().all(|nth| u64::is_multiple_of(*rounds, *nth))).unwrap()
}

/// What depends on what others have sent until then.
const DEPENDS: [Operation; 5] = [
    Operation::AcceptFetch,
    Operation::Accept,
    Operation::NewMailRefresh,
    Operation::ReplicateRead,
    Operation::ReplicateChanges,
];

/// Some rounds of each workload that can be run, by three users: requests are those that were expected.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_counts_what_was_expected() {
    for name in Workload::names() {
        let workload = found_small(&name);
        if workload.script.abilities().iter().any(|needed| !needed.contains(&Ability::Documents)) {
            continue;
        }
        let text = workload.text.replace("\nRewind\n", &format!("\nRewind {}\n", rounds(&workload.script)));
        let (script, variables) = Script::parse(&text, &workload.variables).unwrap();
        let estimate = Estimate::of(&script);
        let server = FakeServer::start(Faults { folders: true, ..Faults::default() }).await;
        // Of several users who change a shared document some meet a conflict, and read it once more.
        let users = if name.starts_with("groupware") { 1 } else { 3 };
        let measured = run(&server, &plan(script, variables, users)).await;
        assert_eq!(failures(&measured), Vec::<String>::new(), "{name}");
        for request in &estimate.requests {
            #[allow(clippy::cast_precision_loss, reason = "a test's users are few")]
            let expected = request.per_loop * users as f64;
            #[allow(clippy::cast_precision_loss, reason = "a test's requests are few")]
            let found = answered(&measured, request.operation) as f64;
            let right = if DEPENDS.contains(&request.operation) {
                found <= expected + 3.0
            } else {
                (found - expected).abs() < 0.5
            };
            assert!(right, "{name}: {:?} {found} and not {expected}", request.operation);
        }
    }
}

/// Elsewhere marks stay with the user, and a folder is a field; what cannot be had at all is refused beforehand.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_folders_is_asked_for_none() {
    let server = FakeServer::start(Faults { folders: false, ..Faults::default() }).await;
    for name in ["n8mail", "shared-database"] {
        let workload = found_small(name);
        let text = workload.text.replace("\nRewind\n", "\nRewind 2\n");
        let (script, variables) = Script::parse(&text, &workload.variables).unwrap();
        let measured = run(&server, &plan(script, variables, 2)).await;
        assert_eq!(failures(&measured), Vec::<String>::new(), "{name}");
    }
    let moved =
        server.documents("mail/user0001").iter().filter(|document| document["Folder"] == "Projects").count();
    // One in each round, unless the view, which shows it still, led to the same one again.
    assert!((1..=2).contains(&moved), "{moved}");
    assert!(
        !server
            .log()
            .iter()
            .any(|line| line.contains("/_unread") || line.starts_with("POST") && line.contains("_folder"))
    );

    let (script, variables) = Script::parse("Pause 1\nConsole x show tasks", &small()).unwrap();
    let driver = HttpDriver::new(options(&server, ViewLanguage::Javascript)).unwrap();
    let refused = load(driver, &plan(script, variables, 1), &Progress::silent()).await.err().unwrap();
    assert!(
        matches!(refused, LabError::Prepare { .. }) && refused.to_string().contains("Console (line 2)"),
        "{refused}"
    );
}

/// Most messages go to few, where the workload says so.
#[tokio::test(flavor = "multi_thread")]
async fn some_people_get_more_messages_than_others() {
    let server = FakeServer::start(Faults { folders: true, ..Faults::default() }).await;
    let mut given = small();
    for (name, value) in [("NumMailNotesPerUser", "0"), ("RecipientSkew", "20:80")] {
        given.set(name, value);
    }
    let (script, variables) = Script::parse("BeginLoop\nSendMessage 10 1\nRewind 100", &given).unwrap();
    let measured = run(&server, &plan(script, variables, 10)).await;
    assert_eq!(failures(&measured), Vec::<String>::new());
    let often: usize = (1..=2).map(|user| server.count(&format!("mail/user{user:04}"))).sum();
    let seldom: usize = (3..=10).map(|user| server.count(&format!("mail/user{user:04}"))).sum();
    assert_eq!(often + seldom, 1000);
    assert!((740..=860).contains(&often), "{often} of 1000");
}
