//! ManageSieve (RFC 5804) at ports: people's mail programs list, read, check and set their Sieve scripts.
//!
//! [`ManageSieveProtocol`] serves connections of a port. A connection reads one command, does it, answers, and reads the next, so
//! that it holds one command at most.
//!
//! *Invariant*: nobody reads or sets a script before a log-in, and nobody logs in where others can listen; a command has a limit
//! before a byte of it is kept; what came in the clear behind STARTTLS is never done.

#![forbid(unsafe_code)]

mod connection;
mod desk;
mod input;
mod protocol;

pub use protocol::{ManageSieveOptions, ManageSieveProtocol};
