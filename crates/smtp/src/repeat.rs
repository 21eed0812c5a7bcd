//! What a message is recognised by when it comes a second time, because the answer to the first was lost.
//!
//! A client that has sent the final dot and hears nothing must send the message again (RFC 1047). It then sends the same text, from
//! the same sender, to recipients that it had before: all of them, or those whose answer was lost. So each recipient of a message has an id, made of
//!
//! - who hands it in: the person who has logged in, or else the client's network (/24 of IPv4, /64 of IPv6), since large senders
//!   repeat from another address of theirs;
//! - the envelope's sender and this recipient, the domains in lower case;
//! - a digest of the text as the client sent it, without dots that were added on the way and before anything is put to it.
//!
//! Who keeps a message under an id made of this finds it already there, and answers 250 again without a second copy.
//!
//! *Limits.* A message without a `Message-ID` of its own has no such ids: programs send the same alarm twice and mean it. A
//! client that makes a new `Date` or a new boundary for each attempt, or repeats from another network, is not recognised. Somebody who
//! on purpose sends the very same bytes, `Message-ID` included, twice within the time that ids are kept is heard once.

use std::fmt;
use std::net::IpAddr;

use ring::digest::{Context, SHA256};
use scrinium_smtp_wire::{Domain, ForwardPath, Mailbox, ReversePath};

/// The id of one recipient's copy of a message: 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepeatId([u8; 32]);

impl RepeatId {
    /// The bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RepeatId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// In hexadecimal.
impl fmt::Display for RepeatId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Who hands a message in.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A person, by their id.
    Person(&'a str),
    /// A client, by its address.
    Network(IpAddr),
    /// A program on this machine, as on a socket of LMTP.
    Local,
}

/// The ids of a message for each of its recipients, in their order.
#[must_use]
pub fn repeat_ids<'a>(
    source: Source<'_>,
    sender: &ReversePath,
    recipients: impl IntoIterator<Item = &'a ForwardPath>,
    text_digest: &[u8; 32],
) -> Vec<RepeatId> {
    let common = common(source, sender, text_digest);
    let id = |recipient: &ForwardPath| {
        let mut context = common.clone();
        let to = match recipient {
            ForwardPath::Postmaster => "postmaster".to_owned(),
            ForwardPath::Path(path) => folded(&path.mailbox),
        };
        part(&mut context, b"to", to.as_bytes());
        finished(context)
    };
    recipients.into_iter().map(id).collect()
}

/// The id of a message for all who get it, so that a mailbox which two recipients lead to has it once, and a repeat for only one
/// of them is recognised there.
#[must_use]
pub fn message_repeat_id(source: Source<'_>, sender: &ReversePath, text_digest: &[u8; 32]) -> RepeatId {
    let mut context = common(source, sender, text_digest);
    part(&mut context, b"message", b"");
    finished(context)
}

fn finished(context: Context) -> RepeatId {
    RepeatId(context.finish().as_ref().first_chunk().copied().unwrap_or([0; 32]))
}

/// What the ids of a message have in common.
fn common(source: Source<'_>, sender: &ReversePath, text_digest: &[u8; 32]) -> Context {
    let mut common = Context::new(&SHA256);
    match source {
        Source::Person(id) => part(&mut common, b"person", id.as_bytes()),
        Source::Network(IpAddr::V4(address)) => {
            part(&mut common, b"v4", address.octets().get(..3).unwrap_or_default());
        }
        Source::Network(IpAddr::V6(address)) => {
            part(&mut common, b"v6", address.octets().get(..8).unwrap_or_default());
        }
        Source::Local => part(&mut common, b"local", b""),
    }
    part(&mut common, b"from", sender.mailbox().map(folded).unwrap_or_default().as_bytes());
    part(&mut common, b"text", text_digest);
    common
}

/// One part, with its length, so that parts cannot run into each other.
fn part(context: &mut Context, name: &[u8], value: &[u8]) {
    context.update(name);
    context.update(&(value.len() as u64).to_be_bytes());
    context.update(value);
}

/// The local part as it is, the domain in lower case.
fn folded(mailbox: &Mailbox) -> String {
    let domain = match mailbox.domain() {
        Domain::Name(name) => name.to_lowercase(),
        domain @ Domain::Literal(_) => domain.to_string(),
    };
    format!("{}@{domain}", mailbox.local())
}
