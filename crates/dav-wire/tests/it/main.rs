//! WebDAV and what it carries, on the wire: what is written is read back, whatever the bytes nothing breaks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod bodies;
mod content;
mod headers;
mod values;
