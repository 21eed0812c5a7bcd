//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(clippy::panic, reason = "a test fails by panicking")]

mod pool;
