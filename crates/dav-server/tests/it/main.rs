//! Calendars and address books, as programs ask for them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod access;
mod common;
mod files;
mod hostile;
mod index;
mod published;
mod queries;
mod resources;
mod scheduling;
mod sync;
