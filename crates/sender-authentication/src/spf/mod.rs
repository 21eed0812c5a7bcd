//! SPF (RFC 7208): whether a server may send for a domain.

mod check;
mod macros;
mod record;

pub use check::{SpfFault, SpfOutcome, SpfRequest, SpfResult, check_sender};
pub use record::{SpfRecord, SpfRecordError};
