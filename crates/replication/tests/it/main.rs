//! Tests of replication.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod agree;
mod engine;
mod ground;
mod jobs;
mod settle;
