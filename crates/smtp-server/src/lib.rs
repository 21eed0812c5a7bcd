//! SMTP and LMTP at ports: messages of other servers come in.
//!
//! [`SmtpProtocol`] is a thin loop around the sessions of [`scrinium_smtp`]: it reads and writes, hands shakes for
//! STARTTLS, keeps time, and asks a [`Guest`] what only the surroundings know. [`Reception`] is the surroundings: recipients are
//! looked up in the directory, a text is kept in memory while there is room and in a file where there is none, and a whole
//! message goes into a mail.box in one batch, its source once.
//!
//! *Invariant*: the client hears 250 only when the message is durable, and 4xx for every trouble of ours; a message that comes
//! again because the answer was lost is the same document; no thread waits for a client, and what a client can make us
//! hold is bounded.

mod connection;
mod guest;
mod protocol;
mod reception;
mod spool;

pub use guest::{Guest, Surroundings};
pub use protocol::SmtpProtocol;
pub use reception::{Reception, ReceptionOptions};
pub use spool::SpoolBudget;
