//! What any process monitor can see: `/proc`.

mod allowance;
mod listener;
mod machine;
mod process;
mod rest;
mod waiting;

pub use allowance::{cpus_allowed, memory_allowed_bytes, parse_allowed_cpus, parse_group};
pub use listener::{is_this_machine, listening_inodes, process_listening};
pub use machine::{machine_identity, this_machine};
pub use process::{
    ProcessCounts, ProcessMeter, Usage, family, parse_stat, parse_written, program_name, read_counts,
};
pub(crate) use rest::{QUIET_LOOKS, rest};
pub use waiting::{WaitMeter, Waiting, parse_schedstat};
