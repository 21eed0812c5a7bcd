//! The HTTP interface as its clients see it: transcripts by subject, against a server with a real store.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

mod access;
mod addresses;
mod anything;
mod attachments;
mod bulk;
mod categories;
mod changes;
mod clients;
mod common;
mod configuration;
mod conformance;
mod counts;
mod credentials;
mod database_updates;
mod databases;
mod documents;
mod filters;
mod folders;
mod framing;
mod full_text;
mod hidden;
mod history;
mod hostile;
mod http2;
mod intake;
mod lingering;
mod mail_setup;
mod mango;
mod matrix;
mod message_parts;
mod multipart;
mod observer;
mod passwords;
mod person_feed;
mod poisoned;
mod ports;
mod pull;
mod purge;
mod replication;
mod routes;
mod sessions;
mod slow_views;
mod standing;
mod starvation;
mod transactions;
mod validation;
mod view_rules;
mod views;
mod web_pages;
