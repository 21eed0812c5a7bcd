//! LIST with its options, and STATUS (RFC 9051, sections 6.3.9 and 6.3.11; RFC 5258, 5819, 6154, 8438, 8440, 9590).

use crate::argument::{Arguments, astring, atoms, mailbox};
use crate::command::CommandFault;
use crate::mailbox::{MailboxName, NameEncoding, decode_utf7, encode_utf7};
use crate::value::Value;

/// Patterns in one command.
const PATTERNS_MAX: usize = 100;

/// What STATUS tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum StatusItem {
    Messages,
    Recent,
    UidNext,
    UidValidity,
    Unseen,
    Deleted,
    Size,
    HighestModSeq,
    AppendLimit,
    MailboxId,
    DeletedStorage,
}

const STATUS_ITEMS: [(&str, StatusItem); 11] = [
    ("MESSAGES", StatusItem::Messages),
    ("RECENT", StatusItem::Recent),
    ("UIDNEXT", StatusItem::UidNext),
    ("UIDVALIDITY", StatusItem::UidValidity),
    ("UNSEEN", StatusItem::Unseen),
    ("DELETED", StatusItem::Deleted),
    ("SIZE", StatusItem::Size),
    ("HIGHESTMODSEQ", StatusItem::HighestModSeq),
    ("APPENDLIMIT", StatusItem::AppendLimit),
    ("MAILBOXID", StatusItem::MailboxId),
    ("DELETED-STORAGE", StatusItem::DeletedStorage),
];

impl StatusItem {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        STATUS_ITEMS.iter().find(|(_, item)| *item == self).map_or("MESSAGES", |(word, _)| *word)
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        STATUS_ITEMS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, item)| *item)
    }

    pub(crate) fn read_all(arguments: &mut Arguments<'_>) -> Result<Vec<Self>, CommandFault> {
        let mut list = arguments.list()?;
        let mut items = Vec::new();
        while !list.is_empty() {
            let item = Self::parse(&list.atom()?).ok_or(CommandFault::Unknown)?;
            if !items.contains(&item) {
                items.push(item);
            }
        }
        if items.is_empty() { Err(CommandFault::Missing) } else { Ok(items) }
    }

    pub(crate) fn write_all(items: &[Self]) -> Value {
        Value::List(items.iter().map(|item| Value::atom(item.word())).collect())
    }
}

/// What LIST tells besides names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ListReturn {
    Subscribed,
    Children,
    SpecialUse,
    MyRights,
    Status(Vec<StatusItem>),
    Metadata(Vec<String>),
}

/// A LIST command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCommand {
    /// SUBSCRIBED, REMOTE, RECURSIVEMATCH, SPECIAL-USE; in capitals.
    pub selection: Vec<String>,
    /// The reference name, decoded.
    pub reference: String,
    /// Patterns, decoded.
    pub patterns: Vec<String>,
    /// Whether the patterns stand in parentheses, or options are there: then the answer is that of LIST-EXTENDED.
    pub extended: bool,
    /// RETURN.
    pub returns: Vec<ListReturn>,
}

impl ListCommand {
    /// Every mailbox that matches a pattern.
    #[must_use]
    pub fn plain(reference: &str, pattern: &str) -> Self {
        Self {
            selection: Vec::new(),
            reference: reference.to_owned(),
            patterns: vec![pattern.to_owned()],
            extended: false,
            returns: Vec::new(),
        }
    }

    pub(crate) fn read(arguments: &mut Arguments<'_>) -> Result<Self, CommandFault> {
        let mut selection = Vec::new();
        let mut extended = false;
        if arguments.peek().is_some_and(|value| value.list().is_some()) {
            extended = true;
            let mut list = arguments.list()?;
            while !list.is_empty() {
                let word = list.word()?;
                if !matches!(word.as_str(), "SUBSCRIBED" | "REMOTE" | "RECURSIVEMATCH" | "SPECIAL-USE") {
                    return Err(CommandFault::Unknown);
                }
                if !selection.contains(&word) {
                    selection.push(word);
                }
            }
        }
        let reference = pattern(arguments)?;
        extended |= arguments.peek().is_some_and(|value| value.list().is_some());
        let mut list = arguments.list_or_one()?;
        let mut patterns = Vec::new();
        while !list.is_empty() {
            if patterns.len() >= PATTERNS_MAX {
                return Err(CommandFault::TooMany);
            }
            patterns.push(pattern(&mut list)?);
        }
        let mut returns = Vec::new();
        if arguments.take("RETURN") {
            extended = true;
            let mut list = arguments.list()?;
            while !list.is_empty() {
                returns.push(ListReturn::read(&mut list)?);
            }
        }
        Ok(Self { selection, reference, patterns, extended, returns })
    }

    pub(crate) fn write(&self, names: NameEncoding, out: &mut Vec<Value>) {
        if !self.selection.is_empty() {
            out.push(Value::List(atoms(&self.selection)));
        }
        out.push(pattern_value(&self.reference, names));
        let mut patterns: Vec<Value> =
            self.patterns.iter().map(|pattern| pattern_value(pattern, names)).collect();
        let needs_list = self.extended && self.selection.is_empty() && self.returns.is_empty();
        match patterns.pop() {
            Some(only) if patterns.is_empty() && !needs_list => out.push(only),
            last => {
                patterns.extend(last);
                out.push(Value::List(patterns));
            }
        }
        if !self.returns.is_empty() {
            let mut list = Vec::new();
            self.returns.iter().for_each(|option| option.write(&mut list));
            out.extend([Value::atom("RETURN"), Value::List(list)]);
        }
    }
}

impl ListReturn {
    fn read(list: &mut Arguments<'_>) -> Result<Self, CommandFault> {
        Ok(match list.word()?.as_str() {
            "SUBSCRIBED" => Self::Subscribed,
            "CHILDREN" => Self::Children,
            "SPECIAL-USE" => Self::SpecialUse,
            "MYRIGHTS" => Self::MyRights,
            "STATUS" => Self::Status(StatusItem::read_all(list)?),
            "METADATA" => {
                let mut names = list.list()?;
                let mut entries = Vec::new();
                while !names.is_empty() {
                    entries.push(names.text()?);
                }
                Self::Metadata(entries)
            }
            _ => return Err(CommandFault::Unknown),
        })
    }

    fn write(&self, out: &mut Vec<Value>) {
        match self {
            Self::Subscribed => out.push(Value::atom("SUBSCRIBED")),
            Self::Children => out.push(Value::atom("CHILDREN")),
            Self::SpecialUse => out.push(Value::atom("SPECIAL-USE")),
            Self::MyRights => out.push(Value::atom("MYRIGHTS")),
            Self::Status(items) => out.extend([Value::atom("STATUS"), StatusItem::write_all(items)]),
            Self::Metadata(entries) => {
                let names = entries.iter().map(|name| astring(name)).collect();
                out.extend([Value::atom("METADATA"), Value::List(names)]);
            }
        }
    }
}

/// A pattern; `*` and `%` are characters of modified UTF-7 as well.
pub(crate) fn pattern(arguments: &mut Arguments<'_>) -> Result<String, CommandFault> {
    let bytes = arguments.bytes()?;
    let text = match arguments.names {
        NameEncoding::Utf7 => decode_utf7(bytes).map_err(|_| CommandFault::Mailbox)?,
        NameEncoding::Utf8 => std::str::from_utf8(bytes).map_err(|_| CommandFault::Mailbox)?.to_owned(),
    };
    if text.chars().any(char::is_control) { Err(CommandFault::Mailbox) } else { Ok(text) }
}

pub(crate) fn pattern_value(text: &str, names: NameEncoding) -> Value {
    match names {
        NameEncoding::Utf7 => Value::text_of(&encode_utf7(text)),
        NameEncoding::Utf8 => Value::text_of(text),
    }
}

/// What LIST says of a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMailbox {
    /// `\HasChildren`, `\Sent` and others, as they came.
    pub attributes: Vec<String>,
    /// What stands between the levels of a name, if there are levels.
    pub delimiter: Option<char>,
    /// The name.
    pub name: MailboxName,
    /// Extended data: CHILDINFO and OLDNAME, with their values (RFC 5258).
    pub extended: Vec<(String, Value)>,
}

impl ListedMailbox {
    pub(crate) fn read(arguments: &mut Arguments<'_>) -> Result<Self, CommandFault> {
        let mut list = arguments.list()?;
        let mut attributes = Vec::new();
        while !list.is_empty() {
            attributes.push(list.atom()?);
        }
        let delimiter = arguments.next()?;
        let delimiter = if delimiter.is_nil() {
            None
        } else {
            let text = crate::argument::text(delimiter)?;
            let mut characters = text.chars();
            let first = characters.next();
            if first.is_none() || characters.next().is_some() {
                return Err(CommandFault::Syntax);
            }
            first
        };
        let name = arguments.mailbox()?;
        let mut extended = Vec::new();
        if !arguments.is_empty() {
            let mut list = arguments.list()?;
            while !list.is_empty() {
                extended.push((list.text()?.to_ascii_uppercase(), list.next()?.clone()));
            }
        }
        Ok(Self { attributes, delimiter, name, extended })
    }

    pub(crate) fn write(&self, names: NameEncoding, out: &mut Vec<Value>) {
        out.push(Value::List(atoms(&self.attributes)));
        out.push(self.delimiter.map_or_else(Value::nil, |delimiter| Value::text_of(&delimiter.to_string())));
        out.push(mailbox(&self.name, names));
        if !self.extended.is_empty() {
            let pairs = self.extended.iter().flat_map(|(name, value)| [Value::text_of(name), value.clone()]);
            out.push(Value::List(pairs.collect()));
        }
    }
}
