//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod against_servers;
mod deliveries;
mod encryption;
mod experiment;
mod fake;
mod honesty;
mod load;
mod mail_server;
mod mishaps;
mod monitor;
mod probe;
mod program;
mod protocols;
mod schedule;
mod scripted;
mod servers;
mod several_drivers;
mod validity;
mod workloads;
