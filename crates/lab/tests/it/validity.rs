//! When a run is not valid.

use std::time::Duration;

use scrinium_lab::load::Cut;
use scrinium_lab::report::validity::{Evidence, judge};
use scrinium_lab_report::run::DriverRow;

#[path = "../../../lab-report/tests/it/driver_row.rs"]
mod driver_row;

use driver_row::driver_row;

fn evidence() -> Evidence {
    Evidence {
        drivers: vec![driver_row()],
        server_cpu_percent: Some(45.0),
        answered: 1000,
        hold: Duration::from_secs(60),
        users: 10,
        users_past_first_round: 10,
        endless: true,
        ..Evidence::default()
    }
}

/// Whether it is valid, and how many warnings there are, after a change for the worse.
fn judged(change: fn(&mut Evidence)) -> (bool, usize) {
    let mut evidence = evidence();
    change(&mut evidence);
    let judged = judge(&evidence);
    (judged.valid, judged.warnings.len())
}

#[test]
fn a_starved_driver_spoils_a_run() {
    assert_eq!(judged(|_| {}), (true, 0));
    assert_eq!(judged(|evidence| evidence.drivers[0].machine_cpu_percent = 80.0), (true, 2));
    assert_eq!(judged(|evidence| evidence.drivers[0].machine_cpu_percent = 86.0), (false, 1));
    assert_eq!(judged(|evidence| evidence.drivers[0].lag_p99_ms = 20.0), (true, 1));
    assert_eq!(judged(|evidence| evidence.drivers[0].lag_p99_ms = 51.0), (false, 0));
    // Users who are late are not woken: then only the heart tells.
    assert_eq!(judged(|evidence| evidence.drivers[0].beat_p99_ms = 51.0), (false, 0));
    assert_eq!(judged(|evidence| evidence.drivers[0].cpu_wait_mean_ms = Some(3.0)), (true, 1));
    assert_eq!(judged(|evidence| evidence.drivers[0].cpu_wait_mean_ms = Some(11.0)), (false, 0));
    assert_eq!(judged(|evidence| evidence.drivers[0].clock_drift_ms = Some(-150.0)), (true, 1));
    // A driver that may use half a CPU and does so is full, and the server has the rest.
    let quota: fn(&mut Evidence) = |evidence| {
        evidence.drivers[0].cpus = 0.5;
        evidence.drivers[0].machine_cpu_percent = 90.0;
    };
    assert_eq!(judged(quota), (false, 0));
    // Of two drivers the bad one is named.
    let mut two = evidence();
    two.drivers.push(DriverRow { name: "driver b".to_owned(), lag_p99_ms: 70.0, ..driver_row() });
    let reasons = judge(&two).reasons;
    assert!(reasons.len() == 1 && reasons[0].contains("driver b"), "{reasons:?}");
}

#[test]
fn a_run_that_was_cut_short_or_not_begun_by_all() {
    assert_eq!(judged(|evidence| evidence.server_cpu_percent = Some(58.0)), (true, 1));
    assert_eq!(judged(|evidence| evidence.users_past_first_round = 9), (true, 1));
    assert_eq!(judged(|evidence| evidence.answered = 0), (false, 0));
    assert_eq!(judged(|evidence| evidence.cut = Some(Cut::Operator)), (false, 0));
    assert_eq!(judged(|evidence| evidence.cut = Some(Cut::ServerGone)), (false, 0));
    assert_eq!(judged(|evidence| evidence.cut = Some(Cut::DriverLost("driver b".to_owned()))), (false, 0));
    assert_eq!(judged(|evidence| evidence.cut = Some(Cut::UsersEnded)), (true, 1));
}

/// A search for the largest number of users has to know whether the server or the driver was at its limit.
#[test]
fn a_server_that_does_not_keep_up_is_told_from_a_driver_that_does_not() {
    let overloaded = |cut: Option<Cut>, driver_percent: f64| {
        let mut evidence = evidence();
        evidence.cut = cut;
        evidence.drivers[0].machine_cpu_percent = driver_percent;
        judge(&evidence).overloaded
    };
    for cut in [Cut::TimeOuts(1000), Cut::Errors(60.0), Cut::Average(500.0)] {
        assert!(overloaded(Some(cut.clone()), 40.0), "{cut:?}");
        assert!(!overloaded(Some(cut.clone()), 95.0), "{cut:?}, and the driver had no time");
    }
    assert!(!overloaded(None, 40.0) && !overloaded(None, 95.0));
    assert!(!overloaded(Some(Cut::ServerGone), 40.0) && !overloaded(Some(Cut::Operator), 40.0));
}
