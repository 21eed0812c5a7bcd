//! The planner: what machines does an organisation need?
//!
//! - [`calibration`] is what was measured on a machine, as a file, and how it is measured;
//! - [`fit`] makes a model of it: the cost of each class of requests, queues, memory, disk;
//! - [`organisation`] is who is to be served and what is expected, as a file; [`what_if`] changes one;
//! - [`demand`] says what its users ask for in their busiest hour;
//! - [`answer`] puts demand and model together: machines, settings, response, and what would break first;
//! - [`check`] compares a forecast with a measurement;
//! - [`report`] says it, on a terminal, as Markdown and as a page.
//!
//! [`run()`] is the command `plan`; a program mounts it by [`PlanArguments`].

pub mod answer;
mod arguments;
pub mod calibration;
pub mod check;
mod class;
mod command;
pub mod demand;
mod error;
pub mod fit;
pub mod organisation;
pub mod queueing;
mod range;
pub mod report;
pub mod what_if;

pub use arguments::{
    CalibrateArguments, CheckArguments, MeasuringArguments, PlanArguments, PlanCommand, PlanningArguments,
};
pub use class::{Class, PerClass};
pub use command::run;
pub use error::PlanError;
pub use range::{Case, Range};
