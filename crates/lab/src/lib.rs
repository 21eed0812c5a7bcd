//! The performance laboratory: scripted users against a server, measured from outside.
//!
//! It talks to a server only over its ports, and reads only what any process monitor can read, so that it
//! measures any server with CouchDB's interface.
//!
//! - [`script`] reads workloads in the language of Server.Load;
//! - [`driver`] turns what a user does into requests, and checks every answer;
//! - [`schedule`] keeps each user's timetable, from which latency counts;
//! - [`load`] runs all users and measures them ([`measure`]) and the server's process ([`monitor`]);
//! - [`remote`] lets several processes drive one run;
//! - [`capture`] makes a workload of what a server's users did;
//! - [`report`] says what came of it, and compares;
//! - [`experiment`] runs many loads on servers that it starts, one setting changed at a time;
//! - [`probe`] is one end user beside all others.
//!
//! [`run()`] is the command `lab`; a program mounts it by [`LabArguments`].

mod arguments;
pub mod capture;
mod content;
pub mod driver;
mod error;
pub mod experiment;
mod files;
pub mod load;
pub mod measure;
pub mod monitor;
mod output;
pub mod probe;
mod program;
mod progress;
pub mod remote;
pub mod report;
mod run;
pub mod schedule;
pub mod script;
mod script_commands;
mod workload;

pub use arguments::{
    CaptureArguments, DriveArguments, LabArguments, LabCommand, ListArguments, LoadArguments,
    ScriptArguments, ShowArguments,
};
pub use content::{Form, Message};
pub use error::{LabError, Outcome};
pub use output::{is_capable, leave_colours_out, print, refuses_colours, say, tell_usage};
pub use progress::Progress;
pub use run::run;
pub use script::reference_markdown as workloads_markdown;
pub use workload::Workload;
