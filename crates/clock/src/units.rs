//! Times and durations as whole numbers.

use std::time::{Duration, SystemTime};

/// A duration in whole milliseconds; more than 2^64 of them are 2^64 − 1.
#[must_use]
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A time of day in whole milliseconds since 1970; 0 for one before.
#[must_use]
pub fn unix_ms(time: SystemTime) -> u64 {
    milliseconds(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// The time of day that lies this many milliseconds after the beginning of 1970.
#[must_use]
pub fn from_unix_ms(unix_ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(unix_ms)
}

/// A time of day in whole seconds since 1970; 0 for one before.
#[must_use]
pub fn unix_s(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
