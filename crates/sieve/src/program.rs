//! A compiled script.

use crate::error::{Position, ScriptFault};
use crate::matching::{Keys, Matching};
use crate::template::{Template, VariableName};

pub(crate) type Block = Vec<Statement>;
pub(crate) type Templates = Vec<Template>;

#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) position: Position,
    pub(crate) instruction: Instruction,
}

#[derive(Clone, Debug)]
pub(crate) struct Branch {
    /// None for `else`.
    pub(crate) condition: Option<Condition>,
    pub(crate) block: Block,
}

#[derive(Clone, Debug)]
pub(crate) enum Instruction {
    If(Vec<Branch>),
    Stop,
    /// Back to the script that includes this one.
    Return,
    Keep {
        flags: Option<Templates>,
    },
    Discard,
    FileInto(Box<FileIntoCommand>),
    Redirect {
        address: Template,
        copy: bool,
    },
    Reject {
        kind: RejectKind,
        reason: Template,
    },
    Flags {
        change: FlagChange,
        variable: Option<Template>,
        flags: Templates,
    },
    Set {
        name: VariableName,
        modifiers: Vec<Modifier>,
        value: Template,
    },
    Vacation(Box<VacationCommand>),
    Notify(Box<NotifyCommand>),
    AddHeader {
        name: Template,
        value: Template,
        last: bool,
    },
    DeleteHeader(Box<DeleteHeaderCommand>),
    Include(Box<IncludeCommand>),
    Global(Vec<String>),
    Error(Template),
    /// `ihave` says that this is never reached.
    Unknown(ScriptFault),
}

#[derive(Clone, Debug)]
pub(crate) struct FileIntoCommand {
    pub(crate) copy: bool,
    pub(crate) target: TargetOptions,
}

/// How a message is refused (RFC 5429).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectKind {
    /// `reject`: at the end of the SMTP transaction, or by a message.
    Reject,
    /// `ereject`: at the end of the SMTP transaction wherever that is possible.
    Ereject,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagChange {
    Set,
    Add,
    Remove,
}

/// Modifiers of `set`, in the order in which they are applied (RFC 5229, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Modifier {
    Lower,
    Upper,
    LowerFirst,
    UpperFirst,
    QuoteWildcard,
    QuoteRegex,
    EncodeUrl,
    Length,
}

impl Modifier {
    /// Two of one precedence exclude each other.
    pub(crate) fn precedence(self) -> u8 {
        match self {
            Self::Lower | Self::Upper => 40,
            Self::LowerFirst | Self::UpperFirst => 30,
            Self::QuoteWildcard | Self::QuoteRegex => 20,
            Self::EncodeUrl => 15,
            Self::Length => 10,
        }
    }
}

/// The mailbox of a message or of a copy, as a script names it.
#[derive(Clone, Debug)]
pub(crate) struct TargetOptions {
    pub(crate) mailbox: Template,
    pub(crate) create: bool,
    pub(crate) flags: Option<Templates>,
    pub(crate) special_use: Option<Template>,
    pub(crate) mailbox_id: Option<Template>,
}

#[derive(Clone, Debug)]
pub(crate) struct VacationCommand {
    pub(crate) period_seconds: Option<u64>,
    pub(crate) subject: Option<Template>,
    pub(crate) from: Option<Template>,
    pub(crate) addresses: Templates,
    pub(crate) mime: bool,
    pub(crate) handle: Option<Template>,
    pub(crate) fcc: Option<TargetOptions>,
    pub(crate) reason: Template,
}

#[derive(Clone, Debug)]
pub(crate) struct NotifyCommand {
    pub(crate) method: Template,
    pub(crate) from: Option<Template>,
    pub(crate) importance: Option<Template>,
    pub(crate) message: Option<Template>,
    pub(crate) fcc: Option<TargetOptions>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramPlace {
    pub(crate) index: u32,
    pub(crate) from_last: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct DeleteHeaderCommand {
    pub(crate) name: Template,
    pub(crate) place: Option<ProgramPlace>,
    pub(crate) matching: Matching,
    pub(crate) keys: Option<Keys>,
}

/// Where a script that is included lies (RFC 6609, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// Among the person's own.
    Personal,
    /// Among those for everybody.
    Global,
}

#[derive(Clone, Debug)]
pub(crate) struct IncludeCommand {
    pub(crate) location: Location,
    pub(crate) name: String,
    pub(crate) once: bool,
    pub(crate) optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressPart {
    All,
    LocalPart,
    Domain,
    User,
    Detail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyTransform {
    Raw,
    Text,
    Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneChoice {
    Local,
    Original,
    /// Seconds east of Greenwich.
    Offset(i32),
}

/// What a test looks for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) matching: Matching,
    pub(crate) keys: Keys,
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Literal(bool),
    Address {
        fields: Templates,
        part: AddressPart,
        place: Option<ProgramPlace>,
        wanted: Wanted,
    },
    Header {
        fields: Templates,
        place: Option<ProgramPlace>,
        wanted: Wanted,
    },
    Envelope {
        parts: Templates,
        part: AddressPart,
        wanted: Wanted,
    },
    Exists(Templates),
    Size {
        over: bool,
        bytes: u64,
    },
    Text {
        sources: Templates,
        wanted: Wanted,
    },
    HasFlag {
        variables: Option<Templates>,
        wanted: Wanted,
    },
    Body {
        transform: BodyTransform,
        types: Templates,
        wanted: Wanted,
    },
    Environment {
        item: Template,
        wanted: Wanted,
    },
    /// The field is missing where the current date is meant.
    Date {
        field: Option<Template>,
        zone: ZoneChoice,
        part: String,
        place: Option<ProgramPlace>,
        wanted: Wanted,
    },
    ValidNotifyMethod(Templates),
    NotifyCapability {
        method: Template,
        capability: Template,
        wanted: Wanted,
    },
    MailboxExists(Templates),
    SpecialUseExists {
        mailbox: Option<Template>,
        uses: Templates,
    },
    MailboxIdExists(Templates),
    Duplicate(Box<DuplicateTest>),
    Unknown(ScriptFault),
}

#[derive(Clone, Debug)]
pub(crate) struct DuplicateTest {
    pub(crate) handle: Template,
    /// A field's name; Message-ID by default.
    pub(crate) header: Option<Template>,
    pub(crate) unique_id: Option<Template>,
    pub(crate) period_seconds: u64,
    /// The period begins again each time.
    pub(crate) last: bool,
}
