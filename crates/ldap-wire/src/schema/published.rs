//! The two entries that every server has: the root, and the schema.

use super::{ATTRIBUTE_TYPES, OBJECT_CLASSES, forms};
use crate::entry::{Attribute, Entry};

/// The name of the entry with the schema.
pub const SUBSCHEMA_NAME: &str = "cn=Subschema";

/// OID of `+` in a list of attributes (RFC 3673).
const ALL_OPERATIONAL_ATTRIBUTES: &str = "1.3.6.1.4.1.4203.1.5.1";
/// OID of `@class` in a list of attributes (RFC 4529).
const ATTRIBUTES_BY_CLASS: &str = "1.3.6.1.4.1.4203.1.5.2";
/// OID of `(&)` and `(|)` (RFC 4526).
const TRUE_AND_FALSE_FILTERS: &str = "1.3.6.1.4.1.4203.1.5.3";

/// What a server says of itself (RFC 4512, section 5.1).
#[derive(Clone, Copy, Debug)]
pub struct RootDse<'a> {
    /// The names below which it has entries.
    pub naming_contexts: &'a [&'a str],
    /// OIDs of the controls that it serves.
    pub controls: &'a [&'a str],
    /// OIDs of the extended operations that it serves.
    pub extensions: &'a [&'a str],
    /// Mechanisms of SASL that it takes, on this connection, now.
    pub mechanisms: &'a [&'a str],
    /// Who made it.
    pub vendor_name: &'a str,
    /// Its version; empty where strangers should not learn it.
    pub vendor_version: &'a str,
}

impl RootDse<'_> {
    /// The entry of the root, whose name is empty.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let filled = |text: &'_ str| if text.is_empty() { None } else { Some(text.to_owned()) };
        Entry::new("")
            .with("objectClass", ["top"])
            .with("supportedLDAPVersion", ["3"])
            .with("namingContexts", self.naming_contexts.iter().copied())
            .with("subschemaSubentry", [SUBSCHEMA_NAME])
            .with("supportedControl", self.controls.iter().copied())
            .with("supportedExtension", self.extensions.iter().copied())
            .with(
                "supportedFeatures",
                [ALL_OPERATIONAL_ATTRIBUTES, ATTRIBUTES_BY_CLASS, TRUE_AND_FALSE_FILTERS],
            )
            .with("supportedSASLMechanisms", self.mechanisms.iter().copied())
            .with("vendorName", filled(self.vendor_name).as_deref())
            .with("vendorVersion", filled(self.vendor_version).as_deref())
    }
}

/// The entry with the schema (RFC 4512, section 4.2).
#[must_use]
pub fn subschema_entry() -> Entry {
    let rules = forms::MATCHING_RULES
        .iter()
        .map(|rule| format!("( {} NAME '{}' SYNTAX {} )", rule.oid, rule.name, rule.syntax));
    let syntaxes = forms::SYNTAXES.iter().map(|(oid, name)| format!("( {oid} DESC '{name}' )"));
    let mut entry = Entry::new(SUBSCHEMA_NAME)
        .with("objectClass", ["top", "subentry", "subschema"])
        .with("cn", ["Subschema"]);
    entry.attributes.extend([
        definitions("ldapSyntaxes", syntaxes),
        definitions("matchingRules", rules),
        definitions("attributeTypes", ATTRIBUTE_TYPES.iter().map(super::AttributeType::definition)),
        definitions("objectClasses", OBJECT_CLASSES.iter().map(super::ObjectClass::definition)),
    ]);
    entry
}

fn definitions(name: &str, definitions: impl Iterator<Item = String>) -> Attribute {
    Attribute { name: name.to_owned(), values: definitions.map(String::into_bytes).collect() }
}
