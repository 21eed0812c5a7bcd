//! Why something cannot be had now.

use thiserror::Error;

use crate::Resource;

/// A holder has as much as it may have.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "there are too many {resource} of yours: at most {limit} at once; end some, or try again in a moment"
)]
pub struct Overdrawn {
    /// Of what.
    pub resource: Resource,
    /// The most that one holder may have.
    pub limit: usize,
}

/// Why a connection was not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConnectionRefusal {
    /// The holder has as many as it may have, and something is under way on each.
    #[error("all {limit} connections of one network are busy")]
    HolderFull {
        /// The most that one holder may have.
        limit: usize,
    },
    /// The server has as many as it may have, and none is idle, or those that were shed have not closed yet.
    #[error("all {limit} connections of the server are busy")]
    ServerFull {
        /// The most that the server may have.
        limit: usize,
    },
}
