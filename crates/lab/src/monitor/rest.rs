//! Waiting until a server that was just filled is at rest: what it still merges and gives back would be counted as the
//! users'.

use std::time::Duration;

use tokio::time::Instant;

use super::{ProcessMeter, Usage};

const LOOK: Duration = Duration::from_millis(500);

/// This many looks in a row must be quiet: free memory goes back every two seconds.
pub(crate) const QUIET_LOOKS: u32 = 6;

/// A look is quiet if less of one processor was used, and memory has not shrunk by a hundredth.
const QUIET_CPU: f64 = 0.05;
const QUIET_PART: u64 = 100;

/// Waits for the server's processes on this machine, no longer than `most`. `looked` hears how many looks in a row were
/// quiet.
pub(crate) async fn rest(pids: &[u32], most: Duration, looked: impl Fn(u32)) {
    let Some(mut meter) = ProcessMeter::of(pids) else { return };
    let began = Instant::now();
    let (mut quiet, mut seen_at, mut before_bytes) = (0, Instant::now(), 0);
    while quiet < QUIET_LOOKS && began.elapsed() + LOOK <= most {
        tokio::time::sleep(LOOK).await;
        let Some(usage) = meter.read() else { break };
        quiet = if is_quiet(&usage, seen_at.elapsed(), before_bytes) { quiet + 1 } else { 0 };
        (seen_at, before_bytes) = (Instant::now(), usage.resident_bytes);
        looked(quiet);
    }
}

fn is_quiet(usage: &Usage, elapsed: Duration, before_bytes: u64) -> bool {
    let busy = (usage.user_s + usage.system_s) / elapsed.as_secs_f64().max(1e-3);
    let shrank_bytes = before_bytes.saturating_sub(usage.resident_bytes);
    busy < QUIET_CPU && shrank_bytes < (before_bytes / QUIET_PART).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_works_or_shrinks_is_not_at_rest() {
        let usage = |user_s, resident_bytes| Usage { user_s, resident_bytes, ..Usage::default() };
        let second = Duration::from_secs(1);
        assert!(is_quiet(&usage(0.04, 100 << 20), second, 100 << 20));
        assert!(is_quiet(&usage(0.04, 200 << 20), second, 100 << 20));
        assert!(!is_quiet(&usage(0.06, 100 << 20), second, 100 << 20));
        assert!(!is_quiet(&usage(0.0, 98 << 20), second, 100 << 20));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_was_said() {
        let begun = Instant::now();
        rest(&[std::process::id()], Duration::from_millis(100), |_| ()).await;
        rest(&[], Duration::from_secs(20), |_| ()).await;
        assert!(begun.elapsed() < LOOK);
    }
}
