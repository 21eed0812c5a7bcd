//! Attributes.

use std::fmt::Write as _;

use super::forms::Form;
use crate::matching::{Rule, RuleUse};

/// What an attribute is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// People write it.
    UserApplications,
    /// The directory writes it, for every server that has the entry.
    DirectoryOperation,
    /// A server writes it, for itself.
    DsaOperation,
}

/// A type of attributes (RFC 4512, section 4.1.2).
#[derive(Debug, PartialEq, Eq)]
pub struct AttributeType {
    /// Its number.
    pub oid: &'static str,
    /// Its names; the first is the usual one.
    pub names: &'static [&'static str],
    /// The form of its values.
    pub form: Form,
    /// The type that it is a kind of; empty for most.
    pub superior: &'static str,
    /// Whether an entry has one value at most.
    pub single_value: bool,
    usage: Usage,
}

impl AttributeType {
    /// What it is for.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The rule by which its values are compared for this use.
    #[must_use]
    pub fn rule(&self, rule_use: RuleUse) -> Option<Rule> {
        self.form.rule(rule_use)
    }

    pub(crate) fn equality(&self) -> Option<Rule> {
        self.rule(RuleUse::Equality)
    }

    /// Whether it is this type or a kind of it, as `sn` is a kind of `name`.
    #[must_use]
    pub fn is_kind_of(&self, general: &Self) -> bool {
        self.oid == general.oid
            || super::attribute_type(self.superior).is_some_and(|superior| superior.oid == general.oid)
    }

    /// Its definition (RFC 4512, section 4.1.2).
    #[must_use]
    pub fn definition(&self) -> String {
        let mut text = format!("( {} NAME ", self.oid);
        match self.names {
            [name] => {
                let _ = write!(text, "'{name}'");
            }
            names => {
                let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
                let _ = write!(text, "( {} )", names.join(" "));
            }
        }
        if !self.superior.is_empty() {
            let _ = write!(text, " SUP {}", self.superior);
        }
        for (word, rule_use) in [
            ("EQUALITY", RuleUse::Equality),
            ("ORDERING", RuleUse::Ordering),
            ("SUBSTR", RuleUse::Substrings),
        ] {
            if let Some(name) = self.form.rule_name(rule_use) {
                let _ = write!(text, " {word} {name}");
            }
        }
        let _ = write!(text, " SYNTAX {}", self.form.syntax());
        if self.single_value {
            text.push_str(" SINGLE-VALUE");
        }
        text.push_str(match self.usage {
            Usage::UserApplications => "",
            Usage::DirectoryOperation => " NO-USER-MODIFICATION USAGE directoryOperation",
            Usage::DsaOperation => " NO-USER-MODIFICATION USAGE dSAOperation",
        });
        text.push_str(" )");
        text
    }
}

const fn many(oid: &'static str, names: &'static [&'static str], form: Form) -> AttributeType {
    AttributeType { oid, names, form, superior: "", single_value: false, usage: Usage::UserApplications }
}

const fn single(oid: &'static str, names: &'static [&'static str], form: Form) -> AttributeType {
    AttributeType { single_value: true, ..many(oid, names, form) }
}

/// A kind of `name` (RFC 4519, section 2.18).
const fn name(oid: &'static str, names: &'static [&'static str]) -> AttributeType {
    AttributeType { superior: "name", ..many(oid, names, Form::Text) }
}

/// A kind of `distinguishedName` (RFC 4519, section 2.7).
const fn reference(oid: &'static str, names: &'static [&'static str]) -> AttributeType {
    AttributeType { superior: "distinguishedName", ..many(oid, names, Form::DistinguishedName) }
}

const fn operational(oid: &'static str, names: &'static [&'static str], form: Form) -> AttributeType {
    AttributeType { usage: Usage::DirectoryOperation, ..single(oid, names, form) }
}

const fn of_schema(oid: &'static str, names: &'static [&'static str], form: Form) -> AttributeType {
    AttributeType { usage: Usage::DirectoryOperation, ..many(oid, names, form) }
}

const fn of_server(oid: &'static str, names: &'static [&'static str], form: Form) -> AttributeType {
    AttributeType { usage: Usage::DsaOperation, ..many(oid, names, form) }
}

/// All attributes that are known.
pub const ATTRIBUTE_TYPES: &[AttributeType] = &[
    many("2.5.4.0", &["objectClass"], Form::ObjectIdentifier),
    many("2.5.4.41", &["name"], Form::Text),
    many("2.5.4.49", &["distinguishedName"], Form::DistinguishedName),
    // People (RFC 4519, 4524, 2798).
    name("2.5.4.3", &["cn", "commonName"]),
    name("2.5.4.4", &["sn", "surname"]),
    name("2.5.4.42", &["givenName", "gn"]),
    name("2.5.4.43", &["initials"]),
    name("2.5.4.44", &["generationQualifier"]),
    name("2.5.4.12", &["title"]),
    single("2.16.840.1.113730.3.1.241", &["displayName"], Form::Text),
    many("0.9.2342.19200300.100.1.1", &["uid", "userid"], Form::Text),
    many("0.9.2342.19200300.100.1.3", &["mail", "rfc822Mailbox"], Form::AsciiText),
    many("2.5.4.20", &["telephoneNumber"], Form::TelephoneNumber),
    many("0.9.2342.19200300.100.1.41", &["mobile", "mobileTelephoneNumber"], Form::TelephoneNumber),
    many("0.9.2342.19200300.100.1.20", &["homePhone", "homeTelephoneNumber"], Form::TelephoneNumber),
    many("0.9.2342.19200300.100.1.42", &["pager", "pagerTelephoneNumber"], Form::TelephoneNumber),
    many("2.5.4.23", &["facsimileTelephoneNumber", "fax"], Form::FacsimileNumber),
    many("0.9.2342.19200300.100.1.6", &["roomNumber"], Form::Text),
    many("0.9.2342.19200300.100.1.39", &["homePostalAddress"], Form::PostalAddress),
    many("2.5.4.15", &["businessCategory"], Form::Text),
    many("2.16.840.1.113730.3.1.1", &["carLicense"], Form::Text),
    many("2.16.840.1.113730.3.1.2", &["departmentNumber"], Form::Text),
    single("2.16.840.1.113730.3.1.3", &["employeeNumber"], Form::Text),
    many("2.16.840.1.113730.3.1.4", &["employeeType"], Form::Text),
    single("2.16.840.1.113730.3.1.39", &["preferredLanguage"], Form::Text),
    many("0.9.2342.19200300.100.1.60", &["jpegPhoto"], Form::Jpeg),
    many("1.3.6.1.4.1.250.1.57", &["labeledURI"], Form::ExactText),
    many("0.9.2342.19200300.100.1.10", &["manager"], Form::DistinguishedName),
    many("0.9.2342.19200300.100.1.21", &["secretary"], Form::DistinguishedName),
    many("2.5.4.35", &["userPassword"], Form::OctetString),
    many("2.5.4.36", &["userCertificate"], Form::Certificate),
    many("2.16.840.1.113730.3.1.40", &["userSMIMECertificate"], Form::OctetString),
    many("2.5.4.45", &["x500UniqueIdentifier"], Form::OctetString),
    // Places and organisations (RFC 4519).
    name("2.5.4.10", &["o", "organizationName"]),
    name("2.5.4.11", &["ou", "organizationalUnitName"]),
    name("2.5.4.7", &["l", "localityName"]),
    name("2.5.4.8", &["st", "stateOrProvinceName"]),
    AttributeType { superior: "name", ..single("2.5.4.6", &["c", "countryName"], Form::Country) },
    many("2.5.4.9", &["street", "streetAddress"], Form::Text),
    many("2.5.4.16", &["postalAddress"], Form::PostalAddress),
    many("2.5.4.17", &["postalCode"], Form::Text),
    many("2.5.4.18", &["postOfficeBox"], Form::Text),
    many("2.5.4.19", &["physicalDeliveryOfficeName"], Form::Text),
    many("2.5.4.26", &["registeredAddress"], Form::PostalAddress),
    many("2.5.4.28", &["preferredDeliveryMethod"], Form::Text),
    many("2.5.4.27", &["destinationIndicator"], Form::Text),
    many("2.5.4.24", &["x121Address"], Form::NumericString),
    many("2.5.4.25", &["internationalISDNNumber"], Form::NumericString),
    many("2.5.4.21", &["telexNumber"], Form::Text),
    many("2.5.4.13", &["description"], Form::Text),
    single("0.9.2342.19200300.100.1.25", &["dc", "domainComponent"], Form::AsciiText),
    // Groups and references.
    reference("2.5.4.31", &["member"]),
    reference("2.5.4.32", &["owner"]),
    reference("2.5.4.34", &["seeAlso"]),
    AttributeType {
        usage: Usage::DirectoryOperation,
        ..many("1.2.840.113556.1.2.102", &["memberOf"], Form::DistinguishedName)
    },
    // What the directory writes (RFC 4512, section 3.4; RFC 4530; RFC 5020).
    operational("2.5.18.1", &["createTimestamp"], Form::GeneralizedTime),
    operational("2.5.18.2", &["modifyTimestamp"], Form::GeneralizedTime),
    operational("2.5.18.3", &["creatorsName"], Form::DistinguishedName),
    operational("2.5.18.4", &["modifiersName"], Form::DistinguishedName),
    operational("2.5.18.9", &["hasSubordinates"], Form::Boolean),
    operational("2.5.18.10", &["subschemaSubentry"], Form::DistinguishedName),
    operational("2.5.21.9", &["structuralObjectClass"], Form::ObjectIdentifier),
    operational("1.3.6.1.1.16.4", &["entryUUID"], Form::Uuid),
    operational("1.3.6.1.1.20", &["entryDN"], Form::DistinguishedName),
    // The schema itself (RFC 4512, section 4.2).
    of_schema("2.5.21.4", &["matchingRules"], Form::MatchingRuleDescription),
    of_schema("2.5.21.5", &["attributeTypes"], Form::AttributeTypeDescription),
    of_schema("2.5.21.6", &["objectClasses"], Form::ObjectClassDescription),
    of_schema("1.3.6.1.4.1.1466.101.120.16", &["ldapSyntaxes"], Form::SyntaxDescription),
    // The root (RFC 4512, section 5.1; RFC 3045).
    of_server("1.3.6.1.4.1.1466.101.120.5", &["namingContexts"], Form::DistinguishedName),
    of_server("1.3.6.1.4.1.1466.101.120.6", &["altServer"], Form::AsciiText),
    of_server("1.3.6.1.4.1.1466.101.120.7", &["supportedExtension"], Form::ObjectIdentifier),
    of_server("1.3.6.1.4.1.1466.101.120.13", &["supportedControl"], Form::ObjectIdentifier),
    of_server("1.3.6.1.4.1.1466.101.120.14", &["supportedSASLMechanisms"], Form::Text),
    of_server("1.3.6.1.4.1.1466.101.120.15", &["supportedLDAPVersion"], Form::Integer),
    of_server("1.3.6.1.4.1.4203.1.3.5", &["supportedFeatures"], Form::ObjectIdentifier),
    of_server("1.3.6.1.1.4", &["vendorName"], Form::ExactText),
    of_server("1.3.6.1.1.5", &["vendorVersion"], Form::ExactText),
];
