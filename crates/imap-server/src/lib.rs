//! IMAP and POP3 at ports: mail databases, and the folders of others, for mail clients.
//!
//! [`ImapProtocol`] and [`Pop3Protocol`] let [`scrinium_port::converse`] read and write, shake hands for STARTTLS and keep time for the
//! sessions of [`scrinium_imap`] and [`scrinium_pop3`], and answer what only the surroundings know. A mailbox is a folder of a
//! database that the person may read: their own mail database, `Users/NAME/` of another person's, `Databases/NAME/` of any. A message
//! is a document, `\Seen` is the person's mark, other flags are the document's, and `\Deleted` is the folder's. POP3 has the inbox.
//!
//! What a client fetches is the source of a message with lines that end in CR LF. A memo without a source becomes the message that it
//! would be if it were sent. Numbers are counted in sets of UIDs that are kept for folders in use: no session has a list.
//!
//! *Invariant*: a client hears OK only when what it wanted is durable. What somebody may not read is not there for them, and
//! every question asks for what the access control list gives them at that moment. No thread waits for a client, and nothing of the
//! store is held while one does not read.

#![forbid(unsafe_code)]

mod append;
mod connection;
mod desk;
mod folder;
mod hiding;
mod mail_file;
mod mailboxes;
mod maildrop;
mod message;
mod metadata;
mod notify;
mod opening;
mod pop3;
mod protocol;
mod search;
mod sorting;
mod surroundings;
mod time;
mod tracker;
mod transfer;
mod visitor;
mod words;

pub use hiding::HiddenCapability;
pub use opening::OPENING_ROLE;
pub use pop3::Pop3Protocol;
pub use protocol::ImapProtocol;
pub use surroundings::{MailAccess, MailAccessOptions, Opening, OpeningWatch};
