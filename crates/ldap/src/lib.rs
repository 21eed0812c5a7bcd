//! Sessions of LDAP (RFC 4511), for a directory that is only read, without sockets: bytes and answers go in, bytes and
//! requests come out.
//!
//! One request is under way at a time, and what follows it waits with the client. Nobody sees more than the root entry before
//! a bind has succeeded. A bind over a connection to which others can listen is refused before its password is looked at.
//!
//! *Invariant*: pure: no sockets, no clock, no storage. No bytes make it panic; what is held is bounded by the limits of a message and
//! by the entries of one answer; nothing is left of a bind that was refused.

#![forbid(unsafe_code)]

mod request;
mod search;
mod session;

pub use request::{Answer, Binding, Request, Search};
pub use session::{ServerSession, SessionOptions};
