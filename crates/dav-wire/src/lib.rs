//! WebDAV (RFC 4918) with its extensions for calendars (RFC 4791) and contacts (RFC 6352), on the wire, for clients and
//! servers alike: bodies in XML, headers, and iCalendar (RFC 5545) and vCard (RFC 6350).
//!
//! [`xml`] reads a body into a tree within limits, and writes one. [`request`], [`report`] and [`multistatus`] say what
//! such trees mean. [`content`] reads calendars and cards line by line and keeps their bytes; [`value`] reads what
//! stands in a line when somebody asks.
//!
//! *Invariant*: pure: no sockets, no clock, nothing of the server. Nothing panics, whatever the bytes; bytes, depth,
//! elements and lines have limits that are checked before memory is used; no entity is resolved but those of XML
//! itself. What is written is read back equal, and a calendar that nobody changed is the same bytes.

#![forbid(unsafe_code)]

pub mod content;
mod filter;
pub mod header;
pub mod multistatus;
mod names;
mod parameter;
pub mod recurrence;
pub mod report;
pub mod request;
pub mod value;
pub mod xml;

pub use filter::{ComponentFilter, ComponentSelection, ContactFilter, PropertyFilter, TextMatch, TimeRange};
pub use names::{APPLE, CALDAV, CALENDAR_SERVER, CARDDAV, DAV};
pub use parameter::Parameter;
