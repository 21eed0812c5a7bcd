//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod function;
mod hostile;
mod map;
mod processes;
mod reduce;
mod validate;
