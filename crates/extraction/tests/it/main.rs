//! Words of files, as an index of words gets them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod files;
mod hostile;
