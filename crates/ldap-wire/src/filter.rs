//! Filters of searches as trees (RFC 4511, section 4.5.1.7), and on the wire.

use std::fmt;

use crate::ber::{Reader, Writer, boolean, context, context_constructed, text};
use crate::limits::{Budget, Fault};
use crate::operation_write::write_true;

/// The name of an attribute, perhaps with options, or of a matching rule: `cn;lang-de`, `2.5.4.3`, `caseIgnoreMatch`
/// (RFC 4512, sections 1.4 and 2.5). It holds letters, digits and `-`, `.`, `;`, `_` alone, so that it ends nothing early
/// in a filter's text, a name or a URL.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identifier(String);

impl Identifier {
    /// The longest one, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Checks a text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_valid = (1..=Self::MAX_BYTES).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.;_".contains(&byte))
            && !text.starts_with([';', '-', '.']);
        is_valid.then(|| Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn read(contents: &[u8]) -> Result<Self, Fault> {
        Self::parse(&text(contents)?).ok_or(Fault::Value("the name of an attribute or of a rule"))
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Identifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

/// What entries a search is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of these; without any, every entry (RFC 4526).
    And(Vec<Filter>),
    /// One of these; without any, no entry (RFC 4526).
    Or(Vec<Filter>),
    /// Not this.
    Not(Box<Filter>),
    /// A value equals this one.
    Equal(Identifier, Vec<u8>),
    /// A value holds these parts, in this order.
    Substrings(Identifier, Substrings),
    /// A value is this one or behind it.
    GreaterOrEqual(Identifier, Vec<u8>),
    /// A value is this one or before it.
    LessOrEqual(Identifier, Vec<u8>),
    /// The attribute has a value.
    Present(Identifier),
    /// A value is about this one.
    Approximate(Identifier, Vec<u8>),
    /// A value matches by a rule that is named.
    Extensible(Extensible),
}

/// Parts of a value. There is at least one part, and none is empty: [`Substrings::filter`] sees to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substrings {
    initial: Option<Vec<u8>>,
    middle: Vec<Vec<u8>>,
    last: Option<Vec<u8>>,
}

impl Substrings {
    /// A filter for values that begin with `initial`, hold the `middle` parts behind it, and end with `last`.
    ///
    /// Empty parts are left out, since every value holds them; if nothing is left, the attribute has to be present. Address
    /// books send such filters when nothing was typed.
    #[must_use]
    pub fn filter(
        attribute: Identifier,
        initial: Option<Vec<u8>>,
        middle: Vec<Vec<u8>>,
        last: Option<Vec<u8>>,
    ) -> Filter {
        let filled = |part: &Vec<u8>| !part.is_empty();
        let initial = initial.filter(filled);
        let last = last.filter(filled);
        let middle: Vec<Vec<u8>> = middle.into_iter().filter(filled).collect();
        if initial.is_none() && middle.is_empty() && last.is_none() {
            return Filter::Present(attribute);
        }
        Filter::Substrings(attribute, Self { initial, middle, last })
    }

    /// What a value begins with.
    #[must_use]
    pub fn initial(&self) -> Option<&[u8]> {
        self.initial.as_deref()
    }

    /// What it holds behind that, in this order.
    pub fn middle(&self) -> impl Iterator<Item = &[u8]> {
        self.middle.iter().map(Vec::as_slice)
    }

    /// What it ends with.
    #[must_use]
    pub fn last(&self) -> Option<&[u8]> {
        self.last.as_deref()
    }
}

/// A match by a rule that is named (section 4.5.1.7.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extensible {
    /// What is compared, and how.
    pub subject: Subject,
    /// The value to compare with.
    pub value: Vec<u8>,
    /// Whether the values in the entry's name count, too.
    pub with_name: bool,
}

/// What an extensible match compares, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// This attribute, by its own rule for equality.
    Attribute(Identifier),
    /// All attributes that the rule can compare.
    Rule(Identifier),
    /// This attribute by this rule.
    Both {
        /// The attribute.
        attribute: Identifier,
        /// The rule.
        rule: Identifier,
    },
}

impl Subject {
    pub(crate) fn new(attribute: Option<Identifier>, rule: Option<Identifier>) -> Option<Self> {
        // In a filter's text, ":dn" asks for the values in the entry's name.
        if rule.as_ref().is_some_and(|rule| rule.as_str().eq_ignore_ascii_case("dn")) {
            return None;
        }
        match (attribute, rule) {
            (Some(attribute), Some(rule)) => Some(Self::Both { attribute, rule }),
            (Some(attribute), None) => Some(Self::Attribute(attribute)),
            (None, Some(rule)) => Some(Self::Rule(rule)),
            (None, None) => None,
        }
    }

    /// The attribute, if one is named.
    #[must_use]
    pub fn attribute(&self) -> Option<&Identifier> {
        match self {
            Self::Attribute(attribute) | Self::Both { attribute, .. } => Some(attribute),
            Self::Rule(_) => None,
        }
    }

    /// The rule, if one is named.
    #[must_use]
    pub fn rule(&self) -> Option<&Identifier> {
        match self {
            Self::Rule(rule) | Self::Both { rule, .. } => Some(rule),
            Self::Attribute(_) => None,
        }
    }
}

mod tags {
    use super::{context, context_constructed};

    pub(super) const AND: u8 = context_constructed(0);
    pub(super) const OR: u8 = context_constructed(1);
    pub(super) const NOT: u8 = context_constructed(2);
    pub(super) const EQUAL: u8 = context_constructed(3);
    pub(super) const SUBSTRINGS: u8 = context_constructed(4);
    pub(super) const GREATER_OR_EQUAL: u8 = context_constructed(5);
    pub(super) const LESS_OR_EQUAL: u8 = context_constructed(6);
    pub(super) const PRESENT: u8 = context(7);
    pub(super) const APPROXIMATE: u8 = context_constructed(8);
    pub(super) const EXTENSIBLE: u8 = context_constructed(9);
}

impl Filter {
    /// Every entry has a class.
    #[must_use]
    pub fn any_entry() -> Self {
        Self::Present(Identifier("objectClass".to_owned()))
    }

    pub(crate) fn read(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Self, Fault> {
        Self::read_at(reader, budget, 0)
    }

    fn read_at(reader: &mut Reader<'_>, budget: &mut Budget, depth: usize) -> Result<Self, Fault> {
        budget.take_filter(depth)?;
        let (tag, contents) = reader.element()?;
        let mut inside = Reader::new(contents);
        Ok(match tag {
            tags::AND => Self::And(Self::read_list(inside, budget, depth + 1)?),
            tags::OR => Self::Or(Self::read_list(inside, budget, depth + 1)?),
            tags::NOT => Self::Not(Box::new(Self::read_at(&mut inside, budget, depth + 1)?)),
            tags::EQUAL => {
                let (attribute, value) = read_assertion(inside)?;
                Self::Equal(attribute, value)
            }
            tags::SUBSTRINGS => read_substrings(inside, budget)?,
            tags::GREATER_OR_EQUAL => {
                let (attribute, value) = read_assertion(inside)?;
                Self::GreaterOrEqual(attribute, value)
            }
            tags::LESS_OR_EQUAL => {
                let (attribute, value) = read_assertion(inside)?;
                Self::LessOrEqual(attribute, value)
            }
            tags::PRESENT => Self::Present(Identifier::read(contents)?),
            tags::APPROXIMATE => {
                let (attribute, value) = read_assertion(inside)?;
                Self::Approximate(attribute, value)
            }
            tags::EXTENSIBLE => Self::Extensible(read_extensible(inside)?),
            _ => return Err(Fault::Value("the kind of a filter")),
        })
    }

    fn read_list(mut inside: Reader<'_>, budget: &mut Budget, depth: usize) -> Result<Vec<Self>, Fault> {
        let mut list = Vec::new();
        while !inside.is_empty() {
            list.push(Self::read_at(&mut inside, budget, depth)?);
        }
        Ok(list)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        match self {
            Self::And(list) => write_list(tags::AND, list, writer),
            Self::Or(list) => write_list(tags::OR, list, writer),
            Self::Not(filter) => writer.nested(tags::NOT, |inside| filter.write(inside)),
            Self::Equal(attribute, value) => write_assertion(tags::EQUAL, attribute, value, writer),
            Self::Substrings(attribute, parts) => write_substrings(attribute, parts, writer),
            Self::GreaterOrEqual(attribute, value) => {
                write_assertion(tags::GREATER_OR_EQUAL, attribute, value, writer);
            }
            Self::LessOrEqual(attribute, value) => {
                write_assertion(tags::LESS_OR_EQUAL, attribute, value, writer);
            }
            Self::Present(attribute) => writer.element(tags::PRESENT, attribute.0.as_bytes()),
            Self::Approximate(attribute, value) => {
                write_assertion(tags::APPROXIMATE, attribute, value, writer);
            }
            Self::Extensible(extensible) => write_extensible(extensible, writer),
        }
    }
}

fn write_list(tag: u8, list: &[Filter], writer: &mut Writer) {
    writer.nested(tag, |inside| list.iter().for_each(|one| one.write(inside)));
}

fn read_assertion(mut inside: Reader<'_>) -> Result<(Identifier, Vec<u8>), Fault> {
    let attribute = Identifier::read(inside.expect(crate::ber::OCTET_STRING)?)?;
    Ok((attribute, inside.octets()?))
}

fn write_assertion(tag: u8, attribute: &Identifier, value: &[u8], writer: &mut Writer) {
    writer.nested(tag, |inside| {
        inside.text(&attribute.0);
        inside.octets(value);
    });
}

fn read_substrings(mut inside: Reader<'_>, budget: &mut Budget) -> Result<Filter, Fault> {
    const ORDER: Fault = Fault::Value("the order of a filter's parts of a value");
    let attribute = Identifier::read(inside.expect(crate::ber::OCTET_STRING)?)?;
    let mut parts = inside.inside(crate::ber::SEQUENCE)?;
    if parts.is_empty() {
        return Err(Fault::Value("a filter without parts of a value"));
    }
    let (mut initial, mut middle, mut last) = (None, Vec::new(), None);
    let mut is_first = true;
    while !parts.is_empty() {
        budget.take_item()?;
        let (tag, contents) = parts.element()?;
        if last.is_some() {
            return Err(ORDER);
        }
        if tag == context(0) && is_first {
            initial = Some(contents.to_vec());
        } else if tag == context(1) {
            middle.push(contents.to_vec());
        } else if tag == context(2) {
            last = Some(contents.to_vec());
        } else {
            return Err(ORDER);
        }
        is_first = false;
    }
    Ok(Substrings::filter(attribute, initial, middle, last))
}

fn write_substrings(attribute: &Identifier, parts: &Substrings, writer: &mut Writer) {
    writer.nested(tags::SUBSTRINGS, |inside| {
        inside.text(&attribute.0);
        inside.nested(crate::ber::SEQUENCE, |list| {
            list.optional(context(0), parts.initial());
            parts.middle().for_each(|part| list.element(context(1), part));
            list.optional(context(2), parts.last());
        });
    });
}

fn read_extensible(mut inside: Reader<'_>) -> Result<Extensible, Fault> {
    let rule = inside.optional(context(1))?.map(Identifier::read).transpose()?;
    let attribute = inside.optional(context(2))?.map(Identifier::read).transpose()?;
    let value = inside.expect(context(3))?.to_vec();
    let with_name = inside.optional(context(4))?.map_or(Ok(false), boolean)?;
    let subject = Subject::new(attribute, rule).ok_or(Fault::Value("what an extensible match compares"))?;
    Ok(Extensible { subject, value, with_name })
}

fn write_extensible(extensible: &Extensible, writer: &mut Writer) {
    writer.nested(tags::EXTENSIBLE, |inside| {
        let bytes = |identifier: Option<&'_ Identifier>| identifier.map(|one| one.0.clone().into_bytes());
        inside.optional(context(1), bytes(extensible.subject.rule()).as_deref());
        inside.optional(context(2), bytes(extensible.subject.attribute()).as_deref());
        inside.element(context(3), &extensible.value);
        write_true(inside, context(4), extensible.with_name);
    });
}
