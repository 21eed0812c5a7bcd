//! `lab experiment`: cells of settings, workloads and sizes, each measured on fresh data, and a report with the
//! source's table next to ours.
//!
//! - [`definition`] is the file's form and [`step`] that of a cell's steps, [`library`] finds files and says what is wrong with one;
//! - `cells` combines levels, `estimate` says how long they take, `run` measures one after the other;
//! - `stage` carries a cell through its steps: [`server`](self) is a black box that a command line starts, spoken to by
//!   its ports; `ground` limits what it may use, `usage` looks at its process; `mail` are senders and receivers of mail, and
//!   Postfix and Dovecot to compare with;
//! - `kept` keeps results on disk for `--resume`, and `resume` is the key that says what they are of;
//! - `assemble` makes the report of what was measured, and `objective` says whether it is what was asked for.

mod assemble;
mod cells;
mod command;
pub mod definition;
mod error;
mod estimate;
mod fill;
mod ground;
mod kept;
pub mod library;
mod load_step;
mod mail;
mod objective;
mod resume;
mod run;
mod server;
mod stage;
pub mod step;
mod usage;

pub use command::{ExperimentArguments, ExperimentsArguments, measure};
pub(crate) use command::{experiment, experiments};
pub use error::ExperimentError;
pub use scrinium_lab_report::experiment::ExperimentReport;
