//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

mod addresses;
mod common;
mod export;
mod frozen;
mod import;
mod import_database;
mod import_dialects;
mod import_folders;
mod incoming;
mod message_parts;
mod messages;
mod python_email;
mod recipients;
mod reread;
mod retention;
mod router;
mod router_crash;
mod rules;
mod sieve;
