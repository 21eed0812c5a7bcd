//! IMAP at ports: people's mail databases for mail clients.
//!
//! [`ImapProtocol`] is a thin loop around the sessions of [`scrinium_imap`]: it reads and writes, hands shakes for STARTTLS, keeps
//! time, wakes a session that waits for news, and answers what only the surroundings know. A mailbox is a folder of the person's mail
//! database, a message is a document, `\Seen` is the person's mark, other flags are the document's, and `\Deleted` is the folder's.
//!
//! What a client fetches is the source of a message with lines that end in CR LF. A memo without a source becomes the message that it
//! would be if it were sent. Numbers are counted in sets of UIDs that are kept for folders in use: no session has a list.
//!
//! *Invariant*: a client hears OK only when what it wanted is durable. Who has logged in reaches their own mail database alone, with what
//! its access control list gives them at that moment; every question asks for it. No thread waits for a client, and nothing of the
//! store is held while one does not read.

#![forbid(unsafe_code)]

mod append;
mod connection;
mod desk;
mod folder;
mod mail_file;
mod mailboxes;
mod message;
mod protocol;
mod search;
mod time;
mod tracker;
mod transfer;

pub use protocol::{ImapOptions, ImapProtocol};
