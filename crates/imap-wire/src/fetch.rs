//! What FETCH asks for (RFC 9051, section 6.4.5, with RFC 7162, 8474, 8514, 8970, 9394).

use std::fmt;

use crate::argument::Arguments;
use crate::command::CommandFault;
use crate::flag::is_atom_byte;
use crate::frame::Part;
use crate::mailbox::NameEncoding;
use crate::value::{Value, ValueLimits, parse_values};

/// Numbers of parts in parts.
const PARTS_MAX: usize = 32;

/// Names of headers in a section.
const HEADERS_MAX: usize = 1000;

/// Some octets of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The first octet, from 0.
    pub offset: u64,
    /// How many at most, not 0.
    pub count: u64,
}

/// What of a part is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionText {
    /// The header of the message.
    Header,
    /// Header fields with these names, as they were asked for, or those without them (`true`).
    HeaderFields(Vec<String>, bool),
    /// The body of the message.
    Text,
    /// The header of the part itself.
    Mime,
}

/// A section of a message: `1.2.HEADER`; nothing is the whole message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Numbers of parts, from 1.
    pub part: Vec<u32>,
    /// What of it.
    pub text: Option<SectionText>,
}

/// An item that FETCH asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum FetchAttribute {
    Envelope,
    Flags,
    InternalDate,
    Rfc822,
    Rfc822Header,
    Rfc822Size,
    Rfc822Text,
    /// BODY: BODYSTRUCTURE without its extension data.
    Body,
    BodyStructure,
    Uid,
    ModSeq,
    EmailId,
    ThreadId,
    SaveDate,
    /// PREVIEW, and whether it may be left out where it is not at hand.
    Preview(bool),
    /// A section as it is, which marks the message as seen unless `peek`.
    BodySection {
        peek: bool,
        section: Section,
        partial: Option<Partial>,
    },
    /// A part, decoded (RFC 3516).
    Binary {
        peek: bool,
        part: Vec<u32>,
        partial: Option<Partial>,
    },
    BinarySize(Vec<u32>),
}

/// What FETCH says about its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchModifiers {
    /// CHANGEDSINCE (RFC 7162).
    pub changed_since: Option<u64>,
    /// VANISHED (RFC 7162).
    pub vanished: bool,
    /// PARTIAL: from and to, counted from the last one where they are negative (RFC 9394).
    pub partial: Option<(i64, i64)>,
}

impl Section {
    fn parse(text: &str) -> Result<Self, CommandFault> {
        let mut section = Self::default();
        let mut rest = text;
        while let Some(digit) = rest.bytes().next().filter(u8::is_ascii_digit) {
            let end = rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
            let (number, after) = rest.split_at(end);
            let number: u32 = number.parse().map_err(|_| CommandFault::Section)?;
            if number == 0 || digit == b'0' || section.part.len() >= PARTS_MAX {
                return Err(CommandFault::Section);
            }
            section.part.push(number);
            rest = match after.strip_prefix('.') {
                Some("") => return Err(CommandFault::Section),
                Some(after) => after,
                None if after.is_empty() => return Ok(section),
                None => return Err(CommandFault::Section),
            };
        }
        section.text = match rest.to_ascii_uppercase().as_str() {
            "" => None,
            "HEADER" => Some(SectionText::Header),
            "TEXT" => Some(SectionText::Text),
            "MIME" if !section.part.is_empty() => Some(SectionText::Mime),
            _ => Some(header_fields(rest)?),
        };
        Ok(section)
    }
}

fn header_fields(text: &str) -> Result<SectionText, CommandFault> {
    let (name, list) = text.split_once([' ', '(']).ok_or(CommandFault::Section)?;
    let excluded = match name.to_ascii_uppercase().as_str() {
        "HEADER.FIELDS" => false,
        "HEADER.FIELDS.NOT" => true,
        _ => return Err(CommandFault::Section),
    };
    let list = list
        .trim_start()
        .trim_start_matches('(')
        .trim_end()
        .strip_suffix(')')
        .ok_or(CommandFault::Section)?;
    let limits = ValueLimits { depth: 0, values: HEADERS_MAX };
    let values =
        parse_values(&[Part::Text(list.as_bytes().to_vec())], limits).map_err(|_| CommandFault::Section)?;
    let names: Option<Vec<String>> = values.iter().map(Value::text).collect();
    let names = names.filter(|names| names.iter().all(|name| is_header_name(name)) && !names.is_empty());
    names.map(|names| SectionText::HeaderFields(names, excluded)).ok_or(CommandFault::Section)
}

/// Names are printable and have no colon (RFC 5322, section 2.2).
fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'!'..=b'~') && byte != b':')
}

impl fmt::Display for Section {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dotted: Vec<String> = self.part.iter().map(u32::to_string).collect();
        out.write_str(&dotted.join("."))?;
        if self.text.is_some() && !self.part.is_empty() {
            out.write_str(".")?;
        }
        match &self.text {
            None => Ok(()),
            Some(SectionText::Header) => out.write_str("HEADER"),
            Some(SectionText::Text) => out.write_str("TEXT"),
            Some(SectionText::Mime) => out.write_str("MIME"),
            Some(SectionText::HeaderFields(names, excluded)) => {
                let name = |name: &String| {
                    let is_atom = name.bytes().all(is_atom_byte) && !name.contains('[');
                    let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
                    if is_atom { name.clone() } else { format!("\"{escaped}\"") }
                };
                let names: Vec<String> = names.iter().map(name).collect();
                write!(out, "HEADER.FIELDS{} ({})", if *excluded { ".NOT" } else { "" }, names.join(" "))
            }
        }
    }
}

/// The name, what stands in brackets behind it, and what stands behind those.
fn split(atom: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = atom.split_once('[')?;
    let (section, rest) = rest.rsplit_once(']')?;
    Some((name, section, rest))
}

/// `<0.100>`; `<0>` in an answer.
pub(crate) fn partial(text: &str) -> Option<(u64, Option<u64>)> {
    let inside = text.strip_prefix('<')?.strip_suffix('>')?;
    let number = |digits: &str| {
        let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if valid { digits.parse::<u64>().ok() } else { None }
    };
    match inside.split_once('.') {
        Some((offset, count)) => Some((number(offset)?, Some(number(count).filter(|count| *count > 0)?))),
        None => Some((number(inside)?, None)),
    }
}

/// The section and the octet that it begins at, of an item in an answer: `BODY[1.TEXT]<0>`. Whether it is `BINARY`.
pub(crate) fn answered_section(atom: &str) -> Option<(bool, Section, Option<u64>)> {
    let (name, section, rest) = split(atom)?;
    let offset = match rest {
        "" => None,
        rest => Some(partial(rest)?.0),
    };
    let is_binary = name.eq_ignore_ascii_case("BINARY");
    let known = is_binary || name.eq_ignore_ascii_case("BODY");
    let section = Section::parse(section).ok().filter(|section| !is_binary || section.text.is_none())?;
    known.then_some((is_binary, section, offset))
}

pub(crate) fn part_numbers(part: &[u32]) -> String {
    part.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

impl FetchAttribute {
    fn parse(atom: &str) -> Result<Self, CommandFault> {
        let upper = atom.to_ascii_uppercase();
        let plain = match upper.as_str() {
            "ENVELOPE" => Some(Self::Envelope),
            "FLAGS" => Some(Self::Flags),
            "INTERNALDATE" => Some(Self::InternalDate),
            "RFC822" => Some(Self::Rfc822),
            "RFC822.HEADER" => Some(Self::Rfc822Header),
            "RFC822.SIZE" => Some(Self::Rfc822Size),
            "RFC822.TEXT" => Some(Self::Rfc822Text),
            "BODY" => Some(Self::Body),
            "BODYSTRUCTURE" => Some(Self::BodyStructure),
            "UID" => Some(Self::Uid),
            "MODSEQ" => Some(Self::ModSeq),
            "EMAILID" => Some(Self::EmailId),
            "THREADID" => Some(Self::ThreadId),
            "SAVEDATE" => Some(Self::SaveDate),
            "PREVIEW" => Some(Self::Preview(false)),
            _ => None,
        };
        if let Some(plain) = plain {
            return Ok(plain);
        }
        let (name, section, rest) = split(atom).ok_or(CommandFault::Unknown)?;
        let section = Section::parse(section)?;
        let partial = match rest {
            "" => None,
            rest => match partial(rest) {
                Some((offset, Some(count))) => Some(Partial { offset, count }),
                _ => return Err(CommandFault::Section),
            },
        };
        let has_text = section.text.is_some();
        match name.to_ascii_uppercase().as_str() {
            "BODY" => Ok(Self::BodySection { peek: false, section, partial }),
            "BODY.PEEK" => Ok(Self::BodySection { peek: true, section, partial }),
            "BINARY" if !has_text => Ok(Self::Binary { peek: false, part: section.part, partial }),
            "BINARY.PEEK" if !has_text => Ok(Self::Binary { peek: true, part: section.part, partial }),
            "BINARY.SIZE" if !has_text && partial.is_none() => Ok(Self::BinarySize(section.part)),
            _ => Err(CommandFault::Section),
        }
    }

    /// Reads a list of items.
    ///
    /// # Errors
    /// [`CommandFault`]
    pub fn parse_list(value: &Value) -> Result<Vec<Self>, CommandFault> {
        Self::read_all(&mut Arguments::new(std::slice::from_ref(value), NameEncoding::Utf8))
    }

    /// Reads a list of items, one item, or a macro. An item that comes twice is there once.
    pub(crate) fn read_all(arguments: &mut Arguments<'_>) -> Result<Vec<Self>, CommandFault> {
        let fast = [Self::Flags, Self::InternalDate, Self::Rfc822Size];
        let more: &[Self] = match arguments.peek() {
            Some(value) if value.is("FAST") => &[],
            Some(value) if value.is("ALL") => &[Self::Envelope],
            Some(value) if value.is("FULL") => &[Self::Envelope, Self::Body],
            _ => {
                let mut list = arguments.list_or_one()?;
                let mut items: Vec<Self> = Vec::with_capacity(list.len().min(64));
                while !list.is_empty() {
                    let mut item = Self::parse(&list.atom()?)?;
                    if item == Self::Preview(false) && list.peek().is_some_and(|value| value.list().is_some())
                    {
                        let mut options = list.list()?;
                        item = Self::Preview(options.take("LAZY"));
                        options.end()?;
                    }
                    if items.len() >= 1000 {
                        return Err(CommandFault::TooMany);
                    }
                    if !items.contains(&item) {
                        items.push(item);
                    }
                }
                return if items.is_empty() { Err(CommandFault::Missing) } else { Ok(items) };
            }
        };
        arguments.next()?;
        Ok(fast.into_iter().chain(more.iter().cloned()).collect())
    }

    pub(crate) fn write(&self, out: &mut Vec<Value>) {
        out.push(Value::atom(self.to_string()));
        if *self == Self::Preview(true) {
            out.push(Value::List(vec![Value::atom("LAZY")]));
        }
    }
}

impl fmt::Display for FetchAttribute {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |partial: &Option<Partial>| {
            partial.map_or_else(String::new, |Partial { offset, count }| format!("<{offset}.{count}>"))
        };
        let peeks = |peek: bool| if peek { ".PEEK" } else { "" };
        match self {
            Self::Envelope => out.write_str("ENVELOPE"),
            Self::Flags => out.write_str("FLAGS"),
            Self::InternalDate => out.write_str("INTERNALDATE"),
            Self::Rfc822 => out.write_str("RFC822"),
            Self::Rfc822Header => out.write_str("RFC822.HEADER"),
            Self::Rfc822Size => out.write_str("RFC822.SIZE"),
            Self::Rfc822Text => out.write_str("RFC822.TEXT"),
            Self::Body => out.write_str("BODY"),
            Self::BodyStructure => out.write_str("BODYSTRUCTURE"),
            Self::Uid => out.write_str("UID"),
            Self::ModSeq => out.write_str("MODSEQ"),
            Self::EmailId => out.write_str("EMAILID"),
            Self::ThreadId => out.write_str("THREADID"),
            Self::SaveDate => out.write_str("SAVEDATE"),
            Self::Preview(_) => out.write_str("PREVIEW"),
            Self::BodySection { peek, section, partial } => {
                write!(out, "BODY{}[{section}]{}", peeks(*peek), of(partial))
            }
            Self::Binary { peek, part, partial } => {
                write!(out, "BINARY{}[{}]{}", peeks(*peek), part_numbers(part), of(partial))
            }
            Self::BinarySize(part) => write!(out, "BINARY.SIZE[{}]", part_numbers(part)),
        }
    }
}

impl FetchModifiers {
    pub(crate) fn read(arguments: &mut Arguments<'_>) -> Result<Self, CommandFault> {
        let mut modifiers = Self::default();
        if arguments.is_empty() {
            return Ok(modifiers);
        }
        let mut list = arguments.list()?;
        while !list.is_empty() {
            match list.word()?.as_str() {
                "CHANGEDSINCE" => modifiers.changed_since = Some(list.number()?),
                "VANISHED" => modifiers.vanished = true,
                "PARTIAL" => modifiers.partial = Some(partial_range(&list.atom()?)?),
                _ => return Err(CommandFault::Unknown),
            }
        }
        Ok(modifiers)
    }

    pub(crate) fn write(&self, out: &mut Vec<Value>) {
        let mut list = Vec::new();
        if let Some(change) = self.changed_since {
            list.extend([Value::atom("CHANGEDSINCE"), Value::atom(change.to_string())]);
        }
        if self.vanished {
            list.push(Value::atom("VANISHED"));
        }
        if let Some((from, to)) = self.partial {
            list.extend([Value::atom("PARTIAL"), Value::atom(format!("{from}:{to}"))]);
        }
        if !list.is_empty() {
            out.push(Value::List(list));
        }
    }
}

/// `1:100` or `-1:-100`: numbers of results, not 0, of one sign (RFC 9394).
pub(crate) fn partial_range(text: &str) -> Result<(i64, i64), CommandFault> {
    let (from, to) = text.split_once(':').ok_or(CommandFault::Number)?;
    let number = |text: &str| {
        text.parse::<i64>().ok().filter(|number| *number != 0 && number.unsigned_abs() <= u64::from(u32::MAX))
    };
    match (number(from), number(to)) {
        (Some(from), Some(to)) if (from > 0) == (to > 0) => Ok((from, to)),
        _ => Err(CommandFault::Number),
    }
}
