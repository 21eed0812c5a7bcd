//! Sessions of IMAP4rev1 (RFC 3501) and IMAP4rev2 (RFC 9051), without sockets.
//!
//! A [`ServerSession`] takes the bytes of a client, gives bytes for it, and asks its surroundings, one [`Request`] after the
//! other, what only they know: may this person log in, which mailboxes are there, which messages have these flags? Until a
//! request is [answered](ServerSession::answer), what the client has pipelined waits in a bounded buffer. A port is a loop around it:
//!
//! ```text
//! loop {
//!     let request = session.next(now);
//!     write(session.take_output());           // until the client has taken it
//!     match request {
//!         Some(request) => session.answer(surroundings(request), now),
//!         None if session.is_closed() => break,
//!         None => session.receive(read(), now),   // or session.wake(now), or session.time_passed(now)
//!     }
//! }
//! ```
//!
//! Answers go out as fast as the client takes them: the next piece is asked for when the one before it was taken. Questions about
//! messages carry the session's [view](scrinium_mailbox::FolderView) of the folder and bring it back, so that each answer is one step
//! at one snapshot, and no lock and no snapshot is held while a client does not read.
//!
//! *Invariant*: pure: no sockets, no storage, no clock; times are handed in. Whatever the bytes, nothing panics, every
//! buffer and list has a limit, and input that is cut into other pieces means the same. Commands run in order. Numbers
//! of messages are those that the client has been told. What is hidden is refused.

#![forbid(unsafe_code)]

mod announce;
mod append;
mod capability;
mod commands;
mod compress;
mod events;
mod expunge;
mod fetch;
mod flags;
mod input;
mod item;
mod list;
mod login;
mod mailboxes;
mod matching;
mod notify;
mod open;
mod options;
mod output;
mod pattern;
mod request;
mod search;
mod selected;
mod session;
mod store;
mod task;
mod threading;
mod transfer;

pub use capability::{Capability, CapabilitySet};
pub use matching::{
    SearchContext, SearchText, SortFields, SortNumbers, matches, matches_without_text, utc_seconds,
};
pub use notify::{EventGroup, EventScope};
pub use options::{Encryption, Peer, ServerLimits, ServerOptions, ServerTimes};
pub use request::{
    Answer, ContentId, EntriesQuestion, Entry, EventQuestion, FolderAnswer, FolderOutcome, FolderQuestion,
    FolderRequest, ListQuestion, LoginVerdict, MailboxEvent, MailboxInfo, MailboxNumbers, MailboxRequest,
    MapNeed, MessageFlags, NewMessage, OpenedMailbox, QuotaRoots, Refusal, Request, RightsChange,
    SearchOrder, SearchQuestion, StoreQuestion, StoredEntry, SystemFlags, ThreadAlgorithm,
};
pub use session::{ServerSession, Watching};
pub use threading::{ThreadMessage, ordered_subject, references};
