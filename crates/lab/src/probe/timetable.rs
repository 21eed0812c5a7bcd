//! When rounds are due, and what is noted of those that had to wait.

use std::time::{Duration, Instant};

use scrinium_lab_report::run::Subject;

use super::record::Point;
use super::rounds::Operations;
use crate::driver::Failure;

/// Rounds at fixed distances, whatever the server does. A server that stands still for a minute does so for everybody
/// who comes in that minute, so that each round that was due in it counts with what it would have waited.
pub(super) struct Timetable {
    begin: Instant,
    begin_unix_ms: i64,
    interval: Duration,
    next: u32,
}

/// No more rounds than this are noted for one that took long.
const MOST_WAITED: u32 = 3600;

impl Timetable {
    pub(super) fn new(begin: Instant, interval: Duration) -> Self {
        let begin_unix_ms = jiff::Timestamp::now().as_millisecond();
        Self { begin, begin_unix_ms, interval, next: 0 }
    }

    /// When the next round is due.
    pub(super) fn due(&self) -> Instant {
        self.begin + self.interval * self.next
    }

    fn unix_ms(&self, round: u32) -> i64 {
        let since = (self.interval * round).as_millis();
        self.begin_unix_ms.saturating_add(i64::try_from(since).unwrap_or(i64::MAX))
    }

    /// A round that was begun when it was due has ended at `now`. Gives it, and those that were due meanwhile.
    pub(super) fn done(
        &mut self,
        subject: Subject,
        outcome: Result<Operations, Failure>,
        now: Instant,
    ) -> Vec<Point> {
        let failed = outcome.is_err();
        let (operations, failure) = match outcome {
            Ok(operations) => (operations, None),
            Err(failure) => (Vec::new(), Some(failure.to_string())),
        };
        let asked_ms: f64 = operations.iter().map(|(_, ms)| ms).sum();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        let elapsed_ms = milliseconds(now.saturating_duration_since(self.due()));
        let response_ms = if failed { elapsed_ms } else { asked_ms };
        let mut points =
            vec![Point { subject, at_unix_ms: self.unix_ms(self.next), response_ms, operations, failure }];
        self.next = self.next.saturating_add(1);
        for _ in 0..MOST_WAITED {
            if self.due() > now {
                return points;
            }
            // Of a round that failed nobody knows what those would have waited who came during it.
            if !failed {
                let response_ms = milliseconds(now.saturating_duration_since(self.due()));
                let at_unix_ms = self.unix_ms(self.next);
                points.push(Point {
                    subject,
                    at_unix_ms,
                    response_ms,
                    operations: Vec::new(),
                    failure: None,
                });
            }
            self.next = self.next.saturating_add(1);
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_takes_long_is_seen_by_those_who_come_during_it() {
        let begin = Instant::now();
        let mut timetable = Timetable::new(begin, Duration::from_secs(10));
        let operations = || vec![("OPEN_DB".to_owned(), 34_000.0)];
        let points = timetable.done(Subject::Database, Ok(operations()), begin + Duration::from_secs(34));
        let responses: Vec<f64> = points.iter().map(|point| (point.response_ms / 1000.0).round()).collect();
        assert_eq!(responses, [34.0, 24.0, 14.0, 4.0]);
        assert_eq!(timetable.due(), begin + Duration::from_secs(40));

        let failure = Failure::new(crate::driver::FailureKind::TimeOut, "no answer");
        let points = timetable.done(Subject::Database, Err(failure), begin + Duration::from_secs(65));
        assert_eq!(points.len(), 1);
        assert!(points.iter().all(|point| point.failure.is_some()));
        assert_eq!(timetable.due(), begin + Duration::from_secs(70));
    }
}
