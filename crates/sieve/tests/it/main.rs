//! Sieve: what scripts mean, what is wrong with them, what they may cost, and what Debian's `sieve-test` says of the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod examples;
mod extensions;
mod faults;
mod hostile;
mod kit;
mod message;
mod oracle;
mod replies;
mod settings;
