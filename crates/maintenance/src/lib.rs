//! What keeps databases small and whole: compacting them and purging tombstones ([`Compactor`]), checking and repairing
//! them ([`fixup()`]), and looking at their raw records ([`Inspection`]).

mod compact;
mod fixup;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod holds;
mod inspect;

pub use compact::{CompactOptions, CompactOrder, CompactStyle, Compacted, Compactor, Purged};
pub use fixup::{
    Finding, FindingKind, FindingOutcome, FixupOptions, FixupReport, SetAside, discard_set_aside,
    each_set_aside, fixup,
};
pub use inspect::{Inspection, RawRecord};
