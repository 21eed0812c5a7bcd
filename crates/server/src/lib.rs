//! The server around the databases: configuration, command line, console, encryption of ports, signals.
//!
//! [`cli::run`] is the binary. [`Ground`] is what a running server stands on; databases and ports are
//! opened on it.

pub mod cli;
pub mod client;
pub mod config;
pub mod console;
pub mod credentials;
mod files;
mod ground;
pub mod messages;
mod program;
mod shutdown;
pub mod tls;

pub use ground::Ground;
pub use program::Scrinium;
pub use shutdown::Shutdown;
