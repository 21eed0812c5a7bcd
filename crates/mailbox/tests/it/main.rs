//! Folders as sessions tell them, and messages as trees of parts, through their public interface.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::cast_possible_truncation, reason = "the messages of a test are small")]

mod dovecot;
mod map;
mod safe;
mod subject;
mod view;
