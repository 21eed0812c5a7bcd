//! Counters, gauges and histograms say what was recorded, from any thread.

use std::time::Duration;

use scrinium_statistics::Registry;

#[test]
fn threads_add_up() {
    let registry = Registry::new();
    registry.gauge("Server.Users", || 3.0);
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let registry = registry.clone();
            scope.spawn(move || {
                let operation = registry.operation("OPEN_NOTE");
                for step in 1..=100 {
                    registry.counter("Log.Bytes").add(thread);
                    operation.record(Duration::from_micros(step * 10));
                }
            });
        }
    });
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.counters["Log.Bytes"], 100 * (0..8).sum::<u64>());
    assert_eq!(snapshot.gauges["Server.Users"], 3.0);
    let summary = snapshot.operations["OPEN_NOTE"];
    assert_eq!((summary.count, summary.min_us, summary.total_us), (800, 10, 8 * 50_500));
    assert!((495..=506).contains(&summary.p50_us), "{summary:?}");
    assert!((985..=1000).contains(&summary.p99_us), "{summary:?}");
}

#[test]
fn an_operation_that_never_ran_is_all_zero() {
    assert_eq!(Registry::new().operation("DELETE_NOTE").summary().count, 0);
}
