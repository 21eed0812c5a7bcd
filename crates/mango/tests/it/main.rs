//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod bookmarks;
mod choosing;
mod hostile;
mod indexes;
mod model;
mod operators;
mod requests;
mod support;
