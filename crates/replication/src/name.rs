//! Names of checkpoints, sessions and jobs, and times as they are told.

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use md5::{Digest as _, Md5};
use scrinium_clock::Clock;

/// 32 hexadecimal digits of what these texts say together.
#[must_use]
pub(crate) fn digest_of(texts: &[&str]) -> String {
    let mut digest = Md5::new();
    for text in texts {
        // With its length in front, so that no two lists say the same.
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    }
    HEXLOWER.encode(&digest.finalize())
}

/// 32 hexadecimal digits that nobody had before.
#[must_use]
pub(crate) fn random_name() -> String {
    HEXLOWER.encode(&rand::random::<[u8; 16]>())
}

fn now(clock: &Clock) -> Timestamp {
    let now_ms = i64::try_from(clock.now_ms()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::MAX)
}

/// `Thu, 26 Nov 2026 12:00:00 GMT`, as CouchDB writes it into histories.
#[must_use]
pub(crate) fn http_time(clock: &Clock) -> String {
    now(clock).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// `2026-11-26T12:00:00Z`, as CouchDB writes it into `_scheduler`.
#[must_use]
pub(crate) fn iso_time(clock: &Clock) -> String {
    now(clock).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
