//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod agree;
mod any_bytes;
mod archive;
mod bounds;
mod chain;
mod committer;
mod common;
mod damage;
mod format;
mod kill;
mod model;
mod survey;
mod unlogged;
