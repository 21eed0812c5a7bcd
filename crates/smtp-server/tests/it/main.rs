//! Servers that take mail at real ports, and clients that bring it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;
mod filters;
mod hostile;
mod lmtp;
mod relay;
mod rspamd;
mod sender_check;
mod submission;
