//! Forms of values: their syntax and the rules by which they are compared (RFC 4517).

use crate::matching::{Rule, RuleUse};

/// The form of an attribute's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text in any language, compared in any case.
    Text,
    /// Text in any language, compared as it is.
    ExactText,
    /// ASCII, compared in any case; addresses may have more.
    AsciiText,
    /// A country's two letters.
    Country,
    /// Lines with `$` between.
    PostalAddress,
    /// A telephone number.
    TelephoneNumber,
    /// A fax number, perhaps with parameters.
    FacsimileNumber,
    /// Digits and spaces.
    NumericString,
    /// A whole number.
    Integer,
    /// TRUE or FALSE.
    Boolean,
    /// A point in time.
    GeneralizedTime,
    /// The name of an entry.
    DistinguishedName,
    /// The name or number of an attribute, class or rule.
    ObjectIdentifier,
    /// Bytes.
    OctetString,
    /// A unique id.
    Uuid,
    /// A picture.
    Jpeg,
    /// A certificate.
    Certificate,
    /// A definition of an attribute.
    AttributeTypeDescription,
    /// A definition of a class.
    ObjectClassDescription,
    /// A definition of a matching rule.
    MatchingRuleDescription,
    /// A definition of a syntax.
    SyntaxDescription,
}

/// A matching rule as it is published.
pub(crate) struct MatchingRule {
    pub(crate) oid: &'static str,
    pub(crate) name: &'static str,
    pub(crate) rule: Rule,
    pub(crate) rule_use: RuleUse,
    /// The syntax of what is asserted.
    pub(crate) syntax: &'static str,
}

const TEXT: &str = "1.3.6.1.4.1.1466.115.121.1.15";
const ASCII: &str = "1.3.6.1.4.1.1466.115.121.1.26";
const PARTS: &str = "1.3.6.1.4.1.1466.115.121.1.58";
const TELEPHONE: &str = "1.3.6.1.4.1.1466.115.121.1.50";
const INTEGER: &str = "1.3.6.1.4.1.1466.115.121.1.27";
const TIME: &str = "1.3.6.1.4.1.1466.115.121.1.24";
const UUID: &str = "1.3.6.1.1.16.1";
const POSTAL: &str = "1.3.6.1.4.1.1466.115.121.1.41";
const NUMERIC: &str = "1.3.6.1.4.1.1466.115.121.1.36";
const OCTETS: &str = "1.3.6.1.4.1.1466.115.121.1.40";
const NAME: &str = "1.3.6.1.4.1.1466.115.121.1.12";
const IDENTIFIER: &str = "1.3.6.1.4.1.1466.115.121.1.38";
const BOOLEAN: &str = "1.3.6.1.4.1.1466.115.121.1.7";

const fn rule(
    oid: &'static str,
    name: &'static str,
    rule: Rule,
    rule_use: RuleUse,
    syntax: &'static str,
) -> MatchingRule {
    MatchingRule { oid, name, rule, rule_use, syntax }
}

/// All rules by which values are compared here.
pub(crate) const MATCHING_RULES: &[MatchingRule] = &[
    rule("2.5.13.0", "objectIdentifierMatch", Rule::ObjectIdentifier, RuleUse::Equality, IDENTIFIER),
    rule("2.5.13.1", "distinguishedNameMatch", Rule::DistinguishedName, RuleUse::Equality, NAME),
    rule("2.5.13.2", "caseIgnoreMatch", Rule::CaseIgnore, RuleUse::Equality, TEXT),
    rule("2.5.13.3", "caseIgnoreOrderingMatch", Rule::CaseIgnore, RuleUse::Ordering, TEXT),
    rule("2.5.13.4", "caseIgnoreSubstringsMatch", Rule::CaseIgnore, RuleUse::Substrings, PARTS),
    rule("2.5.13.5", "caseExactMatch", Rule::CaseExact, RuleUse::Equality, TEXT),
    rule("2.5.13.6", "caseExactOrderingMatch", Rule::CaseExact, RuleUse::Ordering, TEXT),
    rule("2.5.13.7", "caseExactSubstringsMatch", Rule::CaseExact, RuleUse::Substrings, PARTS),
    rule("2.5.13.8", "numericStringMatch", Rule::NumericString, RuleUse::Equality, NUMERIC),
    rule("2.5.13.10", "numericStringSubstringsMatch", Rule::NumericString, RuleUse::Substrings, PARTS),
    rule("2.5.13.11", "caseIgnoreListMatch", Rule::CaseIgnoreList, RuleUse::Equality, POSTAL),
    rule("2.5.13.12", "caseIgnoreListSubstringsMatch", Rule::CaseIgnoreList, RuleUse::Substrings, PARTS),
    rule("2.5.13.13", "booleanMatch", Rule::Boolean, RuleUse::Equality, BOOLEAN),
    rule("2.5.13.14", "integerMatch", Rule::Integer, RuleUse::Equality, INTEGER),
    rule("2.5.13.15", "integerOrderingMatch", Rule::Integer, RuleUse::Ordering, INTEGER),
    rule("2.5.13.17", "octetStringMatch", Rule::OctetString, RuleUse::Equality, OCTETS),
    rule("2.5.13.20", "telephoneNumberMatch", Rule::TelephoneNumber, RuleUse::Equality, TELEPHONE),
    rule("2.5.13.21", "telephoneNumberSubstringsMatch", Rule::TelephoneNumber, RuleUse::Substrings, PARTS),
    rule("2.5.13.27", "generalizedTimeMatch", Rule::GeneralizedTime, RuleUse::Equality, TIME),
    rule("2.5.13.28", "generalizedTimeOrderingMatch", Rule::GeneralizedTime, RuleUse::Ordering, TIME),
    rule("1.3.6.1.4.1.1466.109.114.1", "caseExactIA5Match", Rule::CaseExact, RuleUse::Equality, ASCII),
    rule("1.3.6.1.4.1.1466.109.114.2", "caseIgnoreIA5Match", Rule::CaseIgnore, RuleUse::Equality, ASCII),
    rule(
        "1.3.6.1.4.1.1466.109.114.3",
        "caseIgnoreIA5SubstringsMatch",
        Rule::CaseIgnore,
        RuleUse::Substrings,
        PARTS,
    ),
    rule("1.3.6.1.1.16.2", "uuidMatch", Rule::Uuid, RuleUse::Equality, UUID),
    rule("1.3.6.1.1.16.3", "uuidOrderingMatch", Rule::Uuid, RuleUse::Ordering, UUID),
    rule("1.2.840.113556.1.4.803", "integerBitAndMatch", Rule::BitAnd, RuleUse::Equality, INTEGER),
    rule("1.2.840.113556.1.4.804", "integerBitOrMatch", Rule::BitOr, RuleUse::Equality, INTEGER),
];

/// All syntaxes, with their names.
pub(crate) const SYNTAXES: &[(&str, &str)] = &[
    ("1.3.6.1.4.1.1466.115.121.1.3", "Attribute Type Description"),
    (BOOLEAN, "Boolean"),
    ("1.3.6.1.4.1.1466.115.121.1.8", "Certificate"),
    ("1.3.6.1.4.1.1466.115.121.1.11", "Country String"),
    (NAME, "DN"),
    (TEXT, "Directory String"),
    ("1.3.6.1.4.1.1466.115.121.1.22", "Facsimile Telephone Number"),
    (TIME, "Generalized Time"),
    (ASCII, "IA5 String"),
    (INTEGER, "INTEGER"),
    ("1.3.6.1.4.1.1466.115.121.1.28", "JPEG"),
    ("1.3.6.1.4.1.1466.115.121.1.30", "Matching Rule Description"),
    (NUMERIC, "Numeric String"),
    ("1.3.6.1.4.1.1466.115.121.1.37", "Object Class Description"),
    (IDENTIFIER, "OID"),
    (OCTETS, "Octet String"),
    (POSTAL, "Postal Address"),
    (TELEPHONE, "Telephone Number"),
    ("1.3.6.1.4.1.1466.115.121.1.54", "LDAP Syntax Description"),
    (PARTS, "Substring Assertion"),
    (UUID, "UUID"),
];

impl Form {
    /// The number of the syntax.
    #[must_use]
    pub fn syntax(self) -> &'static str {
        match self {
            Self::Text | Self::ExactText => TEXT,
            Self::AsciiText => ASCII,
            Self::Country => "1.3.6.1.4.1.1466.115.121.1.11",
            Self::PostalAddress => POSTAL,
            Self::TelephoneNumber => TELEPHONE,
            Self::FacsimileNumber => "1.3.6.1.4.1.1466.115.121.1.22",
            Self::NumericString => NUMERIC,
            Self::Integer => INTEGER,
            Self::Boolean => BOOLEAN,
            Self::GeneralizedTime => TIME,
            Self::DistinguishedName => NAME,
            Self::ObjectIdentifier => IDENTIFIER,
            Self::OctetString => OCTETS,
            Self::Uuid => UUID,
            Self::Jpeg => "1.3.6.1.4.1.1466.115.121.1.28",
            Self::Certificate => "1.3.6.1.4.1.1466.115.121.1.8",
            Self::AttributeTypeDescription => "1.3.6.1.4.1.1466.115.121.1.3",
            Self::ObjectClassDescription => "1.3.6.1.4.1.1466.115.121.1.37",
            Self::MatchingRuleDescription => "1.3.6.1.4.1.1466.115.121.1.30",
            Self::SyntaxDescription => "1.3.6.1.4.1.1466.115.121.1.54",
        }
    }

    /// The name of the rule for a use, if values of this form are compared in that way.
    #[must_use]
    pub fn rule_name(self, rule_use: RuleUse) -> Option<&'static str> {
        let (equality, ordering, substrings) = match self {
            Self::Text | Self::Country => {
                ("caseIgnoreMatch", "caseIgnoreOrderingMatch", "caseIgnoreSubstringsMatch")
            }
            Self::ExactText => ("caseExactMatch", "caseExactOrderingMatch", "caseExactSubstringsMatch"),
            Self::AsciiText => ("caseIgnoreIA5Match", "", "caseIgnoreIA5SubstringsMatch"),
            Self::PostalAddress => ("caseIgnoreListMatch", "", "caseIgnoreListSubstringsMatch"),
            Self::TelephoneNumber | Self::FacsimileNumber => {
                ("telephoneNumberMatch", "", "telephoneNumberSubstringsMatch")
            }
            Self::NumericString => ("numericStringMatch", "", "numericStringSubstringsMatch"),
            Self::Integer => ("integerMatch", "integerOrderingMatch", ""),
            Self::Boolean => ("booleanMatch", "", ""),
            Self::GeneralizedTime => ("generalizedTimeMatch", "generalizedTimeOrderingMatch", ""),
            Self::DistinguishedName => ("distinguishedNameMatch", "", ""),
            Self::ObjectIdentifier => ("objectIdentifierMatch", "", ""),
            Self::OctetString => ("octetStringMatch", "", ""),
            Self::Uuid => ("uuidMatch", "uuidOrderingMatch", ""),
            Self::Jpeg
            | Self::Certificate
            | Self::AttributeTypeDescription
            | Self::ObjectClassDescription
            | Self::MatchingRuleDescription
            | Self::SyntaxDescription => ("", "", ""),
        };
        let name = match rule_use {
            RuleUse::Equality => equality,
            RuleUse::Ordering => ordering,
            RuleUse::Substrings => substrings,
        };
        (!name.is_empty()).then_some(name)
    }

    /// The rule for a use, if values of this form are compared in that way.
    #[must_use]
    pub fn rule(self, rule_use: RuleUse) -> Option<Rule> {
        self.rule_name(rule_use)?;
        Some(match self {
            Self::Text | Self::Country | Self::AsciiText => Rule::CaseIgnore,
            Self::ExactText => Rule::CaseExact,
            Self::PostalAddress => Rule::CaseIgnoreList,
            Self::TelephoneNumber | Self::FacsimileNumber => Rule::TelephoneNumber,
            Self::NumericString => Rule::NumericString,
            Self::Integer => Rule::Integer,
            Self::Boolean => Rule::Boolean,
            Self::GeneralizedTime => Rule::GeneralizedTime,
            Self::DistinguishedName => Rule::DistinguishedName,
            Self::ObjectIdentifier => Rule::ObjectIdentifier,
            Self::Uuid => Rule::Uuid,
            _ => Rule::OctetString,
        })
    }
}
