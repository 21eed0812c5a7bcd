//! The arguments of a command or test, one after the other.

use super::shown;
use crate::error::{Position, ScriptError, ScriptFault};
use crate::syntax::{Argument, Test, Text, Value};

pub(crate) struct Reader<'a> {
    pub(crate) owner: &'a str,
    pub(crate) position: Position,
    arguments: &'a [Argument],
    tests: &'a [Test],
    /// Tests may follow.
    pub(crate) may_test: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(head: &'a Test) -> Self {
        Self {
            owner: &head.name,
            position: head.position,
            arguments: &head.arguments,
            tests: &head.tests,
            may_test: false,
        }
    }

    /// The next tag, if a tag is next: tags stand before all other arguments (RFC 5228, section 2.6.2).
    pub(crate) fn tag(&mut self) -> Option<(&'a str, Position)> {
        let (first, rest) = self.arguments.split_first()?;
        let Value::Tag(name) = &first.value else { return None };
        self.arguments = rest;
        Some((name, first.position))
    }

    fn next(&mut self, what: &str) -> Result<&'a Argument, ScriptError> {
        let Some((first, rest)) = self.arguments.split_first() else {
            let owner = self.owner.to_owned();
            return Err(ScriptFault::Missing { owner, what: what.to_owned() }.at(self.position));
        };
        self.arguments = rest;
        Ok(first)
    }

    fn wrong(argument: &Argument, what: &str) -> ScriptError {
        let found = shown(&argument.value);
        ScriptFault::Expected { expected: what.to_owned(), found }.at(argument.position)
    }

    pub(crate) fn number(&mut self, what: &str) -> Result<u64, ScriptError> {
        let argument = self.next(what)?;
        match argument.value {
            Value::Number(number) => Ok(number),
            _ => Err(Self::wrong(argument, &format!("{what}, a number"))),
        }
    }

    pub(crate) fn text(&mut self, what: &str) -> Result<&'a Text, ScriptError> {
        let argument = self.next(what)?;
        match &argument.value {
            Value::Text(text) => Ok(text),
            _ => Err(Self::wrong(argument, &format!("{what}, a string"))),
        }
    }

    /// A list, or a string alone, which is a list of one (RFC 5228, section 2.4.2.1).
    pub(crate) fn texts(&mut self, what: &str) -> Result<&'a [Text], ScriptError> {
        let argument = self.next(what)?;
        match &argument.value {
            Value::Text(text) => Ok(std::slice::from_ref(text)),
            Value::List(texts) => Ok(texts),
            _ => Err(Self::wrong(argument, &format!("{what}, a string or a list"))),
        }
    }

    /// Arguments that were not read yet.
    pub(crate) fn left(&self) -> usize {
        self.arguments.len()
    }

    /// Nothing is left over.
    pub(crate) fn end(&self) -> Result<(), ScriptError> {
        if let Some(argument) = self.arguments.first() {
            let fault = match &argument.value {
                Value::Tag(tag) => ScriptFault::UnknownTag { owner: self.owner.to_owned(), tag: tag.clone() },
                other => ScriptFault::Superfluous { owner: self.owner.to_owned(), what: shown(other) },
            };
            return Err(fault.at(argument.position));
        }
        match self.tests.first() {
            Some(test) if !self.may_test => {
                let fault =
                    ScriptFault::Superfluous { owner: self.owner.to_owned(), what: "a test".to_owned() };
                Err(fault.at(test.position))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn unknown_tag(&self, tag: &str, position: Position) -> ScriptError {
        ScriptFault::UnknownTag { owner: self.owner.to_owned(), tag: tag.to_owned() }.at(position)
    }
}

/// Sets what may be said once.
pub(crate) fn once<T>(
    slot: &mut Option<T>,
    value: T,
    tag: &str,
    position: Position,
) -> Result<(), ScriptError> {
    if slot.replace(value).is_some() {
        return Err(ScriptFault::Conflict(tag.to_owned()).at(position));
    }
    Ok(())
}
