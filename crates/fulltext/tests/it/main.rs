//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod common;
mod crash;
mod damaged;
mod model;
mod syntax;
mod words;
