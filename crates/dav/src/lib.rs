//! What WebDAV, CalDAV and CardDAV answer, without a store: which resource a path means ([`place`]), whether a request's
//! conditions hold ([`condition`]), whether bytes are a calendar or card that a collection takes ([`object`]), which of
//! them a query means ([`filter`]), what comes back of them ([`data`]), how far a client knows a collection ([`token`]), and how
//! properties are told ([`answer`]).
//!
//! *Invariant*: pure: no sockets, clock or storage. Whatever is asked, work is bounded by the object's size and by
//! constants; an object that is asked for as it is comes back byte for byte.

#![forbid(unsafe_code)]

pub mod answer;
pub mod condition;
pub mod data;
pub mod filter;
pub mod object;
pub mod place;
pub mod token;
