//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.
//!
//! Those with etcd need `scripts/etcd`, or `ETCD_BIN`; without it they say that they were skipped.

#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod conformance;
mod engines;
mod etcd_faults;
mod etcd_server;
mod examine;
mod killed;
mod members;
mod node;
