//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
#![allow(clippy::needless_pass_by_value, reason = "tests write a value where they pass it")]

mod anything;
mod common;
mod credentials;
mod directory;
mod documents;
mod domains;
mod logins;
mod names;
mod sasl;
mod source_passwords;
mod table;
mod unreadable;
