//! `lab experiment`: cells of settings, workloads and sizes, each measured on fresh data, and a report with the
//! source's table beside ours.
//!
//! - [`definition`] is the file's form, [`library`] finds files and says what is wrong with one;
//! - `cells` combines levels, `estimate` says how long they take, `run` measures one after the other;
//! - `stage` carries a cell through its steps: [`server`](self) is a black box that a command line starts, spoken to by
//!   its ports; `ground` limits what it may use, `usage` looks at its process;
//! - `kept` keeps results on disk for `--resume`;
//! - [`model`] is the report as data, `objective` and `findings` say what it shows, `search` where the largest number of
//!   users is; `page` and `text` are made from it.

pub(crate) mod cells;
mod command;
pub mod definition;
mod error;
mod estimate;
mod fill;
pub(crate) mod findings;
mod ground;
mod index;
mod kept;
pub mod library;
mod load_step;
pub mod model;
mod objective;
pub(crate) mod page;
mod picture;
mod run;
mod search;
mod server;
mod stage;
mod text;
mod usage;

pub use cells::Form;
pub use command::{ExperimentArguments, ExperimentsArguments, measure};
pub(crate) use command::{experiment, experiments};
pub use error::ExperimentError;
pub use objective::ObjectivePart;
pub use search::SearchPoint;
