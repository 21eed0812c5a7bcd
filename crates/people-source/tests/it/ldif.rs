//! LDIF: the forms of RFC 2849, and what is nearly one.

use proptest::prelude::*;
use scrinium_ldap_wire::{Entry, ModifyAction};
use scrinium_people_source::{LdifContent, LdifError, LdifFault, LdifLimits, entries_of, read_ldif};

fn entries(text: &str) -> Result<Vec<Entry>, LdifError> {
    entries_of(read_ldif(text.as_bytes(), LdifLimits::default())?)
}

const CONTENT: &str = "\
# A comment
# that goes
  on

version: 1
dn: uid=ada,ou=people,dc=example
objectClass: person
objectClass: inetOrgPerson
cn: Ada
  Lovelace
sn:Lovelace
description:: QSBub3RlCm9mIHR3byBsaW5lcw==
# between
mail: ada@example.test
MAIL: a@example.test
seeAlso:


dn:: dWlkPWpvc8OpLG91PXBlb3BsZSxkYz1leGFtcGxl
cn: José
";

#[test]
fn content() {
    for text in [CONTENT.to_owned(), CONTENT.replace('\n', "\r\n"), format!("\u{feff}{CONTENT}")] {
        let entries = entries(&text).unwrap();
        let [ada, jose] = entries.as_slice() else { panic!("two entries") };
        assert_eq!(ada.text("cn"), Some("Ada Lovelace"));
        assert_eq!((ada.text("sn"), ada.text("seeAlso")), (Some("Lovelace"), Some("")));
        assert_eq!(ada.text("description"), Some("A note\nof two lines"));
        assert_eq!(ada.values("mail").count(), 2);
        assert_eq!((jose.name.as_str(), jose.text("cn")), ("uid=josé,ou=people,dc=example", Some("José")));
    }
}

const CHANGES: &str = "\
version: 1

dn: uid=ada,dc=example
control: 1.2.840.113556.1.4.805 false
changetype: add
uid: ada
cn: Ada
title: Miss
mail: a@example.test
mail: b@example.test

dn: UID=Ada, DC=example
changetype: modify
replace: title
title: Countess
-
delete: mail
mail: a@example.test
-
add: mail
mail: c@example.test
mail: b@example.test
-
delete: cn
-
replace: description

dn: uid=ada,dc=example
changetype: modrdn
newrdn: uid=countess
deleteoldrdn: 1
newsuperior: ou=people,dc=example

dn: uid=bob,dc=example
cn: Bob

dn: uid=bob,dc=example
changetype: delete

dn: uid=bob,dc=example
changetype: add
cn: Another Bob
";

#[test]
fn changes_are_made_in_their_order() {
    let entries = entries(CHANGES).unwrap();
    let [ada, bob] = entries.as_slice() else { panic!("two entries: {entries:#?}") };
    assert_eq!((ada.name.as_str(), ada.text("uid")), ("uid=countess,ou=people,dc=example", Some("countess")));
    assert_eq!((ada.text("title"), ada.text("cn")), (Some("Countess"), None));
    let mail: Vec<&[u8]> = ada.values("mail").collect();
    assert_eq!(mail, [b"b@example.test".as_slice(), b"c@example.test"]);
    assert_eq!(bob.text("cn"), Some("Another Bob"));
    let records = read_ldif(CHANGES.as_bytes(), LdifLimits::default()).unwrap();
    let LdifContent::Modify(changes) = &records[1].content else { panic!("a modify") };
    let actions: Vec<ModifyAction> = changes.iter().map(|(action, _)| *action).collect();
    use ModifyAction::{Add, Delete, Replace};
    assert_eq!(actions, [Replace, Delete, Add, Delete, Replace]);
    assert_eq!(records[1].line, 12);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let changed = "dn: cn=a\ncn: a\n\ndn: cn=a\n";
    for (text, line, fault) in [
        ("version: 2\ndn: cn=a\n", 1, LdifFault::Version),
        (" cn: a\n", 1, LdifFault::Fold),
        ("cn: a\n", 1, LdifFault::Name),
        ("dn: a\n", 1, LdifFault::DistinguishedName("a".to_owned())),
        ("dn:: _\n", 1, LdifFault::Base64),
        ("dn:: /w==\n", 1, LdifFault::Text),
        ("dn: cn=a\ncn\n", 2, LdifFault::Line),
        ("dn: cn=a\n: a\n", 2, LdifFault::Line),
        ("dn: cn=a\nc n: a\n", 2, LdifFault::Line),
        ("dn: cn=a\ncn:: YQ=\n", 2, LdifFault::Base64),
        ("dn: cn=a\njpegPhoto:< file:///etc/passwd\n", 2, LdifFault::Url),
        ("dn: cn=a\ncontrol: 1.2.3 true\nchangetype: delete\n", 2, LdifFault::Control("1.2.3".to_owned())),
        ("dn: cn=a\nchangetype: rename\n", 1, LdifFault::ChangeType("rename".to_owned())),
        ("dn: cn=a\nchangetype: delete\ncn: a\n", 3, LdifFault::Change("delete")),
        ("dn: cn=a\nchangetype: modify\ncn: a\n", 3, LdifFault::Change("modify")),
        ("dn: cn=a\nchangetype: modify\nadd: cn\nsn: a\n", 4, LdifFault::Change("modify")),
        ("dn: cn=a\nchangetype: modrdn\nnewrdn: cn=b\n", 1, LdifFault::Change("modrdn")),
        ("dn: cn=a\n\ndn: CN=A\n", 3, LdifFault::Exists("CN=A".to_owned())),
        ("dn: cn=a\nchangetype: delete\n", 1, LdifFault::NoEntry("cn=a".to_owned())),
        (
            &format!("{changed}changetype: modrdn\nnewrdn: a\ndeleteoldrdn: 1\n"),
            4,
            LdifFault::DistinguishedName("a".to_owned()),
        ),
        (
            &format!("{changed}changetype: modrdn\nnewrdn: cn=b\ndeleteoldrdn: x\n"),
            7,
            LdifFault::Change("modrdn"),
        ),
    ] {
        assert_eq!(entries(text), Err(LdifError { line, fault }), "{text}");
    }
}

#[test]
fn limits() {
    let limits = LdifLimits { bytes: 1000, records: 2, lines: 3, value_bytes: 20 };
    let read = |text: &str| read_ldif(text.as_bytes(), limits).unwrap_err();
    let error = |line, fault| LdifError { line, fault };
    assert_eq!(read(&"#".repeat(1001)), error(1, LdifFault::TooLarge(1000)));
    assert_eq!(read(&"dn: cn=a\n\n".repeat(3)), error(5, LdifFault::TooManyRecords(2)));
    assert_eq!(read("dn: cn=a\na: 1\na: 2\na: 3\n"), error(4, LdifFault::TooManyLines(3)));
    assert_eq!(read("dn: cn=a\na: 123456789\n 0123456789\n"), error(2, LdifFault::ValueTooLong(20)));
}

proptest! {
    #[test]
    fn any_text(lines in proptest::collection::vec(prop_oneof![
        Just("dn: cn=a"), Just("dn: cn=b"), Just(""), Just("changetype: modify"), Just("changetype: delete"),
        Just("changetype: modrdn"), Just("newrdn: cn=b"), Just("deleteoldrdn: 1"), Just("add: cn"), Just("cn: x"),
        Just("-"), Just("delete: cn"), Just(" fold"), Just("# note"), Just("cn:: eA=="), Just("version: 1"),
    ], 0..20), bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = entries(&lines.join("\n"));
        let _ = read_ldif(&bytes, LdifLimits::default());
    }
}
