//! Classes of entries.

use std::fmt::Write as _;

/// What a class is to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassKind {
    /// Others are made of it.
    Abstract,
    /// It says what an entry is.
    Structural,
    /// It adds to what an entry is.
    Auxiliary,
}

/// A class of entries (RFC 4512, section 4.1.1).
#[derive(Debug, PartialEq, Eq)]
pub struct ObjectClass {
    /// Its number.
    pub oid: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The class that it is a kind of; empty for `top`.
    pub superior: &'static str,
    /// What it is to an entry.
    pub kind: ClassKind,
    /// Attributes that an entry must have.
    pub must: &'static [&'static str],
    /// Attributes that it may have.
    pub may: &'static [&'static str],
}

impl ObjectClass {
    /// Its definition (RFC 4512, section 4.1.1).
    #[must_use]
    pub fn definition(&self) -> String {
        let mut text = format!("( {} NAME '{}'", self.oid, self.name);
        if !self.superior.is_empty() {
            let _ = write!(text, " SUP {}", self.superior);
        }
        text.push_str(match self.kind {
            ClassKind::Abstract => " ABSTRACT",
            ClassKind::Structural => " STRUCTURAL",
            ClassKind::Auxiliary => " AUXILIARY",
        });
        for (word, names) in [("MUST", self.must), ("MAY", self.may)] {
            if !names.is_empty() {
                let _ = write!(text, " {word} ( {} )", names.join(" $ "));
            }
        }
        text.push_str(" )");
        text
    }
}

/// What `organization` and `organizationalUnit` may have (RFC 4519, sections 3.8 and 3.11).
const OF_ORGANIZATIONS: &[&str] = &[
    "userPassword",
    "seeAlso",
    "businessCategory",
    "x121Address",
    "registeredAddress",
    "destinationIndicator",
    "preferredDeliveryMethod",
    "telexNumber",
    "telephoneNumber",
    "internationalISDNNumber",
    "facsimileTelephoneNumber",
    "street",
    "postOfficeBox",
    "postalCode",
    "postalAddress",
    "physicalDeliveryOfficeName",
    "st",
    "l",
    "description",
];

/// All classes that are known.
pub const OBJECT_CLASSES: &[ObjectClass] = &[
    ObjectClass {
        oid: "2.5.6.0",
        name: "top",
        superior: "",
        kind: ClassKind::Abstract,
        must: &["objectClass"],
        may: &[],
    },
    ObjectClass {
        oid: "2.5.6.6",
        name: "person",
        superior: "top",
        kind: ClassKind::Structural,
        must: &["sn", "cn"],
        may: &["userPassword", "telephoneNumber", "seeAlso", "description"],
    },
    ObjectClass {
        oid: "2.5.6.7",
        name: "organizationalPerson",
        superior: "person",
        kind: ClassKind::Structural,
        must: &[],
        may: &[
            "title",
            "x121Address",
            "registeredAddress",
            "destinationIndicator",
            "preferredDeliveryMethod",
            "telexNumber",
            "internationalISDNNumber",
            "facsimileTelephoneNumber",
            "street",
            "postOfficeBox",
            "postalCode",
            "postalAddress",
            "physicalDeliveryOfficeName",
            "ou",
            "st",
            "l",
        ],
    },
    ObjectClass {
        oid: "2.16.840.1.113730.3.2.2",
        name: "inetOrgPerson",
        superior: "organizationalPerson",
        kind: ClassKind::Structural,
        must: &[],
        may: &[
            "businessCategory",
            "carLicense",
            "departmentNumber",
            "displayName",
            "employeeNumber",
            "employeeType",
            "givenName",
            "homePhone",
            "homePostalAddress",
            "initials",
            "jpegPhoto",
            "labeledURI",
            "mail",
            "manager",
            "mobile",
            "o",
            "pager",
            "roomNumber",
            "secretary",
            "uid",
            "userCertificate",
            "x500UniqueIdentifier",
            "preferredLanguage",
            "userSMIMECertificate",
        ],
    },
    ObjectClass {
        oid: "2.5.6.9",
        name: "groupOfNames",
        superior: "top",
        kind: ClassKind::Structural,
        must: &["member", "cn"],
        may: &["businessCategory", "seeAlso", "owner", "ou", "o", "description", "mail"],
    },
    ObjectClass {
        oid: "2.5.6.4",
        name: "organization",
        superior: "top",
        kind: ClassKind::Structural,
        must: &["o"],
        may: OF_ORGANIZATIONS,
    },
    ObjectClass {
        oid: "2.5.6.5",
        name: "organizationalUnit",
        superior: "top",
        kind: ClassKind::Structural,
        must: &["ou"],
        may: OF_ORGANIZATIONS,
    },
    ObjectClass {
        oid: "1.3.6.1.4.1.1466.344",
        name: "dcObject",
        superior: "top",
        kind: ClassKind::Auxiliary,
        must: &["dc"],
        may: &[],
    },
    ObjectClass {
        oid: "2.5.17.0",
        name: "subentry",
        superior: "top",
        kind: ClassKind::Structural,
        must: &["cn"],
        may: &[],
    },
    ObjectClass {
        oid: "2.5.20.1",
        name: "subschema",
        superior: "top",
        kind: ClassKind::Auxiliary,
        must: &[],
        may: &["matchingRules", "attributeTypes", "objectClasses", "ldapSyntaxes"],
    },
];
