//! DMARC (RFC 9989): whether what is verified of a message belongs to whom it claims to be from, and what its domain asks for.

mod evaluate;
mod record;
mod walk;

pub use evaluate::{
    Disposition, DmarcEvidence, DmarcFault, DmarcOutcome, DmarcResult, PolicySource, evaluate,
};
pub use record::{Alignment, DmarcPolicy, DmarcRecord, PublicSuffix};
