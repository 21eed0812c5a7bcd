//! Mango, the query language of CouchDB 3 (`_find`, `_explain`, `_index`), without a store.
//!
//! A [`Selector`] says which documents are asked for, an [`IndexDefinition`] which keys a document has in an index,
//! a [`Query`] is the body of `_find`. [`plan`](plan()) chooses an index as CouchDB does and says which ranges of it
//! to read, and what remains to be checked of each document; [`explain`](explain()) answers `_explain`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use scrinium_mango::{IndexDefinition, Query, Reading, plan};
//! use serde_json::json;
//!
//! let index = Arc::new(IndexDefinition::parse(&json!({ "index": { "fields": ["year"] }, "name": "years" }))?);
//! let query = Query::parse(&json!({ "selector": { "year": { "$gt": 2010 }, "title": { "$regex": "^A" } } }))?;
//! let plan = plan(&query, &[index])?;
//! let Reading::Index { definition, ranges } = &plan.reading else { panic!() };
//! assert_eq!((definition.name(), ranges.len()), ("years", 1));
//! assert!(plan.residual.matches(&json!({ "title": "Antonia's Line" })));
//! # Ok::<(), scrinium_mango::MangoError>(())
//! ```
//!
//! # Bounds
//!
//! What is sent may be nested [`MAX_NESTING`] deep, and have [`MAX_CONDITIONS`] conditions, [`MAX_PATTERNS`] patterns,
//! which are searched in linear time, and [`MAX_FIELDS`] fields to sort by or to answer; a plan has at most
//! [`MAX_RANGES`] ranges.

mod bookmark;
mod bounds;
mod choice;
mod document;
mod error;
mod explain;
mod field_range;
mod index;
mod name;
mod order;
mod path;
mod pattern;
mod plan;
mod projection;
mod query;
mod ranges;
mod request;
mod selector;
mod sort;

pub use bookmark::Bookmark;
pub use bounds::{Edge, IdRange, KeyBound, KeyRange};
pub use document::Document;
pub use error::MangoError;
pub use explain::explain;
pub use index::{IndexDefinition, all_documents_to_json};
pub use path::FieldPath;
pub use plan::{Plan, Reading, plan};
pub use projection::Projection;
pub use query::{Query, UseIndex};
pub use ranges::MAX_RANGES;
pub use selector::{MAX_CONDITIONS, MAX_NESTING, MAX_PATTERNS, Selector};
pub use sort::{Direction, MAX_FIELDS, SortField};
