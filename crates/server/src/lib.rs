//! The server around the databases: configuration, command line, console, encryption of ports, signals.
//!
//! [`cli::run`] is the binary. [`Ground`] is what a running server stands on; databases and ports are
//! opened on it.

mod administration;
mod allocators;
pub mod cli;
pub mod client;
pub mod config;
pub mod console;
pub mod credentials;
mod demo;
mod files;
mod ground;
mod guard;
mod lab_command;
mod mail_import;
pub mod messages;
mod people;
mod program;
mod running;
mod shutdown;
mod storage;
pub mod tls;
mod upkeep;

pub use ground::Ground;
pub use program::Scrinium;
pub use shutdown::Shutdown;
