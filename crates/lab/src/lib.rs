//! The performance laboratory: scripted users against a server, measured from outside.
//!
//! It talks to a server only over its ports, and reads only what any process monitor can read, so that it
//! measures any server with CouchDB's interface.
//!
//! Workloads are scripts of crate `scrinium-lab-script`.
//!
//! - [`driver`] turns what a user does into requests, and checks every answer;
//! - [`schedule`] keeps each user's timetable, from which latency counts;
//! - `crew` is the users that one process simulates;
//! - [`load`] runs all users and measures them ([`measure`]) and the server's process ([`monitor`]);
//! - [`remote`] lets several processes drive one run;
//! - [`report`] judges a run and makes the report of it, which crate `scrinium-lab-report` shows;
//! - [`experiment`] runs many loads on servers that it starts, one setting changed at a time;
//! - [`probe`] is one end user among all others.
//!
//! [`run()`] is the command `lab`; a program mounts it by [`LabArguments`].

mod arguments;
mod compare_command;
mod content;
mod crew;
pub mod driver;
mod error;
pub mod experiment;
mod files;
pub mod load;
pub mod measure;
pub mod monitor;
pub mod probe;
mod program;
mod progress;
pub mod remote;
pub mod report;
mod run;
pub mod schedule;
mod script_commands;
mod setup;
mod values;

pub use arguments::{
    CaptureArguments, DriveArguments, LabArguments, LabCommand, ListArguments, LoadArguments,
    ScriptArguments, ShowArguments,
};
pub use compare_command::CompareArguments;
pub use content::{Form, Message};
pub use error::LabError;
pub use progress::Progress;
pub use run::run;
