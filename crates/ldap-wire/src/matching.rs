//! Matching rules (RFC 4517, section 4): how values of an attribute are compared.

use scrinium_line_wire::Cursor;

use crate::prepare::{TextOrigin, fold, spaces, without};
use crate::schema;
use crate::text::hex_byte;
use crate::time::GeneralizedTime;

/// How values are compared, whatever it is for: the three rules `caseIgnoreMatch`, `caseIgnoreOrderingMatch` and
/// `caseIgnoreSubstringsMatch` are one here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Text in any case.
    CaseIgnore,
    /// Text in its case.
    CaseExact,
    /// Lines of a postal address in any case, with `$` between.
    CaseIgnoreList,
    /// Digits, whatever the spaces.
    NumericString,
    /// Digits, whatever the spaces and hyphens.
    TelephoneNumber,
    /// Whole numbers.
    Integer,
    /// TRUE or FALSE.
    Boolean,
    /// Points in time.
    GeneralizedTime,
    /// Names of entries.
    DistinguishedName,
    /// Attributes, classes and rules, by number or name.
    ObjectIdentifier,
    /// Bytes.
    OctetString,
    /// Unique ids (RFC 4530).
    Uuid,
    /// All bits of a number are set in the value (Active Directory's).
    BitAnd,
    /// One bit of a number is set in the value (Active Directory's).
    BitOr,
}

/// What a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleUse {
    /// Whether values are equal.
    Equality,
    /// Which one comes first.
    Ordering,
    /// Whether parts are in a value.
    Substrings,
}

/// A value prepared by a rule. Those of one rule are of one kind, and only those are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Comparable {
    Text(String),
    Number(i64),
    Time(GeneralizedTime),
    Boolean(bool),
    Bytes(Vec<u8>),
    Name(Vec<String>),
}

impl Rule {
    /// The value, prepared; `None` if it has not the rule's form.
    pub(crate) fn comparable(self, value: &[u8]) -> Option<Comparable> {
        Some(match self {
            Self::CaseIgnore
            | Self::CaseExact
            | Self::CaseIgnoreList
            | Self::NumericString
            | Self::TelephoneNumber => Comparable::Text(self.text(value, TextOrigin::Whole)?),
            Self::Integer | Self::BitAnd | Self::BitOr => Comparable::Number(integer(value)?),
            Self::Boolean => Comparable::Boolean(boolean(value)?),
            Self::GeneralizedTime => {
                Comparable::Time(GeneralizedTime::parse(std::str::from_utf8(value).ok()?)?)
            }
            Self::DistinguishedName => {
                let name = std::str::from_utf8(value).ok()?;
                let name = crate::name::DistinguishedName::parse(name).ok()?;
                Comparable::Name(crate::normal::NormalName::of(&name).into_parts())
            }
            Self::ObjectIdentifier => {
                Comparable::Text(schema::canonical_identifier(std::str::from_utf8(value).ok()?.trim())?)
            }
            Self::OctetString => Comparable::Bytes(value.to_vec()),
            Self::Uuid => Comparable::Bytes(uuid(value)?),
        })
    }

    /// Text prepared for its place; `None` for rules that compare no text.
    pub(crate) fn text(self, value: &[u8], place: TextOrigin) -> Option<String> {
        let text = std::str::from_utf8(value).ok()?;
        let folded = fold(text, self != Self::CaseExact)?;
        match self {
            Self::CaseIgnore | Self::CaseExact => Some(spaces(&folded, place)),
            Self::CaseIgnoreList if place == TextOrigin::Whole => {
                let lines: Vec<String> = folded.split('$').map(|line| spaces(line, place)).collect();
                Some(lines.join("$"))
            }
            Self::CaseIgnoreList => Some(spaces(&folded, place)),
            Self::NumericString => Some(without(&folded, false)),
            Self::TelephoneNumber => Some(without(&folded, true)),
            _ => None,
        }
    }

    /// Whether a value matches an assertion, both prepared by this rule.
    pub(crate) fn equals(self, value: &Comparable, assertion: &Comparable) -> bool {
        match (self, value, assertion) {
            (Self::BitAnd, Comparable::Number(value), Comparable::Number(mask)) => value & mask == *mask,
            (Self::BitOr, Comparable::Number(value), Comparable::Number(mask)) => value & mask != 0,
            _ => value == assertion,
        }
    }
}

/// Section 3.3.16: a whole number without zeros before it; here also those.
fn integer(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let has_form = text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
    if has_form { text.parse().ok() } else { None }
}

fn boolean(value: &[u8]) -> Option<bool> {
    match value {
        b"TRUE" | b"true" => Some(true),
        b"FALSE" | b"false" => Some(false),
        _ => None,
    }
}

/// A unique id in its usual text, with or without hyphens.
fn uuid(value: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = value.iter().copied().filter(|byte| *byte != b'-').collect();
    if digits.len() != 32 || value.len() > 36 {
        return None;
    }
    let mut cursor = Cursor::new(&digits);
    let mut bytes = Vec::with_capacity(16);
    while !cursor.is_empty() {
        bytes.push(hex_byte(&mut cursor)?);
    }
    Some(bytes)
}
