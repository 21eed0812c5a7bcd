//! What decides about mail that comes in: programs that speak milter's protocol, rspamd, lists in DNS (RFC 5782), greylisting (RFC 6647).
//!
//! [`milter`] is the protocol's client: bytes in and out, and what the filter wants done. [`RspamdAnswer`] is what rspamd says over HTTP. [`DnsList`] and [`greylist`] are decisions
//! over what DNS and a store say.
//!
//! *Invariant*: pure: no sockets, no clock, no storage. Nothing panics, whatever a filter, a list or a sender says; packets, changes
//! and texts have limits; a filter cannot end a field early or do what was not agreed upon.

#![forbid(unsafe_code)]

mod dns_list;
mod rspamd;

pub mod greylist;
pub mod milter;

pub use dns_list::{AnswerRange, DnsList, ListVerdict, Listing, MAX_LISTS, Subject, judge};
pub use rspamd::{RSPAMD_ANSWER_BYTES_MAX, RspamdAction, RspamdAnswer, RspamdError};
