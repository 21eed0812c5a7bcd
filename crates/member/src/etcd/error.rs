//! Why etcd did not answer as asked.

use std::time::Duration;

use super::EtcdAddress;

/// The longest sentence of etcd's that is repeated.
const LONGEST_SENTENCE: usize = 300;

/// Why a call had no answer. What it asked for may have been done all the same, but where the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdError {
    /// There is no connection, or it broke.
    #[error(
        "etcd at {address} cannot be reached ({reason}); is it running, and are address and certificates right?"
    )]
    Unreachable {
        /// Where.
        address: EtcdAddress,
        /// What happened.
        reason: String,
    },
    /// No answer came in time.
    #[error("etcd at {address} did not answer within {} ms; look at its log, its disk and the network", within.as_millis())]
    Late {
        /// Where.
        address: EtcdAddress,
        /// How long was waited.
        within: Duration,
    },
    /// It has no leader, or is about to stop.
    #[error(
        "etcd at {address} cannot serve now ({reason}); a majority of its servers must be up and reach each other"
    )]
    Unavailable {
        /// Where.
        address: EtcdAddress,
        /// What it said.
        reason: String,
    },
    /// Its database has reached its quota. Nothing was done.
    #[error(
        "etcd at {address} has no space left ({reason}); raise --quota-backend-bytes or defragment it, then disarm its alarm \
         with `etcdctl alarm disarm`"
    )]
    NoSpace {
        /// Where.
        address: EtcdAddress,
        /// What it said.
        reason: String,
    },
    /// It refused. Nothing was done.
    #[error("etcd at {address} refused (code {code}): {reason}")]
    Refused {
        /// Where.
        address: EtcdAddress,
        /// gRPC's number of the reason.
        code: u32,
        /// What it said.
        reason: String,
    },
    /// The answer is not one of etcd's.
    #[error(
        "what answers at {address} does not answer as etcd 3 does ({problem}); is it etcd's client address?"
    )]
    Malformed {
        /// Where.
        address: EtcdAddress,
        /// What is wrong.
        problem: String,
    },
}

impl EtcdError {
    /// Whether another server of the same etcd may do better.
    pub(super) const fn is_of_this_server(&self) -> bool {
        !matches!(self, Self::NoSpace { .. } | Self::Refused { .. })
    }

    /// From gRPC's status (`google.rpc.Code`).
    pub(super) fn of_status(address: &EtcdAddress, code: u32, reason: &str) -> Self {
        let (address, reason) = (address.clone(), reason.chars().take(LONGEST_SENTENCE).collect());
        match code {
            // DEADLINE_EXCEEDED, ABORTED, INTERNAL and UNAVAILABLE.
            4 | 10 | 13 | 14 => Self::Unavailable { address, reason },
            // RESOURCE_EXHAUSTED, which is also said of too many requests.
            8 if reason.contains("space") => Self::NoSpace { address, reason },
            8 => Self::Unavailable { address, reason },
            _ => Self::Refused { address, code, reason },
        }
    }
}
