//! A manual clock stands, passes and jumps on command; the system's is the system's.

use std::time::{Duration, SystemTime};

use scrinium_clock::{Clock, from_unix_ms, milliseconds, unix_ms, unix_s};

const START_MS: u64 = 1_700_000_000_123;

#[test]
fn a_manual_clock_stands_until_it_is_moved_and_its_clones_with_it() {
    let manual = Clock::manual(START_MS);
    let (clock, clone) = (manual.clock(), manual.clock());
    let before = clock.instant();
    assert_eq!((clock.now_ms(), clock.now_s(), clock.instant()), (START_MS, START_MS / 1000, before));
    manual.advance(Duration::from_millis(1500));
    assert_eq!((clone.now_ms(), clone.elapsed(before)), (START_MS + 1500, Duration::from_millis(1500)));
    assert_eq!(clone.timestamp().as_millisecond().unsigned_abs(), START_MS + 1500);
    assert_eq!(format!("{clock:?}"), format!("Clock::manual({})", START_MS + 1500));
}

#[test]
fn a_time_of_day_that_jumps_leaves_the_monotonic_time_alone() {
    let manual = Clock::manual(START_MS);
    let clock = manual.clock();
    let before = clock.instant();
    manual.advance(Duration::from_secs(1));
    for now_ms in [0, START_MS - 86_400_000, 253_402_300_800_000 * 10] {
        manual.set_ms(now_ms);
        assert_eq!((clock.now_ms(), clock.elapsed(before)), (now_ms, Duration::from_secs(1)));
    }
    // The calendar ends with the year 9999.
    assert_eq!(clock.timestamp(), jiff::Timestamp::MAX);
    assert_eq!(clock.elapsed(clock.instant() + Duration::from_secs(9)), Duration::ZERO);
}

#[test]
fn the_system_clock_is_the_default_and_tells_the_systems_time() {
    let clock = Clock::default();
    let (before, instant) = (SystemTime::now(), std::time::Instant::now());
    let told = (clock.now(), clock.instant());
    assert!(before <= told.0 && told.0 <= SystemTime::now());
    assert!(instant <= told.1 && told.1 <= std::time::Instant::now());
    assert_eq!(format!("{:?}", Clock::system()), format!("{clock:?}"));
}

#[test]
fn times_become_numbers_without_running_over() {
    let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    assert_eq!((unix_ms(early), unix_s(early)), (0, 0));
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(START_MS);
    assert_eq!((unix_ms(time), from_unix_ms(START_MS)), (START_MS, time));
    assert_eq!(unix_ms(from_unix_ms(u64::MAX)), u64::MAX);
    assert_eq!((milliseconds(Duration::MAX), milliseconds(Duration::from_micros(1999))), (u64::MAX, 1));
}
