//! Mail in an experiment: who sends it, the laboratory's own server that takes it, and the mailboxes in which it arrives.
//!
//! Each message is numbered and carries its own digest ([`Letter`](crate::driver::Letter)), and the
//! [`Ledger`](crate::driver::Ledger) of a step knows which ones a server has promised. So it can be said of each whether it arrived
//! once, and byte for byte.

mod mailboxes;
mod peer;
mod senders;
mod sink;

pub(super) use mailboxes::Mailboxes;
pub(super) use peer::{Peer, PeerKind};
pub(super) use senders::{SendOrder, send_all};
pub(super) use sink::{Manner, Sink};

use crate::content::Person;

/// What stands behind the @ for people of server number N.
pub(super) fn domain(server: usize) -> String {
    format!("server{server}.invalid")
}

/// What stands behind the @ of those whose mail goes to the laboratory's own server.
pub(super) const SINK_DOMAIN: &str = "sink.invalid";

/// What stands behind the @ of senders that are nobody's people.
pub(super) const FAR_DOMAIN: &str = "far.invalid";

/// Those who get the mail, and the first of them who sends it where senders log in.
pub(super) fn people(count: usize) -> Vec<Person> {
    let person = |number: usize| {
        let name = format!("user{number:04}");
        Person {
            number,
            full_name: format!("Lab User {number:04}"),
            mail_database: format!("mail/{name}"),
            name,
        }
    };
    (1..=count).map(person).collect()
}
