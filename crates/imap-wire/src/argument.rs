//! Reads values one by one.

use crate::command::CommandFault;
use crate::date::{Date, DateTime};
use crate::flag::{Flag, is_atom_byte};
use crate::mailbox::{MailboxName, NameEncoding};
use crate::set::SequenceSet;
use crate::value::Value;

/// The values that are left.
#[derive(Clone, Debug)]
pub(crate) struct Arguments<'a> {
    rest: std::slice::Iter<'a, Value>,
    pub(crate) names: NameEncoding,
}

type Outcome<T> = Result<T, CommandFault>;

impl<'a> Arguments<'a> {
    pub(crate) fn new(values: &'a [Value], names: NameEncoding) -> Self {
        Self { rest: values.iter(), names }
    }

    pub(crate) fn peek(&self) -> Option<&'a Value> {
        self.rest.as_slice().first()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.as_slice().is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.rest.as_slice().len()
    }

    pub(crate) fn next(&mut self) -> Outcome<&'a Value> {
        self.rest.next().ok_or(CommandFault::Missing)
    }

    pub(crate) fn end(&self) -> Outcome<()> {
        if self.is_empty() { Ok(()) } else { Err(CommandFault::TooMany) }
    }

    /// Takes this word, if it is the next.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let is_next = self.peek().is_some_and(|value| value.is(word));
        if is_next {
            self.rest.next();
        }
        is_next
    }

    pub(crate) fn word(&mut self) -> Outcome<String> {
        let word = self.next()?.as_atom().ok_or(CommandFault::Syntax)?;
        Ok(word.to_ascii_uppercase())
    }

    pub(crate) fn atom(&mut self) -> Outcome<String> {
        let atom = self.next()?.as_atom().ok_or(CommandFault::Syntax)?;
        Ok(atom.to_owned())
    }

    pub(crate) fn bytes(&mut self) -> Outcome<&'a [u8]> {
        self.next()?.bytes().ok_or(CommandFault::Syntax)
    }

    /// An atom or a string, as text.
    pub(crate) fn text(&mut self) -> Outcome<String> {
        text(self.next()?)
    }

    pub(crate) fn mailbox(&mut self) -> Outcome<MailboxName> {
        MailboxName::decode(self.bytes()?, self.names).map_err(|_| CommandFault::Mailbox)
    }

    pub(crate) fn list(&mut self) -> Outcome<Self> {
        let values = self.next()?.list().ok_or(CommandFault::Syntax)?;
        Ok(Self::new(values, self.names))
    }

    /// A list, or a value alone.
    pub(crate) fn list_or_one(&mut self) -> Outcome<Self> {
        let value = self.next()?;
        let values = value.list().unwrap_or_else(|| std::slice::from_ref(value));
        Ok(Self::new(values, self.names))
    }

    pub(crate) fn set(&mut self) -> Outcome<SequenceSet> {
        SequenceSet::parse(&self.atom()?).map_err(|_| CommandFault::Set)
    }

    pub(crate) fn number(&mut self) -> Outcome<u64> {
        self.next()?.number().ok_or(CommandFault::Number)
    }

    pub(crate) fn number32(&mut self) -> Outcome<u32> {
        u32::try_from(self.number()?).map_err(|_| CommandFault::Number)
    }

    pub(crate) fn date(&mut self) -> Outcome<Date> {
        Date::parse(&self.text()?).map_err(|_| CommandFault::Date)
    }

    pub(crate) fn flags(&mut self) -> Outcome<Vec<Flag>> {
        let mut list = self.list_or_one()?;
        list.all_flags()
    }

    pub(crate) fn all_flags(&mut self) -> Outcome<Vec<Flag>> {
        let mut flags = Vec::new();
        while !self.is_empty() {
            let flag = self.next()?.as_atom().and_then(Flag::new).ok_or(CommandFault::Flag)?;
            flags.push(flag);
        }
        Ok(flags)
    }
}

pub(crate) fn text(value: &Value) -> Outcome<String> {
    let bytes = value.bytes().ok_or(CommandFault::Syntax)?;
    let text = std::str::from_utf8(bytes).map_err(|_| CommandFault::NotText)?;
    Ok(text.to_owned())
}

pub(crate) fn date_time(value: &Value) -> Outcome<DateTime> {
    DateTime::parse(&text(value)?).map_err(|_| CommandFault::Date)
}

/// A string as an atom where it can be one.
pub(crate) fn astring(text: &str) -> Value {
    let is_atom = !text.is_empty()
        && text.len() <= 256
        && text.bytes().all(is_atom_byte)
        && !text.eq_ignore_ascii_case("NIL")
        && !text.contains('[');
    if is_atom { Value::atom(text) } else { Value::text_of(text) }
}

pub(crate) fn mailbox(name: &MailboxName, names: NameEncoding) -> Value {
    astring(&name.encode(names))
}

pub(crate) fn flags(flags: &[Flag]) -> Value {
    Value::List(flags.iter().map(|flag| Value::atom(flag.as_str())).collect())
}

pub(crate) fn atoms(words: &[String]) -> Vec<Value> {
    words.iter().map(|word| Value::atom(word.as_str())).collect()
}
