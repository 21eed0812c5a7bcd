//! Several driver processes, on this machine or on others, that one controller steers.
//!
//! ```text
//! driver      -> controller   Greeting: version, challenge
//! controller  -> driver       Login: version, challenge, proof of the token
//! driver      -> controller   Welcome: proof of the token, machine        (or Refused: why)
//! controller <-> driver       Ping, Pong: how far the clocks are apart
//! controller  -> driver       Assign: the plan, and which users           (Ready, or Refused: why)
//! controller  -> driver       Begin, Hold, EndHold, Stop: at which moment of the driver's clock
//! driver      -> controller   Second: what was measured, once a second
//! controller <-> driver       Enter, Granted, Leave: the critical region, which all drivers share
//! controller  -> driver       Finish                                      (Second, Done: everything)
//! controller <-> driver       Ping, Pong
//! ```
//!
//! A message is its length in four bytes, big end first, and JSON. Before the login it is short. Times are
//! microseconds of the driver's clock; a latency begins and ends on the same one. Neither side sends the token,
//! but what follows the login is not encrypted.

use scrinium_lab_script::Operation;

mod clock;
mod controller;
mod critical;
mod frame;
mod local;
mod login;
mod message;
mod worker;

pub use clock::{ClockReading, Exchange};
pub(crate) use controller::{Remote, Team};
pub(crate) use message::Job;
pub(crate) use worker::drive;

/// Raised when messages change.
const PROTOCOL: u32 = 1;

/// Both sides take part only if they are the same in this: messages, release, and the table of operations.
fn version() -> String {
    let names: Vec<String> = Operation::ALL
        .iter()
        .map(|operation| format!("{} {}", operation.command(), operation.transaction()))
        .collect();
    let operations = crc32fast::hash(names.join("\n").as_bytes());
    format!("{} protocol {PROTOCOL} operations {operations:08x}", env!("CARGO_PKG_VERSION"))
}
