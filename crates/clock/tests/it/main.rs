//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(clippy::redundant_clone, reason = "what a clone shares is what is tested")]

mod clock;
