//! ManageSieve (RFC 5804) on the wire, for clients and servers alike: how scripts of Sieve are listed, read, put and chosen.
//!
//! A [`FrameReader`] puts a command or a response together from bytes that come in pieces, with the literals in it. A
//! server reads a [`Command`] from the [`Frame`] and writes [`Status`], [`Capability`], [`ListedScript`] and texts; a
//! client does the opposite. Exchanges of SASL are strings in base64 ([`Frame::sasl_line`], [`write_sasl_line`]).
//!
//! *Invariant*: pure: no sockets, no clock, nothing of the server. Nothing panics, whatever the bytes; lines, literals
//! and their number have limits that are checked before memory is used; a literal that is refused is never read as
//! commands. Nothing that is written ends a line early. What is written is read back equal.

#![forbid(unsafe_code)]

mod capability;
mod command;
mod frame;
mod status;
mod token;

pub use capability::Capability;
pub use command::{Command, CommandError, ScriptName};
pub use frame::{Frame, FrameError, FrameLimits, FrameReader, FrameStep, Speaker};
pub use scrinium_line_wire::{ClientLine, InitialResponse, Mechanism, SaslError, server_challenge};
pub use status::{ListedScript, ResponseCode, ServerLine, Status, StatusKind, TokenFault};
pub use token::{Token, write_sasl_challenge, write_sasl_line, write_text};
