//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

mod common;
mod index;
mod power_loss;
mod questions;
mod queue;
mod signing;
mod sink;
mod sts;
mod wire;
