//! What SMTP, IMAP and POP3 share on the wire: lines that end with CR LF, texts that end with a dot, and
//! exchanges of SASL in base64; and, for LDAP and calendars too, places in texts, and days.
//!
//! Everything here works on bytes that the caller has read, or gives bytes for the caller to send. Bytes may come
//! in pieces of any size: a reader keeps where it is, and looks at no byte twice.
//!
//! *Invariant*: pure: no sockets, no clock, nothing of the server. Nothing panics, whatever the bytes; a limit is
//! checked before memory is used; what is written cannot end a line or a text early.

#![forbid(unsafe_code)]

mod cursor;
mod day;
mod dots;
mod line;
mod sasl;

pub use cursor::Cursor;
pub use day::{Day, date_of, day_number, is_leap, month_length, weekday_of, year_length};
pub use dots::{
    BareEnds, DotLimits, DotLine, DotProgress, DotReader, DotWriter, LineEndCheck, TextFault, dot_line,
};
pub use line::{Line, LineEnds, LineError, LineScanner, LineSkipper};
pub use sasl::{ClientLine, InitialResponse, Mechanism, SaslError, client_line, server_challenge};
