//! Reports of the laboratory: what runs, experiments and comparisons showed, as data, as text and as pages.
//!
//! - [`run`] is one load's report, [`experiment`] that of many cells, [`compare`] holds reports against each other;
//! - [`page`] is what pages and their charts are made of, for other programs too.
//!
//! Numbers come in, and files go out: this crate measures nothing, and knows no server, process or command line. The
//! forms of its JSON files are versioned, since other programs read them.

pub mod compare;
mod error;
pub mod experiment;
mod files;
mod machine;
mod numbers;
pub mod page;
pub mod run;
mod text_table;
mod times;

pub use error::ReportError;
pub use machine::Machine;
pub use numbers::{bytes, milliseconds, thousands, time};
pub use text_table::TextTable;
pub use times::TimesSummary;
