//! Lines and texts, whatever the pieces that they come in.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod dots;
mod line;
