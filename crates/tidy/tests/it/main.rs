//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod benchmarks;
mod changes;
mod closing;
mod parts;
mod regression;
mod stamps;
mod tidy;
