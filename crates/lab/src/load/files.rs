//! Each user holds a connection, and each connection is an open file of the driver.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::LabError;

/// Files that the driver needs beside the users' connections.
const OTHERS: u64 = 128;

/// Raises the limit of open files, if need be, as far as the system lets a program do that.
pub(super) fn allow_connections(users: usize) -> Result<(), LabError> {
    let wanted = users as u64 + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    if limit.maximum.is_none_or(|most| most >= wanted) && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    Err(LabError::Usage(format!(
        "{users} users need {wanted} open files, and this program may have {}; raise the limit (ulimit -n {wanted}) or simulate fewer",
        limit.maximum.unwrap_or(0)
    )))
}
