//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod compare;
mod driver_row;
mod pages;
mod report;
