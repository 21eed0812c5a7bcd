//! Requests that rename and remove people and groups, on databases that are real.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;
mod killed;
mod names;
mod orders;
