//! POP3 (RFC 1939) on the wire, for clients and servers alike: commands, responses, the lists of LIST and UIDL, and
//! what a server offers (RFC 2449), with STLS (RFC 2595), AUTH (RFC 5034), UTF8 and LANG (RFC 6856) and response
//! codes (RFC 2449, section 8; RFC 3206).
//!
//! A server finds a line with [`LineScanner`], reads it with [`Command::parse`] and writes a [`Response`]; texts of
//! messages pass through [`DotWriter`]. A client does the opposite.
//!
//! *Invariant*: pure: no sockets, no clock, nothing of the server. Nothing panics, whatever the bytes; every list and
//! text that is read has a limit; nothing that is written holds a CR or LF but those that end its lines. What is
//! written is read back equal.

#![forbid(unsafe_code)]

mod capability;
mod command;
mod list;
mod response;

pub use capability::{Capability, Expire, LoginDelay};
pub use command::{COMMAND_MAX_BYTES, Command, CommandError, Credential, MessageNumber, Word};
pub use list::{
    ListEntry, MailboxSize, UniqueId, UniqueIdEntry, parse_list_entry, parse_mailbox_size,
    parse_unique_id_entry,
};
pub use response::{RESPONSE_MAX_BYTES, Response, ResponseCode, ResponseError};
pub use scrinium_line_wire::{
    BareEnds, ClientLine, DotLimits, DotLine, DotProgress, DotReader, DotWriter, InitialResponse, Line,
    LineEnds, LineError, LineScanner, LineSkipper, Mechanism, SaslError, TextFault, client_line, dot_line,
    server_challenge,
};
