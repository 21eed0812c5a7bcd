//! Names in the one form in which equal ones are equal (RFC 4517, section 4.2.15).

use crate::filter::Identifier;
use crate::matching::{Comparable, Rule};
use crate::name::{DistinguishedName, RelativeName};
use crate::schema;

/// A name that is equal to every other way to write it: types by one name each, values prepared by the types' rules,
/// attributes of a part in order. It serves as a key of maps; it is not for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NormalName {
    parts: Vec<String>,
}

impl NormalName {
    /// The normal form of a name.
    #[must_use]
    pub fn of(name: &DistinguishedName) -> Self {
        Self { parts: name.parts.iter().map(normal_part).collect() }
    }

    /// Whether the name is this one, or below it.
    #[must_use]
    pub fn is_within(&self, base: &Self) -> bool {
        self.parts.ends_with(&base.parts)
    }

    /// How many entries the name is below this one: 1 for those directly below it; `None` if it is elsewhere.
    #[must_use]
    pub fn depth_below(&self, base: &Self) -> Option<usize> {
        if self.is_within(base) { self.parts.len().checked_sub(base.parts.len()) } else { None }
    }

    pub(crate) fn into_parts(self) -> Vec<String> {
        self.parts
    }
}

fn normal_part(part: &RelativeName) -> String {
    let mut values: Vec<String> =
        part.values().map(|(attribute, value)| normal_value(attribute, value)).collect();
    values.sort_unstable();
    values.dedup();
    values.join("+")
}

fn normal_value(attribute: &Identifier, value: &[u8]) -> String {
    let known = schema::attribute_type(attribute.as_str());
    let (name, rule) = match known {
        Some(known) => (known.oid.to_owned(), known.equality().unwrap_or(Rule::OctetString)),
        // What the schema does not know is mostly text.
        None => (attribute.as_str().to_ascii_lowercase(), Rule::CaseIgnore),
    };
    // Names in names would nest without end.
    let rule = if rule == Rule::DistinguishedName { Rule::CaseIgnore } else { rule };
    let value = match rule.comparable(value) {
        Some(Comparable::Text(text)) => {
            crate::text::escaped(text.as_bytes(), '\\', |sign| "+=\\".contains(sign))
        }
        // Numbers and what has not the form of its type are their own bytes.
        _ => crate::text::escaped(value, '\\', |sign| "+=\\".contains(sign)),
    };
    format!("{name}={value}")
}
