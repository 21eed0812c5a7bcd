//! What the users need of the machine that simulates them, looked at before anything is sent.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::LabError;
use crate::monitor::memory_allowed_bytes;

/// Files that the driver needs besides the users' connections.
const OTHER_FILES: u64 = 128;

/// Memory of one user with its connection, and of the driver without users. Measured by the example
/// `driver_memory`, and rounded up.
const USER_BYTES: u64 = 64 << 10;
const DRIVER_BYTES: u64 = 64 << 20;

/// Ports that are left to others who connect from this machine.
const OTHER_PORTS: u64 = 64;

/// What there is of everything that could run out. `None`: not to be found out, so that it is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supplies {
    /// The most files that this process may have open.
    pub files: Option<u64>,
    /// First and last port that the system gives to outgoing connections.
    pub ports: Option<(u64, u64)>,
    /// Memory that this process may still get.
    pub memory_bytes: Option<u64>,
}

/// Finds out whether this process can hold this many users' `connections` at the same time, of `together` to one server on
/// this machine, and raises the limit of open files if need be, as far as the system lets a program do that.
pub(crate) fn provide(connections: usize, together: usize) -> Result<(), LabError> {
    let limit = getrlimit(Resource::Nofile);
    let supplies = Supplies {
        files: limit.maximum,
        ports: std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
            .ok()
            .and_then(|text| parse_ports(&text)),
        memory_bytes: memory_allowed_bytes(),
    };
    judge(connections, together, &supplies).map_err(LabError::Usage)?;
    let wanted = files(connections);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        LabError::Usage(format!(
            "{connections} connections need {wanted} open files, and the limit cannot be raised ({error}): ulimit -n {wanted}"
        ))
    })
}

fn files(connections: usize) -> u64 {
    connections as u64 + OTHER_FILES
}

/// Whether the supplies are enough. Each connection is a file, a port, and a user's memory.
///
/// # Errors
/// What is missing, and what to do about it.
pub fn judge(connections: usize, together: usize, supplies: &Supplies) -> Result<(), String> {
    let wanted = files(connections);
    if let Some(most) = supplies.files.filter(|most| *most < wanted) {
        return Err(format!(
            "{connections} connections need {wanted} open files, and this program may have {most}; raise the limit (ulimit -n {wanted}), simulate fewer users, or let them close idle connections (--keep-alive)"
        ));
    }
    if let Some((first, last)) = supplies.ports {
        let ports = (last + 1).saturating_sub(first);
        if (together as u64).saturating_add(OTHER_PORTS) > ports {
            return Err(format!(
                "{together} connections need as many ports of this machine, and it has {ports} for them ({first} to {last}); widen them (sysctl -w net.ipv4.ip_local_port_range='1024 65535'), let users close idle connections (--keep-alive), or let another machine drive a part (--driver)"
            ));
        }
    }
    let bytes = (connections as u64).saturating_mul(USER_BYTES).saturating_add(DRIVER_BYTES);
    if let Some(free) = supplies.memory_bytes.filter(|free| *free < bytes) {
        return Err(format!(
            "{connections} connected users need up to {} MB of memory, and this process can have {} MB; free some, simulate fewer, or let another machine drive a part (--driver)",
            bytes >> 20,
            free >> 20
        ));
    }
    Ok(())
}

fn parse_ports(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
