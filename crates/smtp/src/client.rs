//! The client's side: messages go out over one connection to another server, by SMTP or LMTP.
//!
//! The port hands in what comes, sends what [`ClientSession::take_output`] gives, and does what [`ClientSession::next`] says: start TLS,
//! hand in a message, hand in its text, note an outcome. What became of a message is an [`Outcome`] for each recipient.

mod envelope;
mod message;
mod opening;
mod options;
mod outcome;
mod session;

pub use message::{Outgoing, OutgoingRecipient};
pub use options::{ClientLimits, ClientLogin, ClientOptions, ClientTimes, LoginSecret, Protocol, TlsPolicy};
pub use outcome::{Outcome, Reason, SAID_MAX_BYTES, Said, SessionStep};
pub use session::{ClientRequest, ClientSession};
