//! A member of a cluster at work: [`scrinium_cluster`]'s state machine with a clock, threads and a real engine.
//!
//! - [`EtcdEngine`] asks etcd, one server of it at a time; every call ends within its time.
//! - [`examine`](EtcdEngine::examine) finds out whether etcd keeps what it answers for, before a member relies on it.
//! - [`Seat`] connects a committer with its group: [`Seat::agreement`] has records agreed on, [`Seat::announcing`] says what was
//!   applied, [`Seat::take`] starts the threads.
//! - [`Member`] is the running member: status, readers, handing over.
//!
//! Two threads belong to a member. One runs the state machine and all calls of the engine, and never waits for anything
//! else; the other writes what was agreed on elsewhere into the member's own log.

#![forbid(unsafe_code)]

mod boot_clock;
mod etcd;
mod seat;

pub use etcd::{
    EtcdAddress, EtcdAddressError, EtcdEngine, EtcdError, EtcdFiles, EtcdFinding, EtcdNode, EtcdOptions,
    EtcdTlsError, EtcdWarning, Examination,
};
pub use seat::{
    Agreement, Announcing, LocalLog, Member, MemberOptions, MemberStatus, PendingReader, Seat, SeatError,
};
