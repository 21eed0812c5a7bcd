//! Which process of this machine listens on a port.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// State 0A of `/proc/net/tcp` is LISTEN.
const LISTEN: &str = "0A";

/// Inodes of the sockets that listen on `port`, in the form of `/proc/net/tcp`.
#[must_use]
pub fn listening_inodes(table: &str, port: u16) -> BTreeSet<u64> {
    let wanted = format!(":{port:04X}");
    table
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let listens = fields.get(1)?.ends_with(&wanted) && *fields.get(3)? == LISTEN;
            fields.get(9).filter(|_| listens)?.parse().ok()
        })
        .collect()
}

/// The process that listens on `port`, if `host` is this machine and the process may be looked at.
#[must_use]
pub fn process_listening(host: &str, port: u16) -> Option<u32> {
    if !is_this_machine(host) {
        return None;
    }
    let mut inodes = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        inodes.extend(listening_inodes(&std::fs::read_to_string(table).unwrap_or_default(), port));
    }
    // A forking server's parent holds the socket too; it has the lowest number.
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| holds_one_of(*pid, &inodes))
        .min()
}

/// Whether a host's name or address is one of the loopback interface.
#[must_use]
pub fn is_this_machine(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn holds_one_of(pid: u32, inodes: &BTreeSet<u64>) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"));
    files.into_iter().flatten().flatten().any(|file| {
        let target = std::fs::read_link(file.path()).unwrap_or_default();
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inode.and_then(|inode| inode.parse().ok()).is_some_and(|inode| inodes.contains(&inode))
    })
}
