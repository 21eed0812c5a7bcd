//! How much memory and CPU a driver takes for a number of users, each with a connection that stays open where the protocol has
//! such: `cargo run --release -p scrinium-lab --example driver_memory -- [users] [seconds] [http|imap|imaps|smtp]`.
//!
//! The server in memory is another process, so that only the driver is measured. Users do something every ten seconds or
//! so, which is many times what people do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "it is a measurement, and may fall over"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use scrinium_lab::Progress;
use scrinium_lab::load::{Plan, load};
use scrinium_lab::monitor::ProcessMeter;
use scrinium_lab::report::report_of;
use scrinium_lab_report::run::table;

#[path = "../tests/crowd/mod.rs"]
mod crowd;

use crowd::{Kind, Server};

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "serve") {
        return crowd::serve(&arguments[1], Path::new(&arguments[2])).await;
    }
    let number =
        |index: usize, default: u64| arguments.get(index).map_or(default, |text| text.parse().unwrap());
    let users = usize::try_from(number(0, 10_000)).unwrap();
    let name = arguments.get(2).map_or("http", String::as_str);
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name).expect("http, imap, imaps or smtp");
    let server = Server::start(&std::env::current_exe().unwrap(), kind);
    let plan = Plan {
        duration: Duration::from_secs(number(1, 60)),
        ..server.plan(kind, users, (5000, 15_000), Duration::from_secs(30))
    };
    let before = ProcessMeter::new(std::process::id()).unwrap().read().unwrap().resident_bytes;
    let began = Instant::now();
    let measured = load(server.targets(users), &plan, &Progress::new()).await.unwrap();
    let report = report_of(&plan, &measured, "driver_memory");
    println!("{}", table::text(&report));
    let driver = &report.drivers[0];
    println!(
        "{users} users of {name}: the driver took {} MB, {} MB before them, {:.1} KB a user; {:.1} % of {} CPUs, timers late by {:.1} ms (99 %), {:.0} s in all",
        driver.resident_bytes >> 20,
        before >> 20,
        (driver.resident_bytes - before) as f64 / 1024.0 / users as f64,
        driver.cpu_percent,
        driver.cpus,
        driver.lag_p99_ms,
        began.elapsed().as_secs_f64()
    );
}
