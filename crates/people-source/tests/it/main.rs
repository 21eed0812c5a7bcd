//! People and groups from elsewhere: what sources say, what is planned, and what is said to a server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod client;
mod entries;
mod ldif;
mod openldap;
mod plan;
mod server;
mod tables;
