//! Filters as text (RFC 4515).

use std::fmt;

use scrinium_line_wire::Cursor;
use thiserror::Error;

use crate::filter::{Extensible, Filter, Identifier, Subject, Substrings};
use crate::limits::{Budget, Fault, MessageLimits};
use crate::text::{hex_byte, skip_spaces, write_escaped};

/// Why a text is no filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("at byte {at} of the filter: {what}")]
pub struct FilterError {
    /// Bytes before the place.
    pub at: usize,
    /// What is wrong there.
    pub what: FilterFault,
}

/// What is wrong with a filter's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FilterFault {
    /// A filter is not where one must be.
    #[error("a filter begins with \"(\"")]
    Start,
    /// A filter does not end.
    #[error("a \")\" is missing")]
    End,
    /// Text follows the filter.
    #[error("text follows the filter")]
    Trailing,
    /// The name of an attribute or rule is missing, or no such name.
    #[error("the name of an attribute or rule has letters, digits, \"-\", \".\" and \";\"")]
    Name,
    /// There is no `=`, `~=`, `>=`, `<=` or `:=`.
    #[error("a comparison is one of = ~= >= <= :=")]
    Comparison,
    /// A value holds what has to be escaped, or an escape that is not valid.
    #[error("a value has * ( ) and \\ as \\2a \\28 \\29 and \\5c")]
    Value,
    /// A limit was met.
    #[error(transparent)]
    Limit(Fault),
}

impl Filter {
    /// Reads a filter's text. Spaces between filters are left out, and a single comparison may come without its parentheses.
    ///
    /// # Errors
    /// [`FilterError`]
    pub fn parse(text: &str, limits: MessageLimits) -> Result<Self, FilterError> {
        let mut reader = TextReader { cursor: Cursor::new(text.as_bytes()), budget: Budget::new(limits) };
        reader.whole().map_err(|what| FilterError { at: reader.cursor.at(), what })
    }
}

struct TextReader<'a> {
    cursor: Cursor<'a>,
    budget: Budget,
}

impl TextReader<'_> {
    fn whole(&mut self) -> Result<Filter, FilterFault> {
        skip_spaces(&mut self.cursor);
        let filter = if self.cursor.peek() == Some(b'(') {
            self.filter(0)?
        } else {
            self.budget.take_filter(0).map_err(FilterFault::Limit)?;
            self.item()?
        };
        skip_spaces(&mut self.cursor);
        if self.cursor.is_empty() { Ok(filter) } else { Err(FilterFault::Trailing) }
    }

    fn filter(&mut self, depth: usize) -> Result<Filter, FilterFault> {
        self.budget.take_filter(depth).map_err(FilterFault::Limit)?;
        if !self.cursor.take(b'(') {
            return Err(FilterFault::Start);
        }
        skip_spaces(&mut self.cursor);
        let filter = match self.cursor.peek() {
            Some(b'&') => Filter::And(self.list(depth + 1)?),
            Some(b'|') => Filter::Or(self.list(depth + 1)?),
            Some(b'!') => {
                self.cursor.next();
                skip_spaces(&mut self.cursor);
                let inside = self.filter(depth + 1)?;
                skip_spaces(&mut self.cursor);
                Filter::Not(Box::new(inside))
            }
            _ => self.item()?,
        };
        if self.cursor.take(b')') { Ok(filter) } else { Err(FilterFault::End) }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Filter>, FilterFault> {
        self.cursor.next();
        let mut list = Vec::new();
        loop {
            skip_spaces(&mut self.cursor);
            if self.cursor.peek() != Some(b'(') {
                return Ok(list);
            }
            list.push(self.filter(depth)?);
        }
    }

    fn item(&mut self) -> Result<Filter, FilterFault> {
        let attribute = self.identifier();
        match self.cursor.next() {
            Some(b'=') => self.equal(attribute.ok_or(FilterFault::Name)?),
            Some(b'~') => self.compared(attribute, Filter::Approximate),
            Some(b'>') => self.compared(attribute, Filter::GreaterOrEqual),
            Some(b'<') => self.compared(attribute, Filter::LessOrEqual),
            Some(b':') => self.extensible(attribute),
            Some(_) if attribute.is_none() => Err(FilterFault::Name),
            _ => Err(FilterFault::Comparison),
        }
    }

    fn identifier(&mut self) -> Option<Identifier> {
        let taken = self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || b"-.;_".contains(&byte));
        std::str::from_utf8(taken).ok().and_then(Identifier::parse)
    }

    fn compared(
        &mut self,
        attribute: Option<Identifier>,
        make: impl FnOnce(Identifier, Vec<u8>) -> Filter,
    ) -> Result<Filter, FilterFault> {
        let attribute = attribute.ok_or(FilterFault::Name)?;
        if !self.cursor.take(b'=') {
            return Err(FilterFault::Comparison);
        }
        Ok(make(attribute, self.value()?))
    }

    /// Behind `attribute=`: a value, parts of one with `*` between, or `*` alone.
    fn equal(&mut self, attribute: Identifier) -> Result<Filter, FilterFault> {
        let initial = self.value()?;
        if self.cursor.peek() != Some(b'*') {
            return Ok(Filter::Equal(attribute, initial));
        }
        let mut parts = Vec::new();
        while self.cursor.take(b'*') {
            self.budget.take_item().map_err(FilterFault::Limit)?;
            parts.push(self.value()?);
        }
        let last = parts.pop();
        Ok(Substrings::filter(attribute, Some(initial), parts, last))
    }

    /// Behind `attribute:`, or a `:` without one.
    fn extensible(&mut self, attribute: Option<Identifier>) -> Result<Filter, FilterFault> {
        let (mut with_name, mut rule) = (false, None);
        if !self.cursor.take(b'=') {
            let mut name = self.identifier().ok_or(FilterFault::Name)?;
            let mut is_behind = true;
            if name.as_str().eq_ignore_ascii_case("dn") {
                with_name = true;
                is_behind = self.cursor.take(b':') && self.cursor.peek() != Some(b'=');
                if is_behind {
                    name = self.identifier().ok_or(FilterFault::Name)?;
                }
            }
            if is_behind {
                rule = Some(name);
                if !self.cursor.take(b':') {
                    return Err(FilterFault::Comparison);
                }
            }
            if !self.cursor.take(b'=') {
                return Err(FilterFault::Comparison);
            }
        }
        let subject = Subject::new(attribute, rule).ok_or(FilterFault::Name)?;
        Ok(Filter::Extensible(Extensible { subject, value: self.value()?, with_name }))
    }

    /// A value up to what ends it: `)`, `*`, or the end of the text.
    fn value(&mut self) -> Result<Vec<u8>, FilterFault> {
        let mut value = Vec::new();
        loop {
            value.extend_from_slice(self.cursor.take_while(|byte| !b"()*\\\0".contains(&byte)));
            match self.cursor.peek() {
                Some(b'\\') => {
                    self.cursor.next();
                    value.push(hex_byte(&mut self.cursor).ok_or(FilterFault::Value)?);
                }
                Some(b'(' | 0) => return Err(FilterFault::Value),
                _ => return Ok(value),
            }
        }
    }
}

/// A value in a filter's text.
struct Value<'a>(&'a [u8]);

impl fmt::Display for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // RFC 4515, section 3, and control characters, which would break a line of a log.
        write_escaped(formatter, self.0, '\\', |character| {
            "*()\\".contains(character) || character.is_control()
        })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(")?;
        match self {
            Self::And(list) => write_list(formatter, '&', list)?,
            Self::Or(list) => write_list(formatter, '|', list)?,
            Self::Not(filter) => write!(formatter, "!{filter}")?,
            Self::Equal(attribute, value) => write!(formatter, "{attribute}={}", Value(value))?,
            Self::Substrings(attribute, parts) => {
                write!(formatter, "{attribute}={}*", Value(parts.initial().unwrap_or_default()))?;
                parts.middle().try_for_each(|part| write!(formatter, "{}*", Value(part)))?;
                write!(formatter, "{}", Value(parts.last().unwrap_or_default()))?;
            }
            Self::GreaterOrEqual(attribute, value) => write!(formatter, "{attribute}>={}", Value(value))?,
            Self::LessOrEqual(attribute, value) => write!(formatter, "{attribute}<={}", Value(value))?,
            Self::Present(attribute) => write!(formatter, "{attribute}=*")?,
            Self::Approximate(attribute, value) => write!(formatter, "{attribute}~={}", Value(value))?,
            Self::Extensible(extensible) => write_extensible(formatter, extensible)?,
        }
        formatter.write_str(")")
    }
}

fn write_list(formatter: &mut fmt::Formatter<'_>, sign: char, list: &[Filter]) -> fmt::Result {
    write!(formatter, "{sign}")?;
    list.iter().try_for_each(|filter| write!(formatter, "{filter}"))
}

fn write_extensible(formatter: &mut fmt::Formatter<'_>, extensible: &Extensible) -> fmt::Result {
    if let Some(attribute) = extensible.subject.attribute() {
        write!(formatter, "{attribute}")?;
    }
    if extensible.with_name {
        formatter.write_str(":dn")?;
    }
    if let Some(rule) = extensible.subject.rule() {
        write!(formatter, ":{rule}")?;
    }
    write!(formatter, ":={}", Value(&extensible.value))
}
