//! The directory by LDAP, only to be read: for address books, and for programs that let people log in.
//!
//! [`LdapProtocol`] is a thin loop around the sessions of [`scrinium_ldap`]: it reads and writes, hands shakes for StartTLS and
//! keeps time. Log-ins go the way of all protocols ([`scrinium_directory::Logins`]). Searches are cut into short pieces of work
//! for the pool.
//!
//! *Invariant*: no password is looked at where others can listen, and nobody sees an entry without a log-in; who has logged in sees
//! what the access list of the directory's database and the documents let them read, of that a list of attributes, and nobody who
//! is disabled. No thread waits for a client; what an answer holds is in the account of the one who asks.

#![forbid(unsafe_code)]

mod connection;
mod desk;
mod entries;
mod protocol;
mod search;

pub use protocol::{LdapOptions, LdapProtocol};
