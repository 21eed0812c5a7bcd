//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::cast_precision_loss,
    clippy::float_cmp,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod batch;
mod checkpoint;
mod common;
mod crash;
mod damaged;
mod faults;
mod flips;
mod full;
mod logging;
mod memory;
mod model;
mod options;
mod power_loss;
