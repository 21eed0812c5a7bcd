//! The queue in simulated time against a simple model, its records, routes, outcomes and reports.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod hostile;
mod kit;
mod loops;
mod outcomes;
mod records;
mod reports;
mod routes;
mod scheduler;
mod shown;
mod simulation;
mod world;
