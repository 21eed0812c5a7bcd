//! Calendars and address books of people's mail databases for programs that speak CalDAV and CardDAV.
//!
//! [`DavService`] answers what the HTTP port hands it; it blocks, and the port runs it on the worker pool. A collection is a
//! folder, a resource is a document with its source as an attachment, byte for byte (`document`). What a folder has
//! under which name, and when it takes place, is an index in the store (`index`), made from the folder and brought up to date
//! from its feed (`collection`).
//!
//! *Invariant*: what is answered as stored is durable; nobody sees what the database would not show them; an answer is bounded.

#![forbid(unsafe_code)]

mod change;
mod collection;
mod document;
mod files;
mod home;
mod imported;
mod index;
mod making;
mod properties;
mod propfind;
mod published;
mod refusal;
mod report;
mod scheduling;
mod service;
mod sync;

pub use imported::{ImportFolder, ImportedResource, import_calendar, import_card};
pub use scheduling::DavMail;
pub use service::{DavParts, DavService};
