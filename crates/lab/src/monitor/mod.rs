//! What any process monitor can see: `/proc`.

mod listener;
mod machine;
mod process;

pub use listener::{listening_inodes, process_listening};
pub use machine::Machine;
pub use process::{
    ProcessCounts, ProcessMeter, Usage, family, parse_stat, parse_written, program_name, read_counts,
};
