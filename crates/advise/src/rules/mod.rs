//! The table of rules, a file for each subject.

mod attachments;
mod backup;
mod compaction;
mod disk;
mod errors;
mod log;
mod mail;
mod memory;
mod requests;
mod views;

use crate::rule::Rule;

/// Keys that rules have changed whose new value is used from the next start on.
const AT_THE_NEXT_START: [&str; 10] = [
    "checkpoint.log_bytes",
    "file_cache.mode",
    "file_cache.threshold",
    "http.compression",
    "http.idle_timeout",
    "http.max_connections",
    "https.compression",
    "log.max_size",
    "log.style",
    "mail.boxes",
];

/// All rules, by subject.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [
        log::RULES,
        memory::RULES,
        requests::RULES,
        views::RULES,
        compaction::RULES,
        disk::RULES,
        mail::RULES,
        attachments::RULES,
        backup::RULES,
        errors::RULES,
    ]
    .into_iter()
    .flatten()
}

/// Whether a key's new value is used from the next start on.
#[must_use]
pub fn needs_restart(key: &str) -> bool {
    AT_THE_NEXT_START.contains(&key)
}
