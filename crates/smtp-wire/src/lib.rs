//! SMTP (RFC 5321) and LMTP (RFC 2033) on the wire, for clients and servers alike: commands, replies, addresses,
//! the parameters of ESMTP, and what a server offers.
//!
//! A server finds a line with [`LineScanner`], reads it with [`Command::parse`] and writes a [`Reply`]; a client
//! writes a [`Command`] and hands the lines that come to a [`ReplyReader`]. Texts of messages pass through
//! [`DotReader`] and [`DotWriter`], or, announced by BDAT, through a [`ChunkReader`].
//!
//! *Invariant*: pure: no sockets, no clock, nothing of the server. Nothing panics, whatever the bytes; every list
//! and text that is read has a limit; nothing that is written holds a CR or LF but those that end its lines. What is
//! written is read back equal.

#![forbid(unsafe_code)]

mod address;
mod capability;
mod chunk;
mod command;
mod delivery;
mod lmtp;
mod parameter;
mod parse;
mod reply;
mod xtext;

pub use address::{
    AddressError, AddressLiteral, Domain, ForwardPath, LOCAL_PART_MAX_BYTES, Mailbox, Path, ReversePath,
};
pub use capability::{Capabilities, Capability, CapabilityLimits};
pub use chunk::ChunkReader;
pub use command::{Argument, ClientName, Command, CommandError, Greeting};
pub use delivery::{Notify, OriginalRecipient, Return};
pub use lmtp::RecipientReplies;
pub use parameter::{Body, Hold, MailParameters, Parameter, RecipientParameters};
pub use reply::{EnhancedCode, Reply, ReplyError, ReplyLimits, ReplyReader};
pub use scrinium_line_wire::{
    BareEnds, ClientLine, DotLimits, DotProgress, DotReader, DotWriter, InitialResponse, Line, LineEndCheck,
    LineEnds, LineError, LineScanner, LineSkipper, Mechanism, SaslError, TextFault, client_line,
    server_challenge,
};
pub use xtext::{XtextError, decode_xtext, encode_xtext};

/// A command may be so long: RFC 5321, section 4.5.3.1.4 says 512 bytes, and extensions add to it.
pub const COMMAND_MAX_BYTES: usize = 4096;
