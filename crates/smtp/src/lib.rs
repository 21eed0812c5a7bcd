//! Sessions of SMTP (RFC 5321), submission (RFC 6409) and LMTP (RFC 2033), both sides, without sockets.
//!
//! A [`ServerSession`] takes the bytes of a client, gives bytes for it, and asks its surroundings, one [`Request`] after the
//! other, what only they know: may this person log in, is there such a recipient, keep this piece of text, is the
//! message safe now? Until a request is [answered](ServerSession::answer), what the client has pipelined waits in a bounded buffer. A port is a loop around it:
//!
//! ```text
//! loop {
//!     let request = session.next(now);
//!     if session.wants_flush() { write(session.take_output()) }
//!     match request {
//!         Some(request) => session.answer(surroundings(request), now),
//!         None if session.is_closed() => break,
//!         None => session.receive(read(), now),   // until session.deadline_ms(); then session.time_passed(now)
//!     }
//! }
//! ```
//!
//! A [`ClientSession`] is the other side, for the queue: it sends messages over one connection and says of each recipient
//! whether it is delivered, deferred, failed, or unknown.
//!
//! *Invariant*: pure: no sockets, no storage, no clock; times are handed in. Whatever the bytes, nothing panics, every
//! buffer and list has a limit, and input that is cut into other pieces means the same. Only CR LF ends a
//! command, only CR LF `.` CR LF a text. After a refusal nothing of what was refused is left.

#![forbid(unsafe_code)]

mod chunk_text;
pub mod client;
mod head;
mod received;
mod repeat;
mod server;
mod time;

pub use client::ClientSession;
pub use head::{HeadChanges, HeadFields, HeadReader, SenderField};
pub use received::{Trace, protocol_word, received_field};
pub use repeat::{RepeatId, Source, message_repeat_id, repeat_ids};
pub use server::{
    Answer, Delivery, Encryption, Envelope, EnvelopeRecipient, LoginVerdict, Peer, RecipientQuestion,
    RecipientVerdict, Refusal, Request, SenderQuestion, ServerLimits, ServerOptions, ServerSession,
    ServerTimes, Service, TextSummary,
};
