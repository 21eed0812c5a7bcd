//! Sessions of IMAP, through their public interface, over a small world in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::cast_possible_truncation, reason = "the messages of a test are small")]

mod capabilities;

mod client;
mod clients;
mod commands;
mod fetch;
mod hostile;
mod model;
mod threads;
mod world;
