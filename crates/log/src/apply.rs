//! What is done with records once they are durable.

use std::sync::Arc;

use bytes::Bytes;

use crate::{Cause, Sequence};

/// Takes durable records, in order, before they are answered.
pub trait Apply: Send + 'static {
    /// Why it could not be done. Commits are answered with it as the source of [`LogError::Failed`](crate::LogError::Failed).
    type Error: std::error::Error + Send + Sync + 'static;

    /// Applies a group; `first` is the number of its first record.
    ///
    /// # Errors
    /// The committer then refuses everything until the log is opened again.
    fn apply(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), Self::Error>;

    /// Makes everything that was applied durable without the log; answers with the last record of the log that is
    /// thereby no longer needed.
    ///
    /// # Errors
    /// Why it could not be done; nothing is lost then.
    fn make_durable(&mut self) -> Result<Sequence, Self::Error>;

    /// Applies records that are in no log, in order, and makes them durable, with all that was applied before.
    ///
    /// # Errors
    /// The committer then refuses everything until the log is opened again.
    fn apply_unlogged(&mut self, records: &mut dyn Iterator<Item = &Bytes>) -> Result<(), Self::Error>;
}

/// [`Apply`] with whatever error.
pub(crate) trait ApplyAny: Send {
    fn apply(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), Cause>;
    fn make_durable(&mut self) -> Result<Sequence, Cause>;
    fn apply_unlogged(&mut self, records: &mut dyn Iterator<Item = &Bytes>) -> Result<(), Cause>;
}

impl<A: Apply> ApplyAny for A {
    fn apply(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), Cause> {
        Apply::apply(self, first, records).map_err(|error| Arc::new(error) as Cause)
    }

    fn make_durable(&mut self) -> Result<Sequence, Cause> {
        Apply::make_durable(self).map_err(|error| Arc::new(error) as Cause)
    }

    fn apply_unlogged(&mut self, records: &mut dyn Iterator<Item = &Bytes>) -> Result<(), Cause> {
        Apply::apply_unlogged(self, records).map_err(|error| Arc::new(error) as Cause)
    }
}

/// A time in the life of a committer: it ends, and another begins, whenever records that were taken are refused or fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailureEpoch(pub(crate) u64);
