//! Sessions of POP3 (RFC 1939), without sockets, with UIDL, TOP, STLS (RFC 2595), SASL (RFC 5034), UTF8 (RFC 6856), PIPELINING and
//! response codes (RFC 2449, 3206).
//!
//! A [`ServerSession`] takes the bytes of a client, gives bytes for it, and asks its surroundings, one [`Request`] after the
//! other, what only they know. A port is the loop that `scrinium-imap` shows. Messages go out as fast as the client takes them, and a session
//! keeps no list of them: it has the number of messages that there were, a [view](scrinium_mailbox::FolderView) of the folder, and what was
//! marked as ranges.
//!
//! *Invariant*: as of `scrinium-imap`. Nothing is deleted but behind QUIT, whose answer comes when that is durable; what arrives during a
//! session is not in it; a maildrop that was opened is released, whatever happens.

#![forbid(unsafe_code)]

mod commands;
mod login;
mod messages;
mod options;
mod request;
mod session;

pub use options::{Encryption, Peer, ServerLimits, ServerOptions, ServerTimes};
pub use request::{
    Answer, ContentId, Entry, LoginVerdict, Maildrop, MaildropAnswer, MaildropOutcome, MaildropQuestion,
    Refusal, Request,
};
pub use session::ServerSession;
