//! What is derived from the documents of a database: views of design documents and folders, kept in indexes that follow the
//! feed of changes, and Mango queries over them.
//!
//! The entry point is [`OpenDatabase`], a database with its views; [`DatabaseSession`] is one as somebody has opened it.

pub mod audit;
mod behind;
mod collection;
mod compile;
mod context;
mod counts;
mod definition;
mod design;
mod document;
mod entries;
mod environment;
mod error;
mod evaluate;
mod failures;
mod figures;
mod filter;
mod folder;
mod follow;
mod formula_validation;
mod gone;
mod group;
mod hierarchy;
mod info;
mod lists;
mod open;
mod options;
mod policy;
mod query;
mod read;
mod registry;
mod resort;
mod scripts;
mod session;
mod short;
mod stand_in;
mod streams;
pub mod tally;
#[cfg(test)]
mod testing;
mod text;
mod unique;
mod update;
mod usage;
mod views;
mod waiting;
mod yielding;

pub use context::ViewsContext;
pub use error::refused_query;
pub use figures::register_view_statistics;
pub use filter::{UpdateFunction, selector_filter};
pub use follow::UpdateQueue;
pub use open::{OpenDatabase, Views};
pub use query::{ExecutionStatistics, Find};
pub use registry::drop_all;
pub use scrinium_fulltext as fulltext;
pub use scrinium_javascript::{Limits as ScriptLimits, PoolOptions as ScriptOptions};
pub use session::{DatabaseContents, DatabaseDescription, DatabaseSession, FolderDescription};
pub use text::{
    AttachmentHead, AttachmentText, FacetRange, Facets, TextAnswer, TextAudit, TextHit, TextSearch,
    TextTarget, TextUnavailable, analyzed,
};
pub use update::remove_left_builds;
pub use usage::{FindDatabase, discard_unused};
pub use waiting::{Reading, ViewUpdate};
