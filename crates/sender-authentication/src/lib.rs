//! Who a message is really from: SPF (RFC 7208), DKIM (RFC 6376, 8301, 8463), DMARC (RFC 9989), `Authentication-Results` (RFC 8601),
//! and the reports that others send about mail in a domain's name (RFC 9990).
//!
//! Each check is a function of a message and of [`Answers`], what DNS has said so far. It gives its verdict, or the question that it
//! needs next; [`settle`] asks until the verdict is there. [`authenticate`] does all of them in their order.
//!
//! *Invariant*: pure: no sockets, no clock, no storage. Nothing panics, whatever the message, the records and the reports; questions,
//! signatures, sizes and depths have limits. What cannot be read never passes.

#![forbid(unsafe_code)]

mod author;
mod dns;
mod head;
mod message;
mod name;
mod reader;
mod reports;
mod results;
mod tags;

pub mod dkim;
pub mod dmarc;
pub mod spf;

pub use author::{AuthorFault, Authors};
pub use dns::{Answer, Answers, Dns, Missing, QUESTIONS_MAX, Question, settle};
pub use head::{FIELDS_MAX, Field, HEAD_BYTES_MAX, Head, split_message};
pub use message::{Authentication, MessageToCheck, authenticate};
pub use name::DomainName;
pub use reader::{MessageReader, ReadMessage};
pub use reports::{
    AggregateReport, AuthResult, PolicyPublished, ReportError, ReportLimits, ReportRow, parse_report,
    unpack_report,
};
pub use results::{Verified, authentication_results, claims, without_claims};
pub use tags::{TagError, Tags};
