//! The schema holds together.

use std::collections::HashSet;

use scrinium_ldap_wire::schema::{
    ATTRIBUTE_TYPES, OBJECT_CLASSES, RootDse, attribute_type, attributes_of_class, matching_rule,
    object_class, subschema_entry,
};
use scrinium_ldap_wire::{PAGED_RESULTS, RuleUse, START_TLS, Selection};

#[test]
fn every_name_and_number_is_of_one_thing_and_leads_somewhere() {
    let mut seen = HashSet::new();
    for known in ATTRIBUTE_TYPES {
        assert!(seen.insert(known.oid.to_owned()), "{}", known.oid);
        for name in known.names {
            assert!(seen.insert(name.to_lowercase()), "{name}");
            assert_eq!(attribute_type(&name.to_uppercase()), Some(known));
        }
        assert_eq!(attribute_type(known.oid), Some(known));
        assert!(known.superior.is_empty() || known.is_kind_of(attribute_type(known.superior).unwrap()));
        for rule_use in [RuleUse::Equality, RuleUse::Ordering, RuleUse::Substrings] {
            let named = known.form.rule_name(rule_use).map(|name| matching_rule(name).unwrap());
            assert_eq!(named, known.rule(rule_use).map(|rule| (rule, rule_use)), "{:?}", known.names);
        }
    }
    for class in OBJECT_CLASSES {
        assert!(
            seen.insert(class.oid.to_owned()) && seen.insert(class.name.to_lowercase()),
            "{}",
            class.name
        );
        assert!(class.superior.is_empty() || object_class(class.superior).is_some());
        assert!(
            class.must.iter().chain(class.may).all(|name| attribute_type(name).is_some()),
            "{}",
            class.name
        );
    }
    let person = attributes_of_class("INETORGPERSON");
    assert!(["objectClass", "sn", "telephoneNumber", "ou", "mail"].iter().all(|name| person.contains(name)));
    assert!(attributes_of_class("nobody").is_empty());
}

#[test]
fn definitions_are_what_the_standards_print() {
    let definition = |name: &str| attribute_type(name).unwrap().definition();
    assert_eq!(
        definition("sn"),
        "( 2.5.4.4 NAME ( 'sn' 'surname' ) SUP name EQUALITY caseIgnoreMatch ORDERING caseIgnoreOrderingMatch SUBSTR \
         caseIgnoreSubstringsMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )"
    );
    assert_eq!(
        definition("entryUUID"),
        "( 1.3.6.1.1.16.4 NAME 'entryUUID' EQUALITY uuidMatch ORDERING uuidOrderingMatch SYNTAX 1.3.6.1.1.16.1 \
         SINGLE-VALUE NO-USER-MODIFICATION USAGE directoryOperation )"
    );
    assert_eq!(
        object_class("person").unwrap().definition(),
        "( 2.5.6.6 NAME 'person' SUP top STRUCTURAL MUST ( sn $ cn ) MAY ( userPassword $ telephoneNumber $ seeAlso $ \
         description ) )"
    );
}

#[test]
fn the_schema_is_an_entry_whose_parts_are_asked_for_by_name() {
    let entry = subschema_entry();
    assert_eq!(entry.values("attributeTypes").count(), ATTRIBUTE_TYPES.len());
    assert_eq!(entry.values("objectclasses").count(), OBJECT_CLASSES.len());
    let names = |asked: &[&str]| -> Vec<String> {
        let asked: Vec<String> = asked.iter().map(|&name| name.to_owned()).collect();
        let found = Selection::new(&asked).apply(&entry, true);
        assert!(found.attributes.iter().all(|attribute| attribute.values.is_empty()));
        found.attributes.into_iter().map(|attribute| attribute.name).collect()
    };
    assert_eq!(names(&[]), ["objectClass", "cn"]);
    assert_eq!(names(&["+"]), ["ldapSyntaxes", "matchingRules", "attributeTypes", "objectClasses"]);
    assert_eq!(names(&["OBJECTCLASSES"]), ["objectClasses"]);
}

#[test]
fn the_root_says_what_is_served() {
    let root = RootDse {
        naming_contexts: &["dc=example,dc=test"],
        controls: &[PAGED_RESULTS],
        extensions: &[START_TLS],
        mechanisms: &[],
        vendor_name: "Scrinium",
        vendor_version: "",
    };
    let entry = root.entry();
    assert_eq!((entry.name.as_str(), entry.text("supportedLDAPVersion")), ("", Some("3")));
    assert_eq!(entry.text("namingContexts"), Some("dc=example,dc=test"));
    // Nothing to say is no attribute.
    assert!(entry.text("vendorVersion").is_none() && entry.text("supportedSASLMechanisms").is_none());
}
