//! Reading a selector into its normal form.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Selector;
use super::condition::{Comparison, Condition, Elements, Set};
use super::negate::push_down;
use super::node::{FieldCondition, Node};
use crate::error::{MangoError, shown};
use crate::order::{Operand, Order};
use crate::path::FieldPath;
use crate::pattern::Pattern;

/// The deepest nesting of arrays and objects in a query; the outermost counts one.
pub const MAX_NESTING: usize = 256;

/// The most conditions in a selector; the values of one `$in` are one condition.
pub const MAX_CONDITIONS: usize = 10_000;

/// The most `$regex` in a selector.
pub const MAX_PATTERNS: usize = 50;

/// How errors name them.
const CONDITIONS: &str = "conditions; ask for several values of one field by a single $in.";
const PATTERNS: &str = "patterns; join them by |.";

/// Known to Mango, which does not have them.
const UNSUPPORTED: [&str; 5] = ["$where", "$geoWithin", "$geoIntersects", "$near", "$nearSphere"];

/// Checks the nesting of what a client sent, by a loop, before anything goes into it by recursion.
pub(crate) fn check_nesting(value: &Value) -> Result<(), MangoError> {
    let mut level = containers(std::iter::once(value));
    for _ in 0..MAX_NESTING {
        level = containers(level.into_iter().flat_map(|value| match value {
            Value::Array(elements) => elements.iter().collect::<Vec<_>>(),
            Value::Object(members) => members.values().collect(),
            _ => Vec::new(),
        }));
    }
    if level.is_empty() { Ok(()) } else { Err(MangoError::TooDeep { limit: MAX_NESTING }) }
}

/// Those that others may lie in.
fn containers<'a>(values: impl Iterator<Item = &'a Value>) -> Vec<&'a Value> {
    values.filter(|value| value.is_array() || value.is_object()).collect()
}

pub(crate) fn parse(selector: &Value) -> Result<Selector, MangoError> {
    let Value::Object(members) = selector else { return Err(MangoError::SelectorNotObject(shown(selector))) };
    if members.is_empty() {
        return Ok(Selector::default());
    }
    let mut parser = Parser::default();
    let root = push_down(parser.object(members, "")?);
    if let Node::Field(field) = &root
        && field.path.names().is_empty()
    {
        return Err(MangoError::MissingFieldName);
    }
    let mut fields: Vec<(String, usize)> = parser.fields.into_iter().collect();
    fields.sort_unstable_by_key(|(_, place)| *place);
    Ok(Selector { root: Some(root), fields: fields.into_iter().map(|(name, _)| name).collect() })
}

/// What is counted and gathered while a selector is read.
#[derive(Default)]
struct Parser {
    conditions: usize,
    patterns: usize,
    /// How many `$elemMatch` and the like this is within, where fields are not the document's.
    within: usize,
    fields: HashMap<String, usize>,
}

impl Parser {
    /// A selector, or what stands where one may stand: any other value means equality.
    fn value(&mut self, value: &Value, path: &str) -> Result<Node, MangoError> {
        match value {
            Value::Object(members) if !members.is_empty() => self.object(members, path),
            value => self.equality(value, path),
        }
    }

    /// Several members are an implicit `$and`.
    fn object(&mut self, members: &Map<String, Value>, path: &str) -> Result<Node, MangoError> {
        let mut nodes = Vec::with_capacity(members.len());
        for (name, argument) in members {
            nodes.push(self.member(name, argument, path)?);
        }
        match nodes.pop() {
            Some(only) if nodes.is_empty() => Ok(only),
            last => {
                nodes.extend(last);
                Ok(Node::And(nodes))
            }
        }
    }

    fn member(&mut self, name: &str, argument: &Value, path: &str) -> Result<Node, MangoError> {
        match name {
            "$and" => Ok(Node::And(self.list("$and", argument, path)?)),
            "$or" => Ok(Node::Or(self.list("$or", argument, path)?)),
            "$nor" => Ok(Node::Nor(self.list("$nor", argument, path)?)),
            "$not" => match argument {
                Value::Object(_) => Ok(Node::Not(Box::new(self.value(argument, path)?))),
                other => Err(bad_argument("$not", other)),
            },
            operator if operator.starts_with('$') => {
                let condition = self.condition(operator, argument, Order::of(path))?;
                self.field(path, condition)
            }
            field if path.is_empty() => self.value(argument, field),
            field => self.value(argument, &format!("{path}.{field}")),
        }
    }

    fn list(
        &mut self,
        operator: &'static str,
        argument: &Value,
        path: &str,
    ) -> Result<Vec<Node>, MangoError> {
        let Value::Array(selectors) = argument else { return Err(bad_argument(operator, argument)) };
        selectors.iter().map(|selector| self.value(selector, path)).collect()
    }

    fn equality(&mut self, value: &Value, path: &str) -> Result<Node, MangoError> {
        let operand = Arc::new(Operand::new(value, Order::of(path)));
        self.field(path, Condition::Compare(Comparison::Equal, operand))
    }

    fn field(&mut self, path: &str, condition: Condition) -> Result<Node, MangoError> {
        self.conditions += 1;
        if self.conditions > MAX_CONDITIONS {
            return Err(MangoError::TooMany { what: CONDITIONS, limit: MAX_CONDITIONS });
        }
        let path = if path.is_empty() { FieldPath::nameless() } else { FieldPath::parse(path)? };
        let place = match path.names().first() {
            Some(name) if self.within == 0 => {
                let next = self.fields.len();
                *self.fields.entry(name.clone()).or_insert(next)
            }
            _ => 0,
        };
        Ok(Node::Field(Arc::new(FieldCondition { path, place, condition })))
    }

    fn condition(&mut self, operator: &str, argument: &Value, order: Order) -> Result<Condition, MangoError> {
        if let Some((_, comparison)) = Comparison::ALL.iter().find(|(name, _)| *name == operator) {
            return Ok(Condition::Compare(*comparison, Arc::new(Operand::new(argument, order))));
        }
        match (operator, argument) {
            ("$in", Value::Array(values)) => {
                Ok(Condition::In { set: Arc::new(Set::new(values, order)), negated: false })
            }
            ("$nin", Value::Array(values)) => {
                Ok(Condition::In { set: Arc::new(Set::new(values, order)), negated: true })
            }
            ("$all", Value::Array(values)) => Ok(Condition::All(Arc::new(Elements::new(values)))),
            ("$exists", Value::Bool(expected)) => Ok(Condition::Exists(*expected)),
            ("$type", Value::String(name)) => Ok(Condition::Type(name.clone())),
            ("$mod", argument) => modulus(argument),
            ("$size", argument) => match argument.as_u64() {
                Some(size) => Ok(Condition::Size(size)),
                None => Err(bad_argument("$size", argument)),
            },
            ("$beginsWith", Value::String(prefix)) => Ok(Condition::BeginsWith(prefix.clone())),
            ("$regex", Value::String(pattern)) => self.pattern(pattern),
            ("$elemMatch", Value::Object(_)) => Ok(Condition::ElementMatch(self.inner(argument)?)),
            ("$allMatch", Value::Object(_)) => Ok(Condition::AllMatch(self.inner(argument)?)),
            ("$keyMapMatch", Value::Object(_)) => Ok(Condition::KeyMapMatch(self.inner(argument)?)),
            ("$text" | "$default", _) => Err(MangoError::ServiceUnavailable("text")),
            (operator, argument) => Err(refused(operator, argument)),
        }
    }

    fn pattern(&mut self, pattern: &str) -> Result<Condition, MangoError> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(MangoError::TooMany { what: PATTERNS, limit: MAX_PATTERNS });
        }
        Ok(Condition::Regex(Arc::new(Pattern::compile(pattern)?)))
    }

    /// What an element must match; its fields are its own.
    fn inner(&mut self, argument: &Value) -> Result<Box<Node>, MangoError> {
        self.within += 1;
        let node = self.value(argument, "")?;
        self.within -= 1;
        Ok(Box::new(node))
    }
}

/// CouchDB fails where it divides by zero; here the selector is refused.
fn modulus(argument: &Value) -> Result<Condition, MangoError> {
    let integer = |value: &Value| match value {
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.clone()),
        _ => None,
    };
    if let Value::Array(pair) = argument
        && let [divisor, remainder] = pair.as_slice()
        && let (Some(divisor), Some(remainder)) = (integer(divisor), integer(remainder))
        && divisor.as_i128() != Some(0)
    {
        return Ok(Condition::Mod { divisor, remainder });
    }
    Err(bad_argument("$mod", argument))
}

fn refused(operator: &str, argument: &Value) -> MangoError {
    /// These say that an argument is wrong; the others, that there is no such operator.
    const WITH_ARGUMENT: [&str; 8] =
        ["$in", "$nin", "$all", "$exists", "$type", "$elemMatch", "$allMatch", "$keyMapMatch"];
    if let Some(known) = WITH_ARGUMENT.iter().find(|known| **known == operator) {
        return bad_argument(known, argument);
    }
    if UNSUPPORTED.contains(&operator) {
        return MangoError::UnsupportedOperator(operator.to_owned());
    }
    MangoError::InvalidOperator(operator.to_owned())
}

fn bad_argument(operator: &'static str, argument: &Value) -> MangoError {
    MangoError::BadArgument { operator, argument: shown(argument) }
}
