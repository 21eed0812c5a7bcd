//! SMTP, submission and LMTP at ports: messages come in, of other servers and of people.
//!
//! [`SmtpProtocol`] lets [`scrinium_port::converse`] read and write, shake hands for STARTTLS and keep time for the sessions of
//! [`scrinium_smtp`], and asks a [`Guest`] what only the surroundings know. [`Reception`] is the surroundings of messages for
//! people of this server, [`Submission`] those of people who send: recipients are looked up in the directory, a text is kept in
//! memory while there is room and in a file where there is none, and a whole message goes into mail files, or a
//! mail.box, in one batch, its source once.
//!
//! *Invariant*: the client hears 250 only when the message is durable, and 4xx for every trouble of ours; a message that comes
//! again because the answer was lost is the same document; no thread waits for a client, and what a client can make us
//! hold is bounded. Who has not logged in sends to people of this server alone, and who has, as nobody else than they may.

mod allowance;
mod connection;
mod desk;
mod filters;
mod gate;
mod guest;
mod intake;
mod protocol;
mod reception;
mod send_rights;
mod sender_check;
mod spool;
mod submission;

pub use allowance::{AllowanceLimits, Allowances};
pub use filters::{FilterAddress, FilterFault, FilterOptions, Rspamd, RspamdMessage};
pub use gate::{GateOptions, ListOptions};
pub use guest::{Guest, Surroundings};
pub use protocol::SmtpProtocol;
pub use reception::{Reception, ReceptionOptions};
pub use send_rights::SendRights;
pub use sender_check::{SenderCheckOptions, SenderDns};
pub use spool::SpoolBudget;
pub use submission::{Submission, SubmissionOptions};
