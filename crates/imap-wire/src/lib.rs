//! IMAP4rev1 (RFC 3501) and IMAP4rev2 (RFC 9051) on the wire, for clients and servers alike, with the extensions that
//! clients use.
//!
//! Three layers. A [`FrameReader`] puts a command or a response together from bytes that come in pieces, and tells
//! the length of each literal before it is read. [`parse_values`] makes atoms, strings and lists of it. [`Command`],
//! [`Response`] and what they hold are made of those, and written as [`Segment`]s, since a client may have to wait in
//! the middle of a command.
//!
//! *Invariant*: pure: no sockets, no clock, nothing of the server. Nothing panics, whatever the bytes; bytes, literals,
//! values and depth have limits that are checked before memory is used; nothing that is written holds a CR or LF but
//! in literals and at its end. What is written is read back equal.

#![forbid(unsafe_code)]

mod argument;
mod command;
mod command_read;
mod command_write;
mod date;
mod fetch;
mod fetched;
mod flag;
mod frame;
mod list;
mod mailbox;
mod response;
mod response_code;
mod response_values;
mod search;
mod set;
mod structure;
mod value;
mod write;

pub use command::{
    AppendMessage, Command, CommandError, CommandFault, CommandOptions, MessageData, QresyncParameters,
    SelectParameters, StoreAction, Tag, TaggedCommand,
};
pub use date::{Date, DateError, DateTime};
pub use fetch::{FetchAttribute, FetchModifiers, Partial, Section, SectionText};
pub use fetched::FetchItem;
pub use flag::Flag;
pub use frame::{
    Decision, FrameError, FrameLimits, FrameReader, FrameStep, Literal, Part, Speaker, announced,
};
pub use list::{ListCommand, ListReturn, ListedMailbox, StatusItem};
pub use mailbox::{MailboxName, NameEncoding, NameError, decode_utf7, encode_utf7};
pub use response::{Namespace, Response, SearchResult, Status, Thread};
pub use response_code::ResponseCode;
pub use scrinium_line_wire::{
    ClientLine, Day, InitialResponse, LineEnds, LineError, LineScanner, LineSkipper, Mechanism, SaslError,
    client_line, server_challenge,
};
pub use search::{SearchKey, SearchProgram, SearchReturn, SortKey};
pub use set::{RANGES_MAX, SequenceSet, SetError, SetNumber};
pub use structure::{Address, BodyStructure, Disposition, Envelope, PartBasics, PartExtension, SinglePart};
pub use value::{Value, ValueError, ValueLimits, parse_values};
pub use write::{Next, Segment, WriteOptions, joined, write_values};
