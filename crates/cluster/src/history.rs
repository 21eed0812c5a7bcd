//! Whether what clients saw can be explained by one order of all operations.
//!
//! [`check_order`] is for histories in which each answer carries the number of a record: it takes millions of operations.
//! [`check_linearizable`] believes nothing that the server says of itself, and takes histories of one object at a time.

mod linearizable;
mod models;
mod witness;

pub use linearizable::{Model, Recorded, Verdict, check_linearizable};
pub use models::{AppendList, ListAnswer, ListOperation, Register, RegisterAnswer, RegisterOperation};
pub use witness::{OrderViolation, Witnessed, check_order};
