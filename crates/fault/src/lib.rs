//! Power loss and failing devices, for tests: one run of a program is recorded, and thousands of disks are made of it.
//!
//! [`Faults::interpose`] starts a program with a library before its C library. That writes down every call which changes
//! what lies below one folder, and can make calls fail, take long or lie. [`Journal`] reads what it wrote, and
//! [`Disk`] plays it up to any call and tells what the device may hold if the power goes there; [`Cuts`] does that many
//! times and has each disk checked. [`Victim`] is a process that is killed. [`skip()`] says that a test cannot run here.
//! [`wait_for`] waits for what another thread or process does, and [`quick_folder`] is a folder for tests that sync nothing.
//!
//! It knows files only, and is a part of no server.

mod content;
mod cuts;
mod disk;
mod files;
mod folders;
mod interposed;
mod journal;
mod names;
mod plan;
mod skip;
mod victim;
mod wait;

pub use cuts::{Broken, Cut, Cuts};
pub use disk::{Disk, Image};
pub use files::{copy_folder, crash_image, harm};
pub use folders::{noise, quick_folder};
pub use interposed::{Calls, ClockJumps, Failure, Faults, Slowness, run_bounded};
pub use journal::{Event, Journal};
pub use plan::{Plan, cases};
pub use skip::skip;
pub use victim::{Kills, Victim, rerun, tell, writes_done};
pub use wait::{wait_for, wait_until};
