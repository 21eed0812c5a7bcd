//! The present moment as memos write it.

use scrinium_clock::Clock;

/// Now, RFC 3339 in UTC with milliseconds, so that memos of one second keep their order in a view.
pub(crate) fn now_text(clock: &Clock) -> String {
    format!("{:.3}", clock.timestamp())
}
