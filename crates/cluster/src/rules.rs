//! What the user of a [`Group`](crate::Group) decides when it is compiled.

use bytes::Bytes;

use crate::Control;

/// How the cluster's own records look, as records that every store can apply.
///
/// The constants are the rules that keep a group safe. Nothing but a test of the checkers sets one to `false`: a checker that
/// never fails shows nothing.
pub trait Rules: 'static {
    /// The record of a claim, a hand-over and so on. The same value must always give the same bytes.
    fn record(control: Control) -> Bytes;

    /// An entry is written only after the one that its writer holds, and applied only by a member that holds its parent.
    #[doc(hidden)]
    const TESTS_PARENT: bool = true;

    /// The lease is looked at with the time at which a reader's snapshot was taken, and never remembered.
    #[doc(hidden)]
    const LEASES_END: bool = true;

    /// An append without an answer is tried again with the same bytes until its outcome is known.
    #[doc(hidden)]
    const RETRIES_SAME_BYTES: bool = true;

    /// A claim succeeds only if the beat is the one whose silence was waited out.
    #[doc(hidden)]
    const CLAIM_TESTS_BEAT: bool = true;
}
