//! The server around the databases: configuration, command line, console, ports' encryption, signals.

pub mod config;
pub mod console;
mod files;
