//! The sessions, through their public interface.

mod client;
mod hostile;
mod login;
mod pair;
mod server;
mod world;
