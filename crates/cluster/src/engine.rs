//! What is asked of an engine: transactions that compare, then write or read, as etcd has them.
//!
//! All comparisons and operations of one [`Transaction`] take effect at one moment, which lies between the call and
//! its answer. A transaction without comparisons reads the newest state. A call without an answer may have taken effect, or may still do so.

use std::future::Future;

use bytes::Bytes;

use crate::Revision;

/// An engine that members ask, over a network or in memory.
pub trait Engine: Send + Sync + 'static {
    /// Has a transaction carried out. It ends by itself within a bounded time; who drops it before does not know the outcome.
    fn transact(&self, transaction: Transaction) -> impl Future<Output = Result<Reply, NoAnswer>> + Send;

    /// Waits until keys from `from` to before `to` may have changed. It may end in vain, and may miss a change, so it is waited for
    /// besides looking now and then.
    fn changed(&self, from: Bytes, to: Bytes) -> impl Future<Output = ()> + Send;

    /// Lets the engine forget what keys held before `through`. What they hold now, and when it was written, stays.
    fn forget_before(&self, through: Revision) -> impl Future<Output = Result<(), NoAnswer>> + Send;
}

/// What must hold of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// It was last changed at this revision.
    Unchanged {
        /// The key.
        key: Bytes,
        /// When it was changed.
        since: Revision,
    },
    /// It is not there.
    Absent {
        /// The key.
        key: Bytes,
    },
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Sets a key.
    Put {
        /// The key.
        key: Bytes,
        /// Its value.
        value: Bytes,
    },
    /// Reads a key.
    Get {
        /// The key.
        key: Bytes,
    },
    /// Reads keys from `from` to before `to`.
    Range {
        /// The first key.
        from: Bytes,
        /// The key after the last.
        to: Bytes,
        /// At most this many.
        limit: usize,
        /// The highest first.
        descending: bool,
    },
    /// Removes keys from `from` to before `to`.
    Delete {
        /// The first key.
        from: Bytes,
        /// The key after the last.
        to: Bytes,
    },
}

/// Comparisons, what is done if all of them hold, and what else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Transaction {
    /// What must hold.
    pub compares: Vec<Compare>,
    /// Done in this order if all of it holds.
    pub then: Vec<Operation>,
    /// Done in this order if not.
    pub otherwise: Vec<Operation>,
}

/// A key as the engine holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredKey {
    /// The key.
    pub key: Bytes,
    /// Its value.
    pub value: Bytes,
    /// When it was last changed.
    pub revision: Revision,
}

/// The engine's answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reply {
    /// The engine's revision after the transaction; what it has put was changed at this revision.
    pub revision: Revision,
    /// Whether the comparisons held.
    pub succeeded: bool,
    /// What each `Get` and `Range` of the branch that was taken has found, in their order.
    pub found: Vec<Vec<StoredKey>>,
}

/// No answer came: what was asked for may have been done, or not, or may be done later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the engine did not answer")]
pub struct NoAnswer;
