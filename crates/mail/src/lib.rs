//! Mail: what a memo is, how a message of the Internet becomes one, and to whom it goes.

mod address;
pub mod import;
mod memo;
mod message;
mod notes;
mod recipients;

pub use address::{WrittenAddress, format_address};
pub use memo::{
    FAILURE_FORM, LONGEST_BODY, MEMO_FORM, MOST_RECIPIENTS, MemoError, check_mailable, field, recipients_of,
};
pub use message::{
    MessageOptions, SOURCE_ATTACHMENT, SOURCE_CONTENT_TYPE, imported_id, memo_of_message, shown_address,
};
pub use recipients::{Expansion, MOST_PEOPLE, Resolver, Undeliverable, UndeliverableReason};
