//! What a session asks its surroundings, and what it is answered.

use std::sync::Arc;

use scrinium_credentials::sasl::{Claim, ScramAccount};
use scrinium_mailbox::{FolderView, NumberSet, Span};
use scrinium_pop3_wire::ResponseCode;

use crate::options::{Encryption, Peer};

/// Something that only the surroundings know or can do. They answer each one, and then ask for the next.
#[derive(Debug)]
pub enum Request {
    /// Somebody is there. [`Answer::Accepted`] greets, [`Answer::Refused`] sends away.
    Greet(Peer),
    /// TLS begins. [`Answer::Encrypted`]; on any other the connection ends.
    StartTls,
    /// SCRAM needs the keys of this prepared name. [`Answer::Account`], also for a name that nobody has.
    Account(String),
    /// May this person come in? [`Answer::Login`]
    LogIn(Claim),
    /// The person's maildrop, which nobody else has until it is released. [`Answer::Opened`] or [`Answer::Refused`], with
    /// [`ResponseCode::InUse`] where somebody has it.
    Open(String),
    /// Something about its messages. [`Answer::Maildrop`], which gives the view back.
    Maildrop(Box<MaildropQuestion>),
    /// Bytes of a message in its CRLF form. [`Answer::Content`], or [`Answer::Gone`].
    Content(ContentId, Span),
    /// The session is over; somebody else may have the maildrop. Any answer will do.
    Release,
}

/// Where the content of a message is, as the surroundings know it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContentId(pub Arc<[u8]>);

/// A maildrop that was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Maildrop {
    /// Its folder as it is now.
    pub view: FolderView,
    /// All messages together.
    pub bytes: u64,
}

/// About the messages of a maildrop. Who answers brings the view up to date.
#[derive(Debug)]
pub enum MaildropQuestion {
    /// Messages of these numbers, ascending, up to a limit. [`MaildropOutcome::Entries`]
    Entries(FolderView, NumberSet, u32),
    /// Messages of these numbers go; one step is one batch. [`MaildropOutcome::Deleted`] when that is durable.
    Delete(FolderView, NumberSet),
}

/// The view comes back in any case.
#[derive(Debug)]
pub struct MaildropAnswer {
    /// The view, up to date.
    pub view: FolderView,
    /// What came of the question.
    pub outcome: MaildropOutcome,
}

/// What came of a question.
#[derive(Debug)]
#[allow(missing_docs, reason = "the question says it")]
pub enum MaildropOutcome {
    Entries {
        entries: Vec<Entry>,
        /// What is left of the numbers.
        rest: NumberSet,
    },
    Deleted {
        rest: NumberSet,
    },
    Refused(Refusal),
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Entry {
    pub number: u32,
    pub uid: u32,
    /// In CRLF form.
    pub bytes: u64,
    pub content: ContentId,
}

/// Answers to requests.
#[derive(Debug)]
#[allow(missing_docs, reason = "the requests say it")]
pub enum Answer {
    /// Go on; it is done.
    Accepted,
    /// The client hears `-ERR`.
    Refused(Refusal),
    /// Something of ours does not work: the client hears `-ERR [SYS/TEMP]`.
    Trouble,
    Encrypted(Encryption),
    Account(ScramAccount),
    Login(LoginVerdict),
    Opened(Box<Maildrop>),
    Maildrop(Box<MaildropAnswer>),
    Content(Vec<u8>),
    Gone,
}

/// Whether somebody comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginVerdict {
    /// They do: the id of the person that they are.
    Admitted(String),
    /// The proof is wrong, or there is no such person, which the client cannot tell apart.
    Wrong,
    /// There were too many failures, of this name or from this network.
    TooMany,
    /// They would come in, but for something that they must be told.
    Refused(Refusal),
}

/// An `-ERR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For the client's program.
    pub code: Option<ResponseCode>,
    /// For the person.
    pub text: String,
}

impl Refusal {
    /// With a code and a text that says what to do.
    #[must_use]
    pub fn new(code: Option<ResponseCode>, text: &str) -> Self {
        Self { code, text: text.to_owned() }
    }

    /// Trouble of ours.
    #[must_use]
    pub fn trouble() -> Self {
        Self::new(Some(ResponseCode::SystemTemporary), "Something went wrong here; try again later")
    }
}
