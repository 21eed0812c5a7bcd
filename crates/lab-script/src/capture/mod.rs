//! `lab capture`: a workload made of what a server's users really did.
//!
//! A server's operation log has no contents: who, what, when, how large. Each user's operations are cut into sessions
//! (a pause of half an hour ends one) and these into rounds, which begin where a database is opened. The script is the
//! average round: what comes in every round stands there plainly, what comes in some of them in `@Chance`, in the order
//! in which it comes on average. Before each operation stands the pause that was found before it, as a range with the
//! same mean and spread; so an hour of a simulated user holds as many operations as an hour of a real one.

mod log;
mod rounds;
mod write;

use std::path::Path;

pub use log::{Action, Done, OperationLog};
pub use rounds::{RoundStep, Rounds};

use crate::workload::WorkloadError;

/// A workload's file, and what was found on the way.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Captured {
    pub script: String,
    pub users: usize,
    pub operations: u64,
    /// Operations that no command stands for, by name.
    pub left_out: Vec<(String, u64)>,
    /// Lines that could not be read.
    pub unreadable: u64,
}

/// Reads an operation log, with the file that was put aside before it, and writes a workload of it.
///
/// # Errors
/// A file that cannot be read, or in which nobody did enough to say anything: two rounds of anybody's.
pub fn capture(path: &Path, name: &str) -> Result<Captured, WorkloadError> {
    let log = OperationLog::read(path)?;
    let rounds = Rounds::of(&log);
    if rounds.rounds < 2 {
        return Err(WorkloadError::Log(format!(
            "{} holds too little: nobody opened a database twice; let the server write it while people work (http.operation_log)",
            path.display()
        )));
    }
    let file = path.file_name().map_or_else(String::new, |file| file.to_string_lossy().into_owned());
    Ok(Captured {
        script: write::script(name, &file, &log, &rounds),
        users: rounds.users,
        operations: log.done.len() as u64,
        left_out: log.left_out.into_iter().collect(),
        unreadable: log.unreadable,
    })
}
