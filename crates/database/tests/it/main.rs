//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

mod access;
mod adopt;
mod anything;
mod build_crash;
mod build_full;
mod bulk_model;
mod categories;
mod clock;
mod common;
mod compact;
mod compact_crash;
mod conflicts;
mod damaged;
mod differential;
mod documents;
mod encoded;
mod folders;
mod freshness;
mod full_disk;
mod golden;
mod history;
mod hostile_scripts;
mod leaves;
mod memory;
mod move_crash;
mod objects;
mod objects_crash;
mod opened;
mod outlines;
mod power_loss;
mod properties;
mod query;
mod quota;
mod renderings;
mod responses;
mod scripts;
#[path = "../../../mango/tests/it/support/mod.rs"]
mod support;
mod transactions;
mod undelete;
mod validation;
mod view_columns;
mod view_figures;
mod view_rebuilds;
mod views;
mod volumes;
