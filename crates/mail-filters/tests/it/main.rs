//! Filters: milter's protocol, rspamd, DNS lists, greylisting.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

mod greylist;
mod lists;
mod milter;
mod rspamd;
