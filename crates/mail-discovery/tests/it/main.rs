//! What a mail domain publishes, and MTA-STS.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

mod setup;
mod sts;
