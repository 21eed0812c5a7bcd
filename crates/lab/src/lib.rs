//! The performance laboratory.
mod arguments;
mod content;
pub mod driver;
mod error;
pub mod load;
pub mod measure;
pub mod monitor;
mod progress;
pub mod schedule;
pub mod script;
mod workload;
pub use error::{LabError, Outcome};
