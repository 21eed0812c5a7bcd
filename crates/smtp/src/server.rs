//! The server's side: SMTP, submission and LMTP.

mod answers;
mod commands;
mod incoming;
mod login;
mod options;
mod request;
mod session;
mod texts;

pub use options::{Encryption, Peer, ServerLimits, ServerOptions, ServerTimes, Service};
pub use request::{
    Answer, Delivery, Envelope, EnvelopeRecipient, LoginVerdict, RecipientQuestion, RecipientVerdict,
    Refusal, Request, SenderQuestion, TextSummary,
};
pub use session::ServerSession;
