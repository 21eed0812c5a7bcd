//! Commands, whole.

use std::fmt;

use scrinium_line_wire::{InitialResponse, Mechanism};
use thiserror::Error;

use crate::date::DateTime;
use crate::fetch::{FetchAttribute, FetchModifiers};
use crate::flag::{Flag, is_atom_byte};
use crate::list::{ListCommand, StatusItem};
use crate::mailbox::{MailboxName, NameEncoding};
use crate::search::{SearchProgram, SortKey};
use crate::set::SequenceSet;
use crate::value::{Value, ValueError, ValueLimits};

/// What a client calls a command, and a server its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tag(String);

impl Tag {
    /// A tag; `None` if it is invalid (RFC 9051, section 9, `tag`).
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let valid = (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte == b']' || (is_atom_byte(byte) && byte != b'+'));
        valid.then(|| Self(text.to_owned()))
    }

    /// The tag.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The content of a message or a part of it.
#[derive(Clone, PartialEq, Eq)]
pub enum MessageData {
    /// NIL: there is no such part.
    Nil,
    /// Kept whole.
    Bytes(Vec<u8>),
    /// Kept whole; it may hold NUL.
    Binary(Vec<u8>),
    /// Handed on while it came, or sent by the caller: its length, and whether it may hold NUL.
    Streamed(u64, bool),
}

impl fmt::Debug for MessageData {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => formatter.write_str("Nil"),
            Self::Bytes(bytes) | Self::Binary(bytes) => write!(formatter, "({} bytes)", bytes.len()),
            Self::Streamed(bytes, _) => write!(formatter, "Streamed({bytes} bytes)"),
        }
    }
}

impl MessageData {
    pub(crate) fn read(value: &Value) -> Result<Self, CommandFault> {
        Ok(match value {
            value if value.is_nil() => Self::Nil,
            // A NUL needs a literal that may hold it, whatever the other side has sent.
            Value::Text(bytes) if bytes.contains(&0) => Self::Binary(bytes.clone()),
            Value::Text(bytes) => Self::Bytes(bytes.clone()),
            Value::Binary(bytes) => Self::Binary(bytes.clone()),
            Value::Streamed(bytes, binary) => Self::Streamed(*bytes, *binary),
            _ => return Err(CommandFault::Syntax),
        })
    }

    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Nil => Value::nil(),
            Self::Bytes(bytes) => Value::Text(bytes.clone()),
            Self::Binary(bytes) => Value::Binary(bytes.clone()),
            Self::Streamed(bytes, binary) => Value::Streamed(*bytes, *binary),
        }
    }
}

/// A message that APPEND or REPLACE brings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct AppendMessage {
    pub flags: Vec<Flag>,
    pub date: Option<DateTime>,
    /// Whether its header may go beyond ASCII: `UTF8 (~{5}...)` (RFC 9755).
    pub utf8: bool,
    pub data: MessageData,
}

/// What a client knows of a mailbox (RFC 7162, section 3.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct QresyncParameters {
    pub uid_validity: u32,
    pub change: u64,
    pub known_uids: Option<SequenceSet>,
    /// Sequence numbers and UIDs that belong together.
    pub matches: Option<(SequenceSet, SequenceSet)>,
}

/// What SELECT and EXAMINE say besides the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SelectParameters {
    pub condstore: bool,
    pub qresync: Option<QresyncParameters>,
}

/// What STORE does with the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum StoreAction {
    Replace,
    Add,
    Remove,
}

/// A command.
#[derive(Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Command {
    Capability,
    Noop,
    Logout,
    /// What the client calls itself; nothing is NIL (RFC 2971).
    Id(Vec<(String, Option<String>)>),
    StartTls,
    Authenticate(Mechanism, Option<InitialResponse>),
    Login {
        name: String,
        password: Vec<u8>,
    },
    Unauthenticate,
    /// Names of capabilities, in capitals.
    Enable(Vec<String>),
    Select {
        mailbox: MailboxName,
        parameters: SelectParameters,
        read_only: bool,
    },
    /// With special uses (RFC 6154).
    Create {
        mailbox: MailboxName,
        special_uses: Vec<String>,
    },
    Delete(MailboxName),
    Rename {
        from: MailboxName,
        to: MailboxName,
    },
    Subscribe(MailboxName),
    Unsubscribe(MailboxName),
    List(ListCommand),
    /// Reference and pattern, decoded.
    Lsub {
        reference: String,
        pattern: String,
    },
    Namespace,
    Status {
        mailbox: MailboxName,
        items: Vec<StatusItem>,
    },
    Append {
        mailbox: MailboxName,
        messages: Vec<AppendMessage>,
    },
    Idle,
    GetQuota(String),
    GetQuotaRoot(MailboxName),
    SetQuota {
        root: String,
        limits: Vec<(String, u64)>,
    },
    GetAcl(MailboxName),
    /// The rights begin with `+` or `-` where they are added or taken away.
    SetAcl {
        mailbox: MailboxName,
        identifier: String,
        rights: String,
    },
    DeleteAcl {
        mailbox: MailboxName,
        identifier: String,
    },
    ListRights {
        mailbox: MailboxName,
        identifier: String,
    },
    MyRights(MailboxName),
    /// Entries, the longest value, and how deep; `None` is any depth (RFC 5464).
    GetMetadata {
        mailbox: String,
        entries: Vec<String>,
        max_size: Option<u64>,
        depth: Option<u8>,
    },
    SetMetadata {
        mailbox: String,
        entries: Vec<(String, Option<Vec<u8>>)>,
    },
    /// DEFLATE, and nothing else (RFC 4978).
    Compress(String),
    /// What follows NOTIFY, as it came (RFC 5465).
    Notify(Vec<Value>),
    Check,
    Close,
    Unselect,
    Expunge,
    UidExpunge(SequenceSet),
    /// Messages of a batch, and which batches, from the newest on (RFC 10022).
    UidBatches {
        size: u32,
        range: Option<(u32, u32)>,
    },
    Search {
        uid: bool,
        program: SearchProgram,
    },
    Sort {
        uid: bool,
        keys: Vec<(SortKey, bool)>,
        program: SearchProgram,
    },
    /// The algorithm, in capitals.
    Thread {
        uid: bool,
        algorithm: String,
        program: SearchProgram,
    },
    Fetch {
        uid: bool,
        set: SequenceSet,
        attributes: Vec<FetchAttribute>,
        modifiers: FetchModifiers,
    },
    Store {
        uid: bool,
        set: SequenceSet,
        unchanged_since: Option<u64>,
        action: StoreAction,
        silent: bool,
        flags: Vec<Flag>,
    },
    Copy {
        uid: bool,
        set: SequenceSet,
        mailbox: MailboxName,
    },
    Move {
        uid: bool,
        set: SequenceSet,
        mailbox: MailboxName,
    },
    /// RFC 8508.
    Replace {
        uid: bool,
        number: u32,
        mailbox: MailboxName,
        message: AppendMessage,
    },
}

/// Passwords and messages are not shown.
impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown())
    }
}

/// A command and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TaggedCommand {
    pub tag: Tag,
    pub command: Command,
}

/// How commands are read.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct CommandOptions {
    pub names: NameEncoding,
    pub limits: ValueLimits,
}

impl Default for CommandOptions {
    fn default() -> Self {
        Self { names: NameEncoding::Utf7, limits: ValueLimits::default() }
    }
}

/// Why a frame is no command, and its tag if it has one: a server answers `tag BAD`, or `* BAD` without one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{fault}")]
#[allow(missing_docs, reason = "the names say it")]
pub struct CommandError {
    pub tag: Option<Tag>,
    pub fault: CommandFault,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CommandFault {
    #[error("the command has no valid tag")]
    Tag,
    #[error("the command, or an item or option of it, is not known")]
    Unknown,
    #[error("an argument is missing")]
    Missing,
    #[error("there are too many arguments")]
    TooMany,
    #[error("an argument is of the wrong kind")]
    Syntax,
    #[error("no valid number")]
    Number,
    #[error("no valid set of numbers")]
    Set,
    #[error("no valid date")]
    Date,
    #[error("no valid flag")]
    Flag,
    #[error("no valid section")]
    Section,
    #[error("the name of the mailbox is not valid")]
    Mailbox,
    #[error("the text is not UTF-8")]
    NotText,
    #[error("the keys are nested too deeply")]
    TooDeep,
    /// A server answers `NO [BADCHARSET (US-ASCII UTF-8)]`.
    #[error("the character set is not known")]
    Charset,
    #[error("the log-in is not valid")]
    Sasl,
    #[error("{0}")]
    Value(#[from] ValueError),
}
