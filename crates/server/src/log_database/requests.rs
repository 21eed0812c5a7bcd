//! Requests: operations that took long, and who used which database how much.

use std::sync::atomic::Ordering;

use scrinium_clock::milliseconds;
use scrinium_http::{Observer, Operated, Used};
use serde_json::json;

use super::record::bounded;
use super::{Class, LogDatabase, fields_of};

impl Observer for LogDatabase {
    fn operated(&self, operated: &Operated<'_>) {
        let slow_after_us = self.shared.slow_after_us.load(Ordering::Relaxed);
        if operated.elapsed.as_micros() < u128::from(slow_after_us) {
            return;
        }
        self.record(Class::Slow, || {
            fields_of(json!({
                "Operation": operated.operation,
                "Database": bounded(operated.database),
                "Person": bounded(operated.person.unwrap_or_default()),
                "Milliseconds": milliseconds(operated.elapsed),
                "WaitMilliseconds": milliseconds(operated.waited),
            }))
        });
    }

    fn used(&self, used: &Used<'_>) {
        self.shared.usage.add(used);
    }
}
