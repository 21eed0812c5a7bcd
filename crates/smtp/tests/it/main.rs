//! The sessions, through their public interface.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod client;
mod hostile;
mod login;
mod model;
mod pair;
mod server;
mod world;
