//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

mod common;
mod fit;
mod plan;
mod queueing;
