//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod anything;
mod common;
mod credentials;
mod directory;
mod documents;
mod logins;
mod names;
mod sasl;
mod table;
mod unreadable;
