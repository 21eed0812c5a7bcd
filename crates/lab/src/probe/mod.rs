//! `lab probe`: one end user among all others, in a process of his own.
//!
//! At fixed times he opens a shared database and a view, reads a page of entries and a document, and writes one; and
//! he sends a message to himself and waits until he can read it. So a server is seen as people see it, also one in
//! production: the probe changes a document of its own and no other.

mod arguments;
mod beside;
mod command;
mod prometheus;
mod record;
mod rounds;
mod timetable;

pub use arguments::ProbeArguments;
pub use beside::ProbeBesideArguments;
pub(crate) use beside::{Account, ProbeBeside};
pub(crate) use command::run;
pub use prometheus::text as prometheus_text;
pub use record::{ObjectiveFinding, Point, ProbeObjectives, Record};
