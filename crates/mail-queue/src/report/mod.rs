//! Delivery reports (RFC 3464): written for our senders, and read when they come back to us.

mod read;
mod words;
mod write;

pub use read::{Report, ReportedAction, ReportedRecipient, read_report};
pub use words::{advice, explain};
pub use write::{Notice, OriginalSource, ReportOptions, write_report};
