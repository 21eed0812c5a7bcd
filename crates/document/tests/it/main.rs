//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod collation;
mod fields;
mod outgoing;
mod parse;
mod revision_tree;
mod sensitivity;
mod separator;
