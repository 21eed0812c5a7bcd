//! What several servers agree on before one of them writes it.

use bytes::Bytes;

use crate::{Cause, Sequence};

/// Has groups of records agreed on, before they are written here.
///
/// Every server of an agreement writes the same records under the same numbers: the one that submits them through
/// [`Committer::submit`](crate::Committer::submit) and its kin, the others through [`Committer::follow`](crate::Committer::follow).
pub trait Agree: Send + 'static {
    /// Waits until a group is agreed on; `first` is the number that its first record gets. There is room for it in the log.
    ///
    /// It is called while nothing else is written, so it must not wait for anything that [`Committer::follow`] does.
    ///
    /// # Errors
    /// [`NotAgreed`]: nothing of the group is written here.
    ///
    /// [`Committer::follow`]: crate::Committer::follow
    fn agree(&mut self, first: Sequence, records: &[Bytes]) -> Result<(), NotAgreed>;

    /// The most bytes that a group takes, its records together with four bytes for each of them.
    fn group_bytes(&self) -> usize;
}

/// Why a group was not agreed on.
#[derive(Clone, Debug)]
pub enum NotAgreed {
    /// It is nowhere, and never will be: another server writes, or something stands at its number.
    Refused(Cause),
    /// It may have been agreed on or not. If it was, it comes through [`Committer::follow`](crate::Committer::follow).
    Unknown(Cause),
}
