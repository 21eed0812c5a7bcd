//! The schema that a directory of people and groups publishes (RFC 4512, 4517, 4519, 4524, 2798, 4530): attributes,
//! classes and matching rules as data, and as the texts of a subschema entry.

mod attributes;
mod classes;
mod forms;
mod published;

pub use attributes::{ATTRIBUTE_TYPES, AttributeType, Usage};
pub use classes::{ClassKind, OBJECT_CLASSES, ObjectClass};
pub use forms::Form;
pub use published::{RootDse, SUBSCHEMA_NAME, subschema_entry};

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::matching::{Rule, RuleUse};

/// Attributes by each of their names, in lower case, and by their numbers.
static BY_NAME: LazyLock<HashMap<String, &'static AttributeType>> = LazyLock::new(|| {
    let names = ATTRIBUTE_TYPES.iter().flat_map(|known| {
        let names = known.names.iter().chain([&known.oid]);
        names.map(move |name| (name.to_ascii_lowercase(), known))
    });
    names.collect()
});

/// The attribute with this name, in any case, or number.
#[must_use]
pub fn attribute_type(name: &str) -> Option<&'static AttributeType> {
    BY_NAME.get(name.to_ascii_lowercase().as_str()).copied()
}

/// The class with this name, in any case, or number.
#[must_use]
pub fn object_class(name: &str) -> Option<&'static ObjectClass> {
    OBJECT_CLASSES.iter().find(|class| class.name.eq_ignore_ascii_case(name) || class.oid == name)
}

/// The matching rule with this name, in any case, or number.
#[must_use]
pub fn matching_rule(name: &str) -> Option<(Rule, RuleUse)> {
    forms::MATCHING_RULES
        .iter()
        .find(|rule| rule.name.eq_ignore_ascii_case(name) || rule.oid == name)
        .map(|rule| (rule.rule, rule.rule_use))
}

/// The number of an attribute, class or rule that is said by name or number; `None` for a name that nobody knows.
pub(crate) fn canonical_identifier(text: &str) -> Option<String> {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_number {
        return Some(text.to_owned());
    }
    let rule = || forms::MATCHING_RULES.iter().find(|rule| rule.name.eq_ignore_ascii_case(text));
    let number = object_class(text)
        .map(|class| class.oid)
        .or_else(|| attribute_type(text).map(|known| known.oid))
        .or_else(|| rule().map(|rule| rule.oid));
    number.map(str::to_owned)
}

/// The attributes that an entry of this class must or may have; none for a class that is not known.
#[must_use]
pub fn attributes_of_class(name: &str) -> Vec<&'static str> {
    let mut attributes = Vec::new();
    let mut class = object_class(name);
    // No chain of classes is longer than the table.
    for _ in 0..OBJECT_CLASSES.len() {
        let Some(found) = class else { break };
        attributes.extend(found.must.iter().chain(found.may));
        class = object_class(found.superior);
    }
    attributes
}
