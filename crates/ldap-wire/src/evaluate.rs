//! Filters and assertions held against entries (RFC 4511, sections 4.5.1.7 and 4.10).

use std::ops;

use crate::entry::{Description, Entry};
use crate::filter::{Extensible, Filter, Identifier, Subject, Substrings};
use crate::matching::{Comparable, Rule, RuleUse};
use crate::name::DistinguishedName;
use crate::operation::Assertion;
use crate::prepare::TextOrigin;
use crate::result::ResultCode;
use crate::schema;

/// Whether a filter matches an entry. An entry is found only if it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It matches.
    True,
    /// It does not.
    False,
    /// It cannot be told: the attribute is not known, has no such comparison, or the value has another form.
    Undefined,
}

impl From<bool> for Truth {
    fn from(is_true: bool) -> Self {
        if is_true { Self::True } else { Self::False }
    }
}

impl ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Undefined => Self::Undefined,
        }
    }
}

/// A filter made ready for many entries: its attributes are looked up and its values prepared once.
#[derive(Clone, Debug)]
pub struct Matcher {
    node: Node,
}

#[derive(Clone, Debug)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Undefined,
    Present(Description),
    Compare {
        subject: Description,
        rule: Rule,
        test: Test,
    },
    /// By this rule in every attribute that has it, and perhaps in the entry's name.
    AnyAttribute {
        subject: Option<Description>,
        rule: Rule,
        test: Test,
        with_name: bool,
    },
}

#[derive(Clone, Debug)]
enum Test {
    Equal(Comparable),
    GreaterOrEqual(Comparable),
    LessOrEqual(Comparable),
    Less(Comparable),
    Parts(Vec<(TextOrigin, String)>),
}

impl Matcher {
    /// Makes a filter ready.
    #[must_use]
    pub fn new(filter: &Filter) -> Self {
        Self { node: node(filter) }
    }

    /// Holds the filter against an entry.
    #[must_use]
    pub fn matches(&self, entry: &Entry) -> Truth {
        let described: Vec<Described<'_>> = entry
            .attributes
            .iter()
            .map(|attribute| Described {
                description: Description::of(&attribute.name),
                values: &attribute.values,
            })
            .collect();
        evaluate(&self.node, &described, &entry.name)
    }
}

struct Described<'a> {
    description: Description,
    values: &'a [Vec<u8>],
}

fn node(filter: &Filter) -> Node {
    match filter {
        Filter::And(list) => Node::And(list.iter().map(node).collect()),
        Filter::Or(list) => Node::Or(list.iter().map(node).collect()),
        Filter::Not(filter) => Node::Not(Box::new(node(filter))),
        Filter::Present(attribute) => {
            let subject = Description::of(attribute.as_str());
            if subject.known.is_some() { Node::Present(subject) } else { Node::Undefined }
        }
        // RFC 4511, section 4.5.1.7.6: a server may take "about" for "equal".
        Filter::Equal(attribute, value) | Filter::Approximate(attribute, value) => {
            compared(attribute, RuleUse::Equality, |rule| rule.comparable(value).map(Test::Equal))
        }
        Filter::GreaterOrEqual(attribute, value) => {
            compared(attribute, RuleUse::Ordering, |rule| rule.comparable(value).map(Test::GreaterOrEqual))
        }
        Filter::LessOrEqual(attribute, value) => {
            compared(attribute, RuleUse::Ordering, |rule| rule.comparable(value).map(Test::LessOrEqual))
        }
        Filter::Substrings(attribute, parts) => {
            compared(attribute, RuleUse::Substrings, |rule| prepared_parts(rule, parts).map(Test::Parts))
        }
        Filter::Extensible(extensible) => extensible_node(extensible),
    }
}

fn compared(attribute: &Identifier, rule_use: RuleUse, test: impl FnOnce(Rule) -> Option<Test>) -> Node {
    let subject = Description::of(attribute.as_str());
    let rule = subject.known.and_then(|known| known.rule(rule_use));
    match rule.and_then(|rule| test(rule).map(|test| (rule, test))) {
        Some((rule, test)) => Node::Compare { subject, rule, test },
        None => Node::Undefined,
    }
}

fn prepared_parts(rule: Rule, parts: &Substrings) -> Option<Vec<(TextOrigin, String)>> {
    let initial = parts.initial().map(|part| (TextOrigin::Initial, part));
    let last = parts.last().map(|part| (TextOrigin::Last, part));
    let middle = parts.middle().map(|part| (TextOrigin::Middle, part));
    let all = initial.into_iter().chain(middle).chain(last);
    all.map(|(place, part)| rule.text(part, place).map(|text| (place, text))).collect()
}

fn extensible_node(extensible: &Extensible) -> Node {
    let Extensible { subject, value, with_name } = extensible;
    let (subject, rule, rule_use) = match subject {
        Subject::Attribute(attribute) => {
            let subject = Description::of(attribute.as_str());
            let Some(rule) = subject.known.and_then(|known| known.rule(RuleUse::Equality)) else {
                return Node::Undefined;
            };
            (Some(subject), rule, RuleUse::Equality)
        }
        Subject::Rule(rule) => match schema::matching_rule(rule.as_str()) {
            Some((rule, rule_use)) => (None, rule, rule_use),
            None => return Node::Undefined,
        },
        Subject::Both { attribute, rule } => {
            let subject = Description::of(attribute.as_str());
            match (subject.known, schema::matching_rule(rule.as_str())) {
                (Some(_), Some((rule, rule_use))) => (Some(subject), rule, rule_use),
                _ => return Node::Undefined,
            }
        }
    };
    let test = match rule_use {
        RuleUse::Equality => rule.comparable(value).map(Test::Equal),
        // RFC 4517, section 4.2: an ordering rule is true for values before the one that is asserted.
        RuleUse::Ordering => rule.comparable(value).map(Test::Less),
        // The assertion of such a rule has a syntax of its own, which no client writes.
        RuleUse::Substrings => None,
    };
    match test {
        Some(test) => Node::AnyAttribute { subject, rule, test, with_name: *with_name },
        None => Node::Undefined,
    }
}

fn evaluate(node: &Node, attributes: &[Described<'_>], name: &str) -> Truth {
    match node {
        Node::Undefined => Truth::Undefined,
        Node::Not(node) => !evaluate(node, attributes, name),
        Node::And(list) => joined(list, Truth::False, |node| evaluate(node, attributes, name)),
        Node::Or(list) => joined(list, Truth::True, |node| evaluate(node, attributes, name)),
        Node::Present(subject) => {
            attributes.iter().any(|one| subject.covers(&one.description) && !one.values.is_empty()).into()
        }
        Node::Compare { subject, rule, test } => {
            let covered = attributes.iter().filter(|one| subject.covers(&one.description));
            any_value(covered.flat_map(|one| one.values.iter().map(Vec::as_slice)), *rule, test)
        }
        Node::AnyAttribute { subject, rule, test, with_name } => {
            any_attribute(subject.as_ref(), *rule, test, *with_name, attributes, name)
        }
    }
}

/// True or false as soon as one member is `decides`; undefined if one is and none decides.
fn joined(list: &[Node], decides: Truth, evaluate: impl Fn(&Node) -> Truth) -> Truth {
    let mut joined = !decides;
    for node in list {
        match evaluate(node) {
            truth if truth == decides => return decides,
            Truth::Undefined => joined = Truth::Undefined,
            _ => {}
        }
    }
    joined
}

fn any_value<'a>(values: impl Iterator<Item = &'a [u8]>, rule: Rule, test: &Test) -> Truth {
    let mut any = Truth::False;
    for value in values {
        match is_true(value, rule, test) {
            Some(true) => return Truth::True,
            Some(false) => {}
            // A value that has not the form of its attribute.
            None => any = Truth::Undefined,
        }
    }
    any
}

fn is_true(value: &[u8], rule: Rule, test: &Test) -> Option<bool> {
    let Test::Parts(parts) = test else {
        let value = rule.comparable(value)?;
        return Some(match test {
            Test::Equal(assertion) => rule.equals(&value, assertion),
            Test::GreaterOrEqual(assertion) => value >= *assertion,
            Test::LessOrEqual(assertion) => value <= *assertion,
            Test::Less(assertion) => value < *assertion,
            Test::Parts(_) => false,
        });
    };
    let value = rule.text(value, TextOrigin::Whole)?;
    Some(holds(&value, parts))
}

/// Whether a text holds parts one behind the other. The first place of each part is the best one, since it leaves most to
/// those that follow.
fn holds(text: &str, parts: &[(TextOrigin, String)]) -> bool {
    let mut rest = text;
    for (place, part) in parts {
        let left = match place {
            TextOrigin::Initial => rest.strip_prefix(part.as_str()),
            TextOrigin::Last => return rest.ends_with(part.as_str()),
            TextOrigin::Middle | TextOrigin::Whole => rest.split_once(part.as_str()).map(|(_, left)| left),
        };
        match left {
            Some(left) => rest = left,
            None => return false,
        }
    }
    true
}

fn any_attribute(
    subject: Option<&Description>,
    rule: Rule,
    test: &Test,
    with_name: bool,
    attributes: &[Described<'_>],
    name: &str,
) -> Truth {
    // Without a type, the attributes whose own rule it is (RFC 4511, section 4.5.1.7.7).
    let takes = |description: &Description| match subject {
        Some(subject) => subject.covers(description),
        None => description.known.is_some_and(|known| known.rule(RuleUse::Equality) == Some(rule)),
    };
    let covered = attributes.iter().filter(|one| takes(&one.description));
    let in_entry = any_value(covered.flat_map(|one| one.values.iter().map(Vec::as_slice)), rule, test);
    if !with_name || in_entry == Truth::True {
        return in_entry;
    }
    let Ok(name) = DistinguishedName::parse(name) else { return in_entry };
    let in_name = name.parts.iter().flat_map(|part| part.values());
    let in_name = in_name.filter(|(attribute, _)| takes(&Description::of(attribute.as_str())));
    match any_value(in_name.map(|(_, value)| value), rule, test) {
        Truth::True => Truth::True,
        Truth::False => in_entry,
        Truth::Undefined => Truth::Undefined,
    }
}

/// The result of a compare (section 4.10): `compareTrue`, `compareFalse`, or why it cannot be told.
#[must_use]
pub fn compare(entry: &Entry, assertion: &Assertion) -> ResultCode {
    let subject = Description::of(&assertion.attribute);
    let Some(known) = subject.known else { return ResultCode::UNDEFINED_ATTRIBUTE_TYPE };
    let Some(rule) = known.rule(RuleUse::Equality) else { return ResultCode::INAPPROPRIATE_MATCHING };
    let Some(asserted) = rule.comparable(&assertion.value) else {
        return ResultCode::INVALID_ATTRIBUTE_SYNTAX;
    };
    let covered = entry.attributes.iter().filter(|one| subject.covers(&Description::of(&one.name)));
    let values: Vec<&[u8]> = covered.flat_map(|one| one.values.iter().map(Vec::as_slice)).collect();
    if values.is_empty() {
        return ResultCode::NO_SUCH_ATTRIBUTE;
    }
    match any_value(values.into_iter(), rule, &Test::Equal(asserted)) {
        Truth::True => ResultCode::COMPARE_TRUE,
        Truth::False | Truth::Undefined => ResultCode::COMPARE_FALSE,
    }
}
