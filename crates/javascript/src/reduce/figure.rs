//! JSON values as the built-in reduce functions see them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;

use crate::error::ScriptError;

/// Lists and objects in each other; what is nested deeper is not looked into.
const DEPTH_MAX: usize = 64;

/// A number. Integers are exact, as in CouchDB, as far as 128 bits go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    /// The number that a JSON text is.
    pub(super) fn parse(json: &str) -> Option<Self> {
        let json = json.trim_ascii();
        if !json.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return None;
        }
        match json.parse() {
            Ok(integer) => Some(Self::Integer(integer)),
            Err(_) => json.parse().ok().filter(|float: &f64| float.is_finite()).map(Self::Float),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) if left.checked_add(right).is_some() => {
                Self::Integer(left.saturating_add(right))
            }
            _ => Self::Float(self.float() + other.float()),
        }
    }

    pub(super) fn squared(self) -> Self {
        match self {
            Self::Integer(integer) if integer.checked_mul(integer).is_some() => {
                Self::Integer(integer.saturating_mul(integer))
            }
            _ => Self::Float(self.float() * self.float()),
        }
    }

    pub(super) fn is_less(self, other: Self) -> bool {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left < right,
            _ => self.float() < other.float(),
        }
    }

    pub(super) fn is_zero(self) -> bool {
        matches!(self, Self::Integer(0)) || matches!(self, Self::Float(float) if float == 0.0)
    }

    #[allow(clippy::cast_precision_loss, reason = "what is too large to be exact becomes a double")]
    fn float(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Float(float) => float,
        }
    }
}

impl fmt::Display for Number {
    /// As JSON. JSON has no number for what is out of the range of doubles; as in JavaScript, that is null.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => integer.fmt(formatter),
            Self::Float(float) => serde_json::Value::from(*float).fmt(formatter),
        }
    }
}

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Figure {
    Number(Number),
    List(Vec<Figure>),
    Object(BTreeMap<String, Figure>),
    /// Anything else, as JSON.
    Other(String),
}

impl Figure {
    pub(super) fn parse(json: &str) -> Result<Self, ScriptError> {
        Self::parse_within(json, DEPTH_MAX)
    }

    fn parse_within(json: &str, depth: usize) -> Result<Self, ScriptError> {
        let inner = |raw: &RawValue| Self::parse_within(raw.get(), depth - 1);
        let not_json = |error: serde_json::Error| ScriptError::Json { message: error.to_string() };
        match json.trim_ascii().as_bytes().first() {
            Some(b'[') if depth > 0 => {
                let list: Vec<&RawValue> = serde_json::from_str(json).map_err(not_json)?;
                list.into_iter().map(inner).collect::<Result<_, _>>().map(Self::List)
            }
            Some(b'{') if depth > 0 => {
                let object: BTreeMap<String, &RawValue> = serde_json::from_str(json).map_err(not_json)?;
                let members = object.into_iter().map(|(name, raw)| Ok((name, inner(raw)?)));
                members.collect::<Result<_, _>>().map(Self::Object)
            }
            _ => match Number::parse(json) {
                Some(number) => Ok(Self::Number(number)),
                None => {
                    let other: &RawValue = serde_json::from_str(json).map_err(not_json)?;
                    Ok(Self::Other(other.get().to_owned()))
                }
            },
        }
    }
}

impl fmt::Display for Figure {
    /// As JSON.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Other(json) => formatter.write_str(json),
            Self::List(list) => {
                formatter.write_str("[")?;
                for (place, figure) in list.iter().enumerate() {
                    let comma = if place > 0 { "," } else { "" };
                    write!(formatter, "{comma}{figure}")?;
                }
                formatter.write_str("]")
            }
            Self::Object(members) => {
                formatter.write_str("{")?;
                for (place, (name, figure)) in members.iter().enumerate() {
                    let comma = if place > 0 { "," } else { "" };
                    write!(formatter, "{comma}{}:{figure}", serde_json::Value::from(name.as_str()))?;
                }
                formatter.write_str("}")
            }
        }
    }
}
