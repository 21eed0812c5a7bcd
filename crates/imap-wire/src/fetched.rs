//! What FETCH answers.

use crate::argument::{Arguments, astring, date_time, flags};
use crate::command::{CommandFault, MessageData};
use crate::date::DateTime;
use crate::fetch::{Section, answered_section, part_numbers};
use crate::flag::Flag;
use crate::structure::{BodyStructure, Envelope};
use crate::value::Value;

/// An item of an answer, about one message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum FetchItem {
    Flags(Vec<Flag>),
    Uid(u32),
    InternalDate(DateTime),
    Size(u64),
    Envelope(Box<Envelope>),
    /// BODY, without extension data.
    Body(Box<BodyStructure>),
    BodyStructure(Box<BodyStructure>),
    ModSeq(u64),
    EmailId(String),
    ThreadId(Option<String>),
    SaveDate(Option<DateTime>),
    Preview(Option<Vec<u8>>),
    Rfc822(MessageData),
    Rfc822Header(MessageData),
    Rfc822Text(MessageData),
    /// A section, the octet that it begins at if it is partial, and its content.
    Section(Section, Option<u64>, MessageData),
    /// A decoded part, the octet that it begins at, and its content.
    Binary(Vec<u32>, Option<u64>, MessageData),
    BinarySize(Vec<u32>, u64),
    /// Any other item.
    Other(String, Value),
}

impl FetchItem {
    pub(crate) fn read_all(list: &mut Arguments<'_>) -> Result<Vec<Self>, CommandFault> {
        let mut items = Vec::new();
        while !list.is_empty() {
            items.push(Self::read(list)?);
        }
        Ok(items)
    }

    fn read(list: &mut Arguments<'_>) -> Result<Self, CommandFault> {
        let atom = list.atom()?;
        Ok(match atom.to_ascii_uppercase().as_str() {
            "FLAGS" => Self::Flags(list.list()?.all_flags()?),
            "UID" => Self::Uid(list.number32()?),
            "INTERNALDATE" => Self::InternalDate(date_time(list.next()?)?),
            "RFC822.SIZE" => Self::Size(list.number()?),
            "ENVELOPE" => Self::Envelope(Box::new(Envelope::read(list.next()?, list)?)),
            "BODY" => Self::Body(Box::new(BodyStructure::read(list.next()?, list)?)),
            "BODYSTRUCTURE" => Self::BodyStructure(Box::new(BodyStructure::read(list.next()?, list)?)),
            "MODSEQ" => Self::ModSeq(list.list()?.number()?),
            "EMAILID" => Self::EmailId(list.list()?.text()?),
            "THREADID" => match list.next()? {
                value if value.is_nil() => Self::ThreadId(None),
                value => {
                    let values = value.list().ok_or(CommandFault::Syntax)?;
                    Self::ThreadId(Some(Arguments::new(values, list.names).text()?))
                }
            },
            "SAVEDATE" => match list.next()? {
                value if value.is_nil() => Self::SaveDate(None),
                value => Self::SaveDate(Some(date_time(value)?)),
            },
            "PREVIEW" => match list.next()? {
                value if value.is_nil() => Self::Preview(None),
                value => Self::Preview(Some(value.bytes().ok_or(CommandFault::Syntax)?.to_vec())),
            },
            "RFC822" => Self::Rfc822(MessageData::read(list.next()?)?),
            "RFC822.HEADER" => Self::Rfc822Header(MessageData::read(list.next()?)?),
            "RFC822.TEXT" => Self::Rfc822Text(MessageData::read(list.next()?)?),
            upper if upper.starts_with("BINARY.SIZE[") => {
                let section = format!("BINARY[{}", atom.get("BINARY.SIZE[".len()..).unwrap_or_default());
                let (_, section, _) = answered_section(&section).ok_or(CommandFault::Section)?;
                Self::BinarySize(section.part, list.number()?)
            }
            _ => match answered_section(&atom) {
                Some((true, section, offset)) => {
                    Self::Binary(section.part, offset, MessageData::read(list.next()?)?)
                }
                Some((false, section, offset)) => {
                    Self::Section(section, offset, MessageData::read(list.next()?)?)
                }
                None => Self::Other(atom, list.next()?.clone()),
            },
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<Value>) {
        let word = |text: &str| Value::atom(text);
        let time = |time: &DateTime| Value::text_of(&time.to_string());
        let at = |offset: &Option<u64>| offset.map_or_else(String::new, |offset| format!("<{offset}>"));
        match self {
            Self::Flags(all) => out.extend([word("FLAGS"), flags(all)]),
            Self::Uid(uid) => out.extend([word("UID"), word(&uid.to_string())]),
            Self::InternalDate(date) => out.extend([word("INTERNALDATE"), time(date)]),
            Self::Size(bytes) => out.extend([word("RFC822.SIZE"), word(&bytes.to_string())]),
            Self::Envelope(envelope) => out.extend([word("ENVELOPE"), envelope.value()]),
            Self::Body(body) => out.extend([word("BODY"), body.value()]),
            Self::BodyStructure(body) => out.extend([word("BODYSTRUCTURE"), body.value()]),
            Self::ModSeq(change) => {
                out.extend([word("MODSEQ"), Value::List(vec![word(&change.to_string())])]);
            }
            Self::EmailId(id) => out.extend([word("EMAILID"), Value::List(vec![astring(id)])]),
            Self::ThreadId(None) => out.extend([word("THREADID"), Value::nil()]),
            Self::ThreadId(Some(id)) => out.extend([word("THREADID"), Value::List(vec![astring(id)])]),
            Self::SaveDate(date) => {
                out.extend([word("SAVEDATE"), date.as_ref().map_or_else(Value::nil, time)]);
            }
            Self::Preview(text) => out.extend([word("PREVIEW"), Value::nstring(text.as_deref())]),
            Self::Rfc822(data) => out.extend([word("RFC822"), data.value()]),
            Self::Rfc822Header(data) => out.extend([word("RFC822.HEADER"), data.value()]),
            Self::Rfc822Text(data) => out.extend([word("RFC822.TEXT"), data.value()]),
            Self::Section(section, offset, data) => {
                out.extend([word(&format!("BODY[{section}]{}", at(offset))), data.value()]);
            }
            Self::Binary(part, offset, data) => {
                let name = format!("BINARY[{}]{}", part_numbers(part), at(offset));
                out.extend([word(&name), data.value()]);
            }
            Self::BinarySize(part, bytes) => {
                let name = format!("BINARY.SIZE[{}]", part_numbers(part));
                out.extend([word(&name), word(&bytes.to_string())]);
            }
            Self::Other(name, value) => out.extend([word(name), value.clone()]),
        }
    }
}
