//! Sessions of POP3, through their public interface.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::cast_possible_truncation, reason = "the messages of a test are small")]

mod hostile;
mod sessions;
mod world;
