//! Codes in brackets before the text of a status (RFC 9051, section 7.1; RFC 5530 and those of extensions).

use crate::argument::{Arguments, astring, flags};
use crate::command::CommandFault;
use crate::flag::Flag;
use crate::frame::Part;
use crate::mailbox::NameEncoding;
use crate::set::SequenceSet;
use crate::value::{Value, ValueLimits, parse_values};

/// A code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ResponseCode {
    Alert,
    BadCharset(Vec<String>),
    Capability(Vec<String>),
    PermanentFlags(Vec<Flag>),
    ReadOnly,
    ReadWrite,
    TryCreate,
    UidNext(u32),
    UidValidity(u32),
    Unseen(u32),
    HighestModSeq(u64),
    NoModSeq,
    /// Messages that STORE left as they were (RFC 7162, section 3.1.3).
    Modified(SequenceSet),
    Closed,
    /// UIDVALIDITY and UIDs of what was stored.
    AppendUid(u32, SequenceSet),
    /// UIDVALIDITY, UIDs where the messages are, and where they are now.
    CopyUid(u32, SequenceSet, SequenceSet),
    UidNotSticky,
    /// The id of a mailbox (RFC 8474).
    MailboxId(String),
    /// A code without arguments of RFC 5530 and extensions, in capitals: AUTHENTICATIONFAILED, OVERQUOTA, LIMIT.
    Word(String),
    /// Any other, with what follows it.
    Other(String, Vec<Value>),
}

impl ResponseCode {
    /// Reads what stands between the brackets. What is not valid becomes [`ResponseCode::Other`].
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let limits = ValueLimits { depth: 4, values: 1 << 14 };
        let values = parse_values(&[Part::Text(text.to_vec())], limits).ok()?;
        let (name, rest) = values.split_first()?;
        let name = name.as_atom()?.to_ascii_uppercase();
        let mut arguments = Arguments::new(rest, NameEncoding::Utf8);
        let known = Self::known(&name, &mut arguments).ok().filter(|_| arguments.is_empty());
        Some(match known {
            Some(known) => known,
            None if rest.is_empty() => Self::Word(name),
            None => Self::Other(name, rest.to_vec()),
        })
    }

    /// The code that the text of a status begins with, `[..]`, and the text behind it.
    #[must_use]
    pub fn split(text: &[u8]) -> (Option<Self>, &[u8]) {
        let Some(inside) = text.strip_prefix(b"[") else { return (None, text) };
        let (mut in_quotes, mut escaped) = (false, false);
        for (index, byte) in inside.iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_quotes => escaped = true,
                b'"' => in_quotes = !in_quotes,
                b']' if !in_quotes => {
                    let (code, rest) = inside.split_at(index);
                    let rest = rest.get(1..).unwrap_or_default();
                    return match Self::parse(code) {
                        Some(code) => (Some(code), rest.strip_prefix(b" ").unwrap_or(rest)),
                        None => (None, text),
                    };
                }
                _ => {}
            }
        }
        (None, text)
    }

    fn known(name: &str, arguments: &mut Arguments<'_>) -> Result<Self, CommandFault> {
        Ok(match name {
            "ALERT" => Self::Alert,
            "BADCHARSET" if arguments.is_empty() => Self::BadCharset(Vec::new()),
            "BADCHARSET" => {
                let mut list = arguments.list()?;
                let mut names = Vec::new();
                while !list.is_empty() {
                    names.push(list.text()?);
                }
                Self::BadCharset(names)
            }
            "CAPABILITY" => {
                let mut names = Vec::new();
                while !arguments.is_empty() {
                    names.push(arguments.atom()?);
                }
                Self::Capability(names)
            }
            "PERMANENTFLAGS" => Self::PermanentFlags(arguments.list()?.all_flags()?),
            "READ-ONLY" => Self::ReadOnly,
            "READ-WRITE" => Self::ReadWrite,
            "TRYCREATE" => Self::TryCreate,
            "UIDNEXT" => Self::UidNext(arguments.number32()?),
            "UIDVALIDITY" => Self::UidValidity(arguments.number32()?),
            "UNSEEN" => Self::Unseen(arguments.number32()?),
            "HIGHESTMODSEQ" => Self::HighestModSeq(arguments.number()?),
            "NOMODSEQ" => Self::NoModSeq,
            "MODIFIED" => Self::Modified(arguments.set()?),
            "CLOSED" => Self::Closed,
            "APPENDUID" => Self::AppendUid(arguments.number32()?, arguments.set()?),
            "COPYUID" => Self::CopyUid(arguments.number32()?, arguments.set()?, arguments.set()?),
            "UIDNOTSTICKY" => Self::UidNotSticky,
            "MAILBOXID" => Self::MailboxId(arguments.list()?.text()?),
            _ => return Err(CommandFault::Unknown),
        })
    }

    /// What the code is made of.
    #[must_use]
    pub fn values(&self) -> Vec<Value> {
        let number = |name: &str, number: u64| vec![Value::atom(name), Value::atom(number.to_string())];
        let word = |name: &str| vec![Value::atom(name)];
        match self {
            Self::Alert => word("ALERT"),
            Self::BadCharset(names) if names.is_empty() => word("BADCHARSET"),
            Self::BadCharset(names) => {
                let names = names.iter().map(|name| astring(name)).collect();
                vec![Value::atom("BADCHARSET"), Value::List(names)]
            }
            Self::Capability(names) => {
                let names = names.iter().map(|name| Value::atom(name.as_str()));
                std::iter::once(Value::atom("CAPABILITY")).chain(names).collect()
            }
            Self::PermanentFlags(all) => vec![Value::atom("PERMANENTFLAGS"), flags(all)],
            Self::ReadOnly => word("READ-ONLY"),
            Self::ReadWrite => word("READ-WRITE"),
            Self::TryCreate => word("TRYCREATE"),
            Self::UidNext(uid) => number("UIDNEXT", u64::from(*uid)),
            Self::UidValidity(validity) => number("UIDVALIDITY", u64::from(*validity)),
            Self::Unseen(first) => number("UNSEEN", u64::from(*first)),
            Self::HighestModSeq(change) => number("HIGHESTMODSEQ", *change),
            Self::NoModSeq => word("NOMODSEQ"),
            Self::Modified(set) => vec![Value::atom("MODIFIED"), Value::atom(set.to_string())],
            Self::Closed => word("CLOSED"),
            Self::AppendUid(validity, set) => {
                let mut values = number("APPENDUID", u64::from(*validity));
                values.push(Value::atom(set.to_string()));
                values
            }
            Self::CopyUid(validity, from, to) => {
                let mut values = number("COPYUID", u64::from(*validity));
                values.extend([Value::atom(from.to_string()), Value::atom(to.to_string())]);
                values
            }
            Self::UidNotSticky => word("UIDNOTSTICKY"),
            Self::MailboxId(id) => vec![Value::atom("MAILBOXID"), Value::List(vec![astring(id)])],
            Self::Word(name) => word(name),
            Self::Other(name, values) => {
                std::iter::once(Value::atom(name.as_str())).chain(values.iter().cloned()).collect()
            }
        }
    }
}
