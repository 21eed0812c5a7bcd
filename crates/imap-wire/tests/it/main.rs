//! IMAP on the wire: what is written is read back, whatever the bytes nothing breaks, and transcripts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod arbitrary;
mod frames;
mod hostile;
mod names;
mod round_trip;
mod transcripts;
