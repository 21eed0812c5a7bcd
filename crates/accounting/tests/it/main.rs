//! Accounts of networks and people.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod connections;
mod guesses;
mod holdings;
mod networks;
