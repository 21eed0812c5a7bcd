//! CouchDB 3's document model, without any input or output.
//!
//! A document is an id, a tree of revisions and, for each leaf of that tree, a body of named fields.
//! This crate parses documents from JSON exactly as CouchDB takes and refuses them, keeps the tree
//! ([`RevisionTree`]), stores a body so that one field is read without parsing the rest
//! ([`Fields`]), and turns values into keys whose bytes sort as CouchDB sorts the values
//! ([`collation`]).
//!
//! *Invariant*: everything here is a pure function of its arguments; two servers given the same
//! edits build the same trees, revisions and keys. Nothing panics, whatever the bytes.

pub mod collation;
pub mod error;
pub mod json;

mod ascii;
mod attachment;
mod binary;
mod fields;
mod id;
mod media_type;
mod parse;
pub mod raw_order;
mod read_back;
mod revision;
mod sensitivity;
mod tree;
mod tree_format;

pub use attachment::{AttachmentBody, AttachmentEntry, fit_attachment_name, validate_attachment};
pub use error::DocumentError;
pub use fields::{FieldValue, Fields, FieldsBuf, OUTSIDE_MIN_BYTES, OutsideValue};
pub use id::{DESIGN_PREFIX, LOCAL_PREFIX, is_design, is_local, validate_id};
pub use media_type::{OCTET_STREAM, is_media_type, shown_media_type};
pub use parse::{Limits, ParsedDocument, parse_document};
pub use read_back::read_back_digest;
pub use revision::{Digest, GENERATION_MAX, Revision, new_revision};
pub use tree::{Leaf, Merged, RevisionTree};
