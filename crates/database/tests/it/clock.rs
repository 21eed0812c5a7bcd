//! The clock of the day jumps by days, forwards and back: nothing breaks, and what depends on the time follows it.
//!
//! `SCRINIUM_SEED` repeats the times that it jumps to.

use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::{SERVER, Server, all_rows, get, put};
use scrinium_database::{DatabaseOptions, Freshness, RowQuery};
use scrinium_fault::{ClockJumps, Faults, Plan, rerun, run_bounded};
use serde_json::{Value, json};

const OLDEST_S: i64 = 60;
const READS: u32 = 60;

fn now_s() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

#[test]
#[ignore = "a child process of the other test"]
fn child() {
    if std::env::var_os("SCRINIUM_FAULT_CLOCK").is_none() {
        return;
    }
    let server =
        Server::with(DatabaseOptions { time_variant_seconds: OLDEST_S, ..DatabaseOptions::default() });
    let database = server.databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap();
    let column = json!({"title": "Now", "formula": "@Now", "sort": "asc"});
    let changed = json!({"title": "N", "formula": "N", "sort": "asc"});
    put(
        &database,
        &json!({"_id": "_design/d", "language": "formula", "views": {
            "now": {"columns": [column]},
            "slowly": {"columns": [changed], "update": {"every_seconds": 1}}}}),
    )
    .unwrap();
    put(&database, &json!({"_id": "document", "N": 0})).unwrap();
    put(&database, &json!({"_id": "still", "N": -1})).unwrap();
    for read in 1..=READS {
        let mut document = get(&database, "document").unwrap();
        document["N"] = json!(read);
        put(&database, &document).unwrap();
        database.mark("ada", vec!["document".to_owned()], true, &SERVER).unwrap().wait().unwrap();
        let before_s = now_s();
        let query = RowQuery { freshness: Freshness::UpToDate, ..RowQuery::default() };
        let rows = all_rows(database.view("d", "now", query.clone(), &SERVER).unwrap());
        let after_s = now_s();
        let still = rows.iter().find(|row| row.id.as_deref() == Some("still")).unwrap();
        let key: Value = serde_json::from_str(&still.key).unwrap();
        let shown = key[0].as_str().unwrap();
        let shown_s = shown.parse::<jiff::Timestamp>().unwrap().as_second();
        let is_near = |time_s: i64| (time_s - shown_s).abs() <= OLDEST_S + 5;
        // It may have jumped meanwhile.
        assert!(is_near(before_s) || is_near(after_s), "{shown} was shown at {before_s} to {after_s}");
        assert_eq!(
            all_rows(database.view("d", "slowly", query, &SERVER).unwrap())[1].key,
            format!("[{read}]")
        );
        database.update_followed_views().unwrap();
        server.databases.discard_unused_views(Duration::from_hours(24)).unwrap();
        server.databases.purge_dropped().unwrap();
        server.databases.collect_contents().unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("@over");
}

#[test]
fn the_clock_jumps_by_days_and_views_of_the_time_follow() {
    let plan = Plan::from_environment(0);
    println!("SCRINIUM_SEED={}", plan.seed);
    let jumps = ClockJumps { seed: plan.seed, every: Duration::from_millis(50) };
    let mut command = rerun(module_path!(), "child").unwrap();
    Faults { clock: Some(jumps), ..Faults::default() }.interpose_clock(&mut command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = run_bounded(&mut command, Duration::from_secs(120)).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("@over"), "{}: {said}{}", output.status, String::from_utf8_lossy(&output.stderr));
}
