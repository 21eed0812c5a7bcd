//! How much memory and CPU a driver takes for so many users, each with a connection that stays open:
//! `cargo run --release -p scrinium-lab --example driver_memory -- [users] [seconds]`.
//!
//! The server in memory is another process, so that only the driver is measured. Users read a document every ten
//! seconds or so, which is many times what people do.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "it is a measurement, and may fall over")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use scrinium_lab::Progress;
use scrinium_lab::driver::{HttpDriver, HttpOptions, Login, ViewLanguage};
use scrinium_lab::load::{Objectives, Plan, StopConditions, load};
use scrinium_lab::monitor::ProcessMeter;
use scrinium_lab::report::{Report, table};
use scrinium_lab::schedule::Model;
use scrinium_lab::script::{Script, Variables};

#[path = "../tests/fake/mod.rs"]
mod fake;

const SCRIPT: &str =
    "ChangeTo MAIL\nOpen $Inbox\nBeginLoop\nPause 5000-15000\nNavigate 1 NEXT CIRCULAR\nRewind";

const TIME_OUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "serve") {
        return serve().await;
    }
    let number =
        |index: usize, default: u64| arguments.get(index).map_or(default, |text| text.parse().unwrap());
    let users = usize::try_from(number(0, 10_000)).unwrap();
    let mut server =
        Command::new(std::env::current_exe().unwrap()).arg("serve").stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let target = url.trim().to_owned();

    let driver = HttpDriver::new(HttpOptions {
        target: target.clone(),
        admin: Some(("admin".to_owned(), "secret".to_owned())),
        login: Login::Users,
        user_password: "word".to_owned(),
        view_language: ViewLanguage::Formula,
        directory: "directory".to_owned(),
        mail_box: "mail.box".to_owned(),
        time_out: TIME_OUT,
    });
    let plan = plan(target, users, Duration::from_secs(number(1, 60)));
    let before = ProcessMeter::new(std::process::id()).unwrap().read().unwrap().resident_bytes;
    let began = Instant::now();
    let measured = load(driver.unwrap(), &plan, &Progress::new()).await.unwrap();
    let report = Report::of(&plan, &measured, "driver_memory");
    server.kill().unwrap();
    server.wait().unwrap();
    println!("{}", table::text(&report));
    let driver = &report.drivers[0];
    println!(
        "{users} users: the driver took {} MB, {} MB before them, {:.1} KB a user; {:.1} % of {} CPUs, timers late by {:.1} ms (99 %), {:.0} s in all",
        driver.resident_bytes >> 20,
        before >> 20,
        (driver.resident_bytes - before) as f64 / 1024.0 / users as f64,
        driver.cpu_percent,
        driver.cpus,
        driver.lag_p99_ms,
        began.elapsed().as_secs_f64()
    );
}

/// The server, for as many connections as the system lets it have.
async fn serve() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let faults = fake::Faults { forgetful: true, ..fake::Faults::default() };
    let server = fake::FakeServer::start_at("127.0.0.1:0", faults).await;
    println!("{}", server.url());
    std::future::pending::<()>().await;
}

fn plan(target: String, users: usize, duration: Duration) -> Plan {
    let mut given = Variables::default();
    for (name, value) in [("NumMailNotesPerUser", "5"), ("NormalMessageSize", "1000"), ("nb_dbdir", "mail/")]
    {
        given.set(name, value);
    }
    let (script, variables) = Script::parse(SCRIPT, &given).unwrap();
    Plan {
        workload: "reading".to_owned(),
        origin: "driver_memory".to_owned(),
        script: Arc::new(script),
        variables,
        users,
        user_prefix: "user".to_owned(),
        target,
        duration,
        ramp_up: Some(Duration::from_secs(30)),
        ramp_down: Duration::from_secs(3),
        speedup: 1.0,
        model: Model::Open,
        seed: 1,
        time_out: TIME_OUT,
        prepare: true,
        server_pid: None,
        stop: StopConditions { time_outs: 1000, errors_percent: 50.0, average_ms: None },
        objectives: Objectives { average_ms: None, p99_ms: None, errors_percent: 1.0 },
    }
}
