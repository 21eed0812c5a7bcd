//! LDAP on the wire: what is written is read back, whatever the bytes nothing breaks, recordings of real clients and a
//! real server, and the standards' examples.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod answers;
mod arbitrary;
mod frames;
mod hostile;
mod matching;
mod names;
mod recorded;
mod round_trip;
mod schema;
mod standard;
mod urls;
