//! A rule for access: what serves others never acts as the server itself, which may do everything.

use crate::{File, Finding, clock};

/// Crates that answer requests of others.
const SERVING: [&str; 1] = ["http"];

/// What lets anyone who holds it do everything, and what opens a database without asking for whom.
const UNCHECKED: [&str; 2] = ["of_the_server(", "databases.get("];

pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) {
    for file in files.iter().filter(|file| file.has_extension("rs")) {
        if !clock::product_crate(&file.path).is_some_and(|name| SERVING.contains(&name)) {
            continue;
        }
        let served = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in (1..).zip(served.lines()) {
            let code = line.split("//").next().unwrap_or_default();
            for unchecked in UNCHECKED.iter().filter(|unchecked| code.contains(**unchecked)) {
                let what = format!("{unchecked}: open it for the one who asks, by `Databases::open_for`");
                findings.push(file.finding(number, what));
            }
        }
    }
}
