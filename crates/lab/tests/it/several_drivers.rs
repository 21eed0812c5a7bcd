//! One run driven by several processes: what each measures comes together, and one that is lost is named.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fake::{FakeServer, Faults};
use parking_lot::Mutex;
use proptest::prelude::*;
use scrinium_lab::driver::FailureKind;
use scrinium_lab::measure::{Recorded, Recorder, Sample};
use scrinium_lab::remote::{ClockReading, Exchange};
use scrinium_lab_script::Operation;
use serde_json::Value;

const TOKEN: &str = "a-token-of-this-test";

/// `lab load` of a script against the server, with the report as JSON.
fn load(server: &FakeServer, folder: &std::path::Path, script: &str, more: &[&str]) -> Command {
    let path = folder.join("test.script");
    std::fs::write(&path, script).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"));
    command
        .args(["load", path.to_str().unwrap(), "--target", &server.url(), "--json", "--no-report"])
        .args(["--admin", "admin", "--password", "secret", "--messages-per-user", "5"])
        .args(["--ramp-up", "500ms", "--ramp-down", "100ms"])
        .args(more)
        .env("SCRINIUM_LAB_TOKEN", TOKEN);
    command
}

async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Right answers of a command.
fn answered(report: &Value, command: &str) -> u64 {
    let rows = report["operations"].as_array().unwrap().iter();
    rows.filter(|row| row["command"] == command).map(|row| row["answered"].as_u64().unwrap()).sum()
}

/// A `lab drive` of our own, ended with this.
struct Drive {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    address: String,
}

impl Drive {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"))
            .args(["drive", "--listen", "127.0.0.1:0"])
            .env("SCRINIUM_LAB_TOKEN", TOKEN)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let (said, output) = (Arc::clone(&lines), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).for_each(|line| said.lock().push(line));
        });
        let mut drive = Self { child, lines, address: String::new() };
        let line = drive.says("Listening at ");
        let address = line.trim_start_matches("Listening at ").split(". ").next().unwrap();
        address.clone_into(&mut drive.address);
        drive
    }

    /// Waits for a line with this in it.
    fn says(&self, what: &str) -> String {
        let until = Instant::now() + Duration::from_secs(300);
        while Instant::now() < until {
            if let Some(line) = self.lines.lock().iter().find(|line| line.contains(what)) {
                return line.clone();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not say {what:?}, but {:?}", self.lines.lock());
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_processes_do_what_one_would_do() {
    let server = FakeServer::start(Faults::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let script = "ChangeTo MAIL\nOpen $Inbox\nBeginLoop\nNavigate 1 NEXT CIRCULAR\nPause 20\nRewind 15\n\
        BeginCrit\nAdd 2\nEndCrit";
    let more = ["--drivers", "3", "--users", "10", "--duration", "10m"];
    let output = output(load(&server, folder.path(), script, &more)).await;
    let report = report(&output);
    let counts = ["ChangeTo", "Open", "Navigate", "Add"].map(|command| answered(&report, command));
    assert_eq!(counts, [10, 10, 150, 20], "{report:#}");
    assert_eq!(
        (report["summary"]["failed"].as_u64(), report["summary"]["latency"]["count"].as_u64()),
        (Some(0), Some(190))
    );
    assert_eq!(server.served().len(), 150);
    // All drivers together are one user at a time in the critical region.
    let log = server.log();
    let adds = log.iter().filter(|line| line.starts_with("PUT /mail%2F") && line.contains("/lab-"));
    let mut users: Vec<&str> = adds.map(|line| &line[..22]).collect();
    assert_eq!(users.len(), 20);
    users.dedup();
    assert_eq!(users.len(), 10, "{users:?}");
    // Users are divided by number.
    let drivers = report["drivers"].as_array().unwrap();
    let divided: Vec<u64> = drivers.iter().map(|driver| driver["users"].as_u64().unwrap()).collect();
    assert_eq!(divided, [4, 3, 3]);
    for driver in drivers {
        // They are on one machine, whose clock is the same for all.
        let (moved, uncertain) = (&driver["clock_drift_ms"], &driver["clock_uncertainty_ms"]);
        assert!(moved.as_f64().unwrap().abs() <= 2.0 * uncertain.as_f64().unwrap() + 0.002, "{driver}");
        assert!(
            driver["resident_bytes"].as_u64().unwrap() > 1_000_000 && driver["beside_server"] == true,
            "{driver}"
        );
    }
    assert!(matches!(output.status.code(), Some(0 | 99)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_lets_nobody_in_without_the_token_and_goes_on() {
    let server = FakeServer::start(Faults::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::start();
    let script = "ChangeTo MAIL\nOpen $Inbox\nNavigate 3";
    let more = ["--driver", &drive.address, "--users", "4"];

    let mut wrong = load(&server, folder.path(), script, &more);
    wrong.env("SCRINIUM_LAB_TOKEN", "another-token-than-that");
    let refused = output(wrong).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("the token is another one"), "{said}");
    assert!(server.served().is_empty());

    // A message that says it is 4 GB long, and an invalid one: the connection is closed.
    for bytes in [&[0xff; 8][..], &[0, 0, 0, 2, b'h', b'i'][..]] {
        let mut stream = TcpStream::connect(&drive.address).unwrap();
        stream.write_all(bytes).unwrap();
        let mut greeting = Vec::new();
        // The driver closes with our bytes unread, which may come as a reset.
        drop(stream.read_to_end(&mut greeting));
    }
    drive.says("4294967295 bytes");
    drive.says("nobody understands");

    let right = output(load(&server, folder.path(), script, &more)).await;
    let report = report(&right);
    assert_eq!((answered(&report, "Navigate"), server.served().len()), (12, 12));
    assert_eq!(report["drivers"][0]["name"], format!("driver {}", drive.address));
    drive.says("done");

    let elsewhere = ["--driver", "192.0.2.1:7650", "--users", "4"];
    let no_way = output(load(&server, folder.path(), script, &elsewhere)).await;
    let said = String::from_utf8_lossy(&no_way.stderr).into_owned();
    assert!(no_way.status.code() == Some(2) && said.contains("its own machine"), "{said}");
}

/// Memos from users of one driver to users of others, of which the server loses one and delivers another one twice. What
/// the drivers have noted comes together: exactly these two are told, also where recipients have deleted what they read.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_and_a_doubled_message_are_told_whoever_drives_its_people() {
    const SCRIPT: &str = "ChangeTo MAIL\nOpen $Inbox\nBeginLoop\nSendMessage 300 2\nOpen\nDelete 1\nRewind 6";
    let drives = [Drive::start(), Drive::start()];
    let elsewhere: Vec<&str> = drives.iter().flat_map(|drive| ["--driver", &drive.address]).collect();
    for (lost, doubled, drivers) in [
        (None, None, vec!["--drivers", "3"]),
        (Some(17), Some(40), vec!["--drivers", "3"]),
        (Some(50), Some(3), elsewhere),
    ] {
        let faults = Faults { lost_delivery: lost, doubled_delivery: doubled, ..Faults::default() };
        let server = FakeServer::start(faults).await;
        let folder = tempfile::tempdir().unwrap();
        let mut more =
            vec!["--users", "6", "--duration", "10m", "--check-deliveries", "--delivery-wait", "0s"];
        more.extend(&drivers);
        let output = output(load(&server, folder.path(), SCRIPT, &more)).await;
        let report = report(&output);
        let deliveries = &report["deliveries"];
        let of = |name: &str| deliveries[name].as_u64().unwrap();
        assert_eq!((of("messages"), of("promised"), report["summary"]["failed"].as_u64()), (36, 72, Some(0)));
        let wrong = u64::from(lost.is_some());
        assert_eq!((of("missing"), of("twice"), of("delivered")), (wrong, wrong, 72 - wrong), "{deliveries}");
        assert_eq!(
            (of("altered"), of("strayed"), of("unread"), of("uncertain")),
            (0, 0, 0, 0),
            "{deliveries}"
        );
        assert!(output.status.code() == Some(99) || wrong == 0, "{deliveries}");
        // Some were read and deleted by users of other drivers than their senders'.
        let count = drives.len() + usize::from(drivers.contains(&"--drivers"));
        let share = |name: &str| (name.trim_start_matches("user").parse::<usize>().unwrap() - 1) % count;
        let apart = server.deleted().iter().filter(|memo| memo["SendTo"].is_array()).any(|memo| {
            let from = share(memo["From"].as_str().unwrap());
            memo["SendTo"].as_array().unwrap().iter().all(|to| share(to.as_str().unwrap()) != from)
        });
        assert!(apart, "no message went from one driver to another");
    }
}

const ENDLESS: &str = "ChangeTo MAIL\nOpen $Inbox\nBeginLoop\nNavigate 1 NEXT CIRCULAR\nPause 50\nRewind";

/// Waits until users are at work.
async fn at_work(server: &FakeServer) {
    while server.served().len() < 10 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_driver_spoils_the_run_and_is_named() {
    let server = FakeServer::start(Faults::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let (mut lost, kept) = (Drive::start(), Drive::start());
    let more = ["--driver", &kept.address, "--driver", &lost.address, "--users", "6", "--duration", "10m"];
    let running = tokio::spawn(output(load(&server, folder.path(), ENDLESS, &more)));
    at_work(&server).await;
    lost.child.kill().unwrap();
    let output = running.await.unwrap();
    let report = report(&output);
    assert_eq!((output.status.code(), &report["validity"]["valid"]), (Some(99), &Value::Bool(false)));
    let reasons = report["validity"]["reasons"].to_string();
    assert!(reasons.contains("was lost") && reasons.contains(&lost.address), "{reasons}");
    // What the other has measured is there.
    assert_eq!(report["drivers"].as_array().unwrap().len(), 1);
    kept.says("done");
}

/// No user works on for a controller that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn users_end_with_their_controller() {
    let server = FakeServer::start(Faults::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let drive = Drive::start();
    let more = ["--driver", &drive.address, "--users", "4", "--duration", "10m"];
    let mut command = load(&server, folder.path(), ENDLESS, &more);
    let mut controller = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    at_work(&server).await;
    controller.kill().unwrap();
    controller.wait().unwrap();
    drive.says("the controller is gone");
    // The connections of the users are closed; what was under way has been answered by now.
    let answered = server.served().len();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(server.served().len() <= answered + 4, "users go on");
}

proptest! {
    // Histograms have many buckets.
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Wherever the delay lies, on the way there or back: the true offset is within what the reading allows.
    #[test]
    fn a_clock_is_where_the_reading_says(
        offset in -1_000_000_000_i64..1_000_000_000,
        delays in proptest::collection::vec((0_u64..50_000, 0_u64..50_000), 1..12),
    ) {
        let mut exchanges = Vec::new();
        let mut now_us = 2_000_000_000_u64;
        for (there, back) in delays {
            let (asked_us, read_us, answered_us) = (now_us, now_us + there, now_us + there + back);
            exchanges.push(Exchange { asked_us, there_us: read_us.saturating_add_signed(offset), answered_us });
            now_us = answered_us + 10;
        }
        let reading = ClockReading::of(&exchanges).unwrap();
        prop_assert!((reading.offset_us - offset).unsigned_abs() <= reading.uncertainty_us);
        let there = reading.there_us(now_us);
        prop_assert!(there.abs_diff(now_us.saturating_add_signed(offset)) <= reading.uncertainty_us);
    }

    /// What three drivers have recorded, sent as JSON and added, is what one would have recorded.
    #[test]
    fn measurements_come_together(
        samples in proptest::collection::vec((0_usize..5, 0_usize..3, 1_u64..30_000_000, 0_u8..10), 1..300),
    ) {
        let (one, sum) = (Recorder::new(), Recorder::new());
        let three = [Recorder::new(), Recorder::new(), Recorder::new()];
        let due = Instant::now() + Duration::from_secs(1);
        for recorder in three.iter().chain([&one]) {
            recorder.begin_hold(due);
            recorder.end_hold(due + Duration::from_secs(60));
        }
        for (operation, driver, time_us, luck) in samples {
            let answered = due + Duration::from_micros(time_us);
            let sample = Sample { operation: Operation::ALL[operation], due, sent: due, answered };
            for recorder in [&one, &three[driver]] {
                match luck {
                    0 => recorder.failed(&sample, &scrinium_lab::driver::Failure {
                        kind: FailureKind::Status(503), detail: "busy".to_owned() }),
                    1 => recorder.failed(&sample, &scrinium_lab::driver::Failure {
                        kind: FailureKind::TimeOut, detail: "late".to_owned() }),
                    _ => recorder.answered(&sample),
                }
                recorder.lag(Duration::from_micros(time_us / 1000), answered);
            }
        }
        for recorder in &three {
            let sent = serde_json::to_string(&recorder.recorded()).unwrap();
            let come: Recorded = serde_json::from_str(&sent).unwrap();
            sum.add(&come);
        }
        prop_assert_eq!(sum.recorded(), one.recorded());
        prop_assert_eq!(sum.totals(), one.totals());
    }
}
