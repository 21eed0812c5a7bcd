//! What controller and driver tell each other.

use std::time::Duration;

use scrinium_lab_report::Machine;
use serde::{Deserialize, Serialize};

use crate::arguments::LoadArguments;
use crate::crew::{CrewOutcome, CrewSecond, Share};
use crate::driver::Noted;

/// The driver's first words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Greeting {
    pub(super) version: String,
    pub(super) challenge: String,
}

/// The controller's first words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Login {
    pub(super) version: String,
    pub(super) challenge: String,
    pub(super) proof: String,
}

/// What the driver answers to them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Welcome { proof: String, machine: Box<Machine>, machine_identity: String },
    Refused(String),
}

/// What is to be done: the workload with its text, since another machine may not have its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) arguments: LoadArguments,
    pub(crate) origin: String,
    pub(crate) text: String,
}

/// One driver's part of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    pub(super) job: Job,
    pub(super) share: Share,
    /// Users that all drivers on the same machine simulate.
    pub(super) together: usize,
    /// The run whose messages are noted, if deliveries are checked.
    pub(super) noted_run: Option<u32>,
}

/// From the controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Order {
    Ping(u32),
    Assign(Box<Assignment>),
    Begin { at_us: u64, spread: Duration },
    Hold { from_us: u64, to_us: u64 },
    EndHold { at_us: u64 },
    Stop { from_us: u64, spread: Duration },
    Granted,
    Finish,
}

/// From a driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Word {
    Pong {
        number: u32,
        clock_us: u64,
    },
    Ready,
    Refused(String),
    Second(Box<CrewSecond>),
    Enter,
    Leave,
    /// What the users have sent and deleted; before `Done`, in as many pieces as it takes.
    Noted(Noted),
    Done(Box<CrewOutcome>),
}
