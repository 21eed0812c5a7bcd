//! Rules for the time of day: one crate asks the system for it, and every other one is handed a clock.

use std::path::Path;

use crate::{File, Finding};

/// Crates that measure or check from outside, and the one that the rule is for.
const FREE: [&str; 6] = ["clock", "lab", "planner", "bench", "fault", "tidy"];

/// What asks for the time of day, or does by hand what `clock` has functions for.
const ASKS: [&str; 6] =
    ["SystemTime::now", "UNIX_EPOCH", "Timestamp::now", "Zoned::now", "ClockId::Realtime", "CLOCK_REALTIME"];

/// A constant of the calendar's library, which is no question.
const CALENDAR: &str = "Timestamp::UNIX_EPOCH";

/// The clock of the system is made where the server, or one of its commands, starts.
const SYSTEM: &str = "Clock::system()";
const STARTS: &str = "server";

pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) {
    for file in files.iter().filter(|file| file.has_extension("rs")) {
        let Some(name) = product_crate(&file.path).filter(|name| !FREE.contains(name)) else { continue };
        let served = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in (1..).zip(served.lines()) {
            let code = line.split("//").next().unwrap_or_default().replace(CALENDAR, "");
            for asks in ASKS.iter().filter(|asks| code.contains(**asks)) {
                let what = format!("{asks}: the time comes from the clock that came with the options");
                findings.push(file.finding(number, what));
            }
            if name != STARTS && code.contains(SYSTEM) {
                let what =
                    format!("only `{STARTS}` makes {SYSTEM}; take the clock that came with the options");
                findings.push(file.finding(number, what));
            }
        }
    }
}

/// The crate whose sources, tests apart, this file belongs to.
pub(crate) fn product_crate(path: &Path) -> Option<&str> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["crates", name, "src", inner @ ..] if !inner.iter().any(|part| is_tests(part)) => Some(*name),
        _ => None,
    }
}

fn is_tests(part: &str) -> bool {
    part == "tests" || part == "tests.rs"
}
