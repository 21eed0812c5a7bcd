//! What a server's session asks, and what it is answered.

use scrinium_credentials::sasl::{Claim, ScramAccount};
use scrinium_smtp_wire::{
    ClientName, EnhancedCode, ForwardPath, Greeting, MailParameters, Mailbox, RecipientParameters, Reply,
    ReversePath,
};

use crate::head::{HeadFields, SenderField};
use crate::repeat::RepeatId;
use crate::server::options::{Encryption, Peer};

/// Something that only the surroundings know or can do. They answer each one, and then ask for the next.
#[derive(Debug)]
pub enum Request {
    /// Somebody is there. [`Answer::Accepted`] greets, [`Answer::Refused`] sends away.
    Greet(Peer),
    /// TLS begins: whatever waits to be sent is sent, then hands are shaken. [`Answer::Encrypted`]; on any other the connection ends.
    StartTls,
    /// SCRAM needs the keys of this prepared name. [`Answer::Account`], also for a name that nobody has.
    Account(String),
    /// May this person come in? [`Answer::Login`]
    LogIn(Claim),
    /// May a message come from this sender? [`Answer::Accepted`] or [`Answer::Refused`]
    Sender(Box<SenderQuestion>),
    /// May it go to this recipient? [`Answer::Recipient`]
    Recipient(Box<RecipientQuestion>),
    /// A message begins. [`Answer::Begun`] or [`Answer::Refused`]
    Begin(Box<Envelope>),
    /// At submission: what the head says. [`Answer::Head`], or [`Answer::Refused`] if the person may not write as this author.
    Head(Box<HeadFields>),
    /// More of the text; the first piece begins with the `Received` field. [`Answer::Accepted`] or [`Answer::Refused`]
    Text(Vec<u8>),
    /// The text is whole. The answer is given when the message is safe: [`Answer::Finished`], or for LMTP
    /// [`Answer::FinishedEach`].
    Finish(Box<TextSummary>),
    /// The message that has begun does not come, whichever side has refused it: what there is of it can go. Any answer will do. It does not
    /// follow on [`Self::Finish`]: who refuses a whole text has seen the last of it.
    Abandon,
}

/// MAIL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderQuestion {
    /// Who has logged in, by their id.
    pub person: Option<String>,
    /// Whom the message is from.
    pub sender: ReversePath,
    /// What was said of it.
    pub parameters: MailParameters,
}

/// RCPT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipientQuestion {
    /// Who has logged in, by their id.
    pub person: Option<String>,
    /// Whom the message is from.
    pub sender: ReversePath,
    /// Whom it is for. Case is as it came.
    pub recipient: EnvelopeRecipient,
    /// How many recipients were taken before this one.
    pub taken: usize,
}

/// A recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeRecipient {
    /// The address.
    pub path: ForwardPath,
    /// NOTIFY and ORCPT.
    pub parameters: RecipientParameters,
}

/// All that is known of a message before its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Whom it is from.
    pub sender: ReversePath,
    /// What was said of it.
    pub parameters: MailParameters,
    /// Recipients that were taken, in the order in which they are answered.
    pub recipients: Vec<EnvelopeRecipient>,
    /// When it may go out at the earliest (RFC 4865).
    pub release_ms: Option<u64>,
    /// Who has logged in, by their id.
    pub person: Option<String>,
    /// Who sends it.
    pub peer: Peer,
    /// How that greeted.
    pub hello: (Greeting, ClientName),
    /// The word of RFC 3848 for the way that it came.
    pub protocol: String,
}

/// What is known of a text when it is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSummary {
    /// Its length as it came.
    pub text_bytes: u64,
    /// Its longest line without its end: above 998 it cannot be passed on as it is.
    pub longest_line_bytes: usize,
    /// Whether it has bytes beyond ASCII.
    pub has_eight_bit: bool,
    /// SHA-256 of the text as it came.
    pub digest: [u8; 32],
    /// What its head says.
    pub head: HeadFields,
    /// For each recipient, what its copy is recognised by if it comes once more: see [`crate::repeat_ids`]. Empty where the text has no
    /// `Message-ID`.
    pub repeat_ids: Vec<RepeatId>,
    /// The same for all who get it: see [`crate::message_repeat_id`].
    pub message_repeat_id: Option<RepeatId>,
}

/// Answers to requests.
#[derive(Debug)]
pub enum Answer {
    /// Go on.
    Accepted,
    /// The client hears this. What it wanted is not done.
    Refused(Refusal),
    /// Something of ours does not work: the client hears 4xx and tries again later.
    Trouble,
    /// The connection is encrypted now.
    Encrypted(Encryption),
    /// The keys for SCRAM.
    Account(ScramAccount),
    /// Whether somebody comes in.
    Login(LoginVerdict),
    /// Whether a recipient is taken.
    Recipient(RecipientVerdict),
    /// A message has begun, under this id, which is unique on this host and an atom.
    Begun(String),
    /// The head is fine, and this becomes of its `Sender`.
    Head(SenderField),
    /// The message is safe for all its recipients, or for none.
    Finished(Delivery),
    /// What became of it for each recipient, in their order.
    FinishedEach(Vec<Delivery>),
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
    /// They would come in, but for something that they must be told, such as an app password that is needed.
    Refused(Refusal),
}

/// Whether a recipient is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecipientVerdict {
    /// It is.
    Accepted,
    /// It is, and goes on to somewhere else, which the client may know (RFC 5321, section 3.4).
    Forwarded(Mailbox),
    /// It is not; the person is now there.
    Moved(Mailbox),
    /// There is no such recipient.
    Unknown,
    /// The mailbox has no room, for now.
    Full,
    /// The message is larger than the mailbox will ever take.
    TooLargeForMailbox,
    /// The recipient is elsewhere, and only people who have logged in may send there.
    NeedsLogIn,
    /// For any other reason.
    Refused(Refusal),
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is safe.
    Accepted,
    /// It is not kept.
    Refused(Refusal),
}

/// A reply of 4xx or 5xx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    code: u16,
    enhanced: EnhancedCode,
    text: String,
}

impl Refusal {
    /// A code below 400 or above 599 becomes 451. Subject and detail are those of RFC 3463; the class follows the code. The text says what
    /// the sender can do.
    #[must_use]
    pub fn new(code: u16, subject: u16, detail: u16, text: &str) -> Self {
        let code = if (400..600).contains(&code) { code } else { 451 };
        let class = if code < 500 { 4 } else { 5 };
        Self { code, enhanced: EnhancedCode::new(class, subject, detail), text: text.to_owned() }
    }

    /// Trouble of ours.
    #[must_use]
    pub fn trouble() -> Self {
        Self::new(451, 3, 0, "Something went wrong here; the message was not taken. Try again later")
    }

    /// Whether it may be tried again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        self.code < 500
    }

    pub(crate) fn reply(&self) -> Reply {
        Reply::with_enhanced(self.code, self.enhanced, &self.text)
    }
}
