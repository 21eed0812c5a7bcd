//! Connections come in, are counted, encrypted, shed and refused.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod arrivals;
