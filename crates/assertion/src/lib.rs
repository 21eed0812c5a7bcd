//! Assertions for a server that must not stop.
//!
//! [`never!`] marks a branch that cannot be reached, [`always!`] a condition that cannot be false: not by what a client
//! sends, not by a damaged disk, not by a race. What can happen is an ordinary error of its own type and never one of
//! these. A debug build panics, so that a test finds the mistake. A release continues: it writes an error to the log,
//! counts it (`Server.Faults`), and the branch returns the [`Fault`] as its error, so that nothing is built on a state
//! that nobody understands.
//!
//! ```
//! use scrinium_assertion::{Fault, always, never};
//!
//! fn middle(sorted: &[u32]) -> Result<u32, Fault> {
//!     always!(sorted.is_sorted(), "the numbers are in order")?;
//!     sorted.get(sorted.len() / 2).copied().ok_or_else(|| never!("there is a number in the middle", "{sorted:?}"))
//! }
//! assert_eq!(middle(&[1, 2, 3]), Ok(2));
//! ```
//!
//! A release panics too where the environment has `SCRINIUM_FAULTS=panic`, as the long tests do.

use std::fmt::Arguments;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many faults this process has seen.
static FAULTS: AtomicU64 = AtomicU64::new(0);

/// How many faults this process has seen.
#[must_use]
pub fn faults() -> u64 {
    FAULTS.load(Ordering::Relaxed)
}

/// Something happened that cannot happen: a mistake in the server. What was asked for was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fault in the server at {file}:{line}: {what}; report it with the lines of the log around it")]
pub struct Fault {
    /// What should have held.
    pub what: &'static str,
    /// The source file.
    pub file: &'static str,
    /// The line in it.
    pub line: u32,
}

/// The place of one assertion. [`never!`] and [`always!`] make it.
#[derive(Debug)]
pub struct Site {
    fault: Fault,
    times: AtomicU64,
}

impl Site {
    /// An assertion that has not failed yet.
    #[must_use]
    pub const fn new(what: &'static str, file: &'static str, line: u32) -> Self {
        Self { fault: Fault { what, file, line }, times: AtomicU64::new(0) }
    }

    /// The assertion has failed.
    #[cold]
    #[inline(never)]
    #[allow(clippy::panic, reason = "a test fails where what cannot happen has happened")]
    pub fn failed(&self, detail: Arguments<'_>) -> Fault {
        let fault = self.note(detail);
        if panics() && !std::thread::panicking() {
            panic!("{fault} {detail}");
        }
        fault
    }

    /// Counts it, and writes a line to the log at the first, second, fourth, eighth … time: at most 64 lines.
    fn note(&self, detail: Arguments<'_>) -> Fault {
        FAULTS.fetch_add(1, Ordering::Relaxed);
        let times = self.times.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if times.is_power_of_two() {
            let Fault { what, file, line } = self.fault;
            tracing::error!(file, line, times, %detail, "a fault in the server: {what}; please report it");
        }
        self.fault
    }
}

/// Whether a fault ends the thread that comes to it.
fn panics() -> bool {
    cfg!(debug_assertions) || std::env::var_os("SCRINIUM_FAULTS").is_some_and(|action| action == "panic")
}

/// Marks a branch that cannot be reached, and gives the [`Fault`] that it returns.
///
/// It takes what should have held, and after it, if wanted, a format with its arguments for the log.
#[macro_export]
macro_rules! never {
    ($what:literal $(,)?) => {
        $crate::never!($what, "")
    };
    ($what:literal, $($detail:tt)+) => {{
        static SITE: $crate::Site =
            $crate::Site::new($what, ::core::file!(), ::core::line!());
        SITE.failed(::core::format_args!($($detail)+))
    }};
}

/// States what always holds, as a `Result<(), Fault>`: `always!(from <= to, "a range does not end before it begins")?`.
///
/// It takes the condition, what it says, and after it, if wanted, a format with its arguments for the log.
#[macro_export]
macro_rules! always {
    ($holds:expr, $($what:tt)+) => {
        if $holds {
            ::core::result::Result::Ok::<(), $crate::Fault>(())
        } else {
            ::core::result::Result::Err($crate::never!($($what)+))
        }
    };
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::{Fault, Site, faults};

    /// Held by each test, since they count the same faults.
    static ALONE: Mutex<()> = Mutex::new(());

    /// What is written to the log.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_release_counts_every_fault_and_writes_few_lines() {
        let _alone = ALONE.lock().unwrap();
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let site = Site::new("a padding is shorter than a word", "writer.rs", 82);
        let before = faults();
        let fault = tracing::subscriber::with_default(subscriber, || {
            (0..1000).map(|times| site.note(format_args!("padding of {times} bytes"))).last()
        });
        assert_eq!(faults() - before, 1000);
        let expected = Fault { what: "a padding is shorter than a word", file: "writer.rs", line: 82 };
        assert_eq!(fault, Some(expected));
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        // 1, 2, 4 … 512.
        assert_eq!(text.lines().count(), 10, "{text}");
        let first = text.lines().next().unwrap();
        for part in ["ERROR", "a padding is shorter than a word", "writer.rs", "82", "padding of 0 bytes"] {
            assert!(first.contains(part), "{part} is missing: {first}");
        }
    }

    #[test]
    fn what_holds_costs_nothing_and_says_nothing() {
        let _alone = ALONE.lock().unwrap();
        let before = faults();
        assert_eq!(crate::always!(before < u64::MAX, "a counter does not overflow", "{before}"), Ok(()));
        assert_eq!(faults(), before);
    }

    #[test]
    fn a_test_panics_and_the_message_says_where() {
        let _alone = ALONE.lock().unwrap();
        let ordered =
            |numbers: &[u32]| crate::always!(numbers.is_sorted(), "one is more than two", "{numbers:?}");
        let panic = std::panic::catch_unwind(|| ordered(&[2, 1])).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains("one is more than two") && message.contains(file!()), "{message}");
        let panic = std::panic::catch_unwind(|| crate::never!("it is not reached")).unwrap_err();
        assert!(panic.downcast_ref::<String>().unwrap().contains("it is not reached"));
    }
}
