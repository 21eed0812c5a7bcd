//! What clients hold of the server, counted in one place for all protocols.
//!
//! Before somebody has logged in, what they use is counted for the [`Network`] that they come from: one address of
//! IPv4, or the part of an IPv6 address that a provider gives to one customer. After that it is counted for the
//! person. A [`Holder`] is one of both.
//!
//! [`Accounts`] counts three kinds of things:
//!
//! - **Connections** ([`Connection`]): over its limit, a holder's oldest idle connection is shed, and the new one is
//!   taken. When the whole server is full, the oldest idle one of all goes.
//! - **Holdings** ([`Account`]): requests, feeds, bytes, worker threads and log-ins under way. Each is a
//!   [`Claim`], which is given back when it is dropped.
//! - **Guesses** ([`Accounts::guess`]): who failed to log in, from where, and how long the next attempt must wait.
//!
//! Memory is bounded by what is held: an entry goes with its last claim, and guesses are kept in a table of fixed
//! size, so that no number of addresses makes it grow. Each operation takes constant time. Nothing here knows a
//! protocol or waits for a client.

mod account;
mod accounts;
mod connection;
mod error;
mod guess;
mod network;
mod options;
mod ring;
mod table;

pub use account::{Account, Claim, Thread};
pub use accounts::Accounts;
pub use connection::{Busy, Connection, Shed};
pub use error::{ConnectionRefusal, Overdrawn};
pub use guess::{Guess, GuessFigures, Standing, Verdict};
pub use network::{AddressRange, Network, NetworkPrefixes, RangeError, is_within};
pub use options::{AccountOptions, GuessOptions, HolderLimits, Resource};

use std::sync::Arc;

/// Whom something is counted for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Somebody from this network who has not logged in.
    Network(Network),
    /// Somebody who has, by the name that tells people apart.
    Person(Arc<str>),
    /// A server administrator, whom only the limits of the whole server bound: they could stop it anyhow.
    Administrator(Arc<str>),
}
