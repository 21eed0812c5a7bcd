//! Distinguished names that are nearly ones.

use scrinium_ldap_wire::{
    DistinguishedName, Identifier, NAME_MAX_BYTES, NAME_MAX_PARTS, NameFault, RelativeName,
};

fn fault(text: &str) -> NameFault {
    DistinguishedName::parse(text).expect_err(text).what
}

#[test]
fn what_is_no_name_is_refused() {
    for (text, what) in [
        ("cn", NameFault::Part),
        ("=a", NameFault::Part),
        ("cn=a,", NameFault::Part),
        (",cn=a", NameFault::Part),
        ("cn=a,,cn=b", NameFault::Part),
        ("cn=a+", NameFault::Part),
        ("c n=a", NameFault::Part),
        ("cn;lang-de=a", NameFault::Part),
        ("cn=a\"b", NameFault::Value),
        ("cn=a<b", NameFault::Value),
        ("cn=\"a\"b", NameFault::Value),
        ("cn=\"a", NameFault::Value),
        ("cn=a\\", NameFault::Value),
        ("cn=a\\4", NameFault::Value),
        ("cn=a\\zz", NameFault::Value),
        ("cn=a\0b", NameFault::Value),
        ("cn=#", NameFault::Hexadecimal),
        ("cn=#0", NameFault::Hexadecimal),
        ("cn=#0405616263", NameFault::Hexadecimal),
        ("cn=#04016162", NameFault::Hexadecimal),
        ("cn=#3000", NameFault::Hexadecimal),
        ("cn=#048480000000", NameFault::Hexadecimal),
    ] {
        assert_eq!(fault(text), what, "{text}");
    }
    assert_eq!(fault(&"a".repeat(NAME_MAX_BYTES + 1)), NameFault::TooLong);
    assert_eq!(fault(&"cn=a,".repeat(NAME_MAX_PARTS + 1)), NameFault::TooManyParts);
    assert_eq!(fault(&"cn=a+".repeat(NAME_MAX_PARTS + 1)), NameFault::TooManyParts);
}

#[test]
fn a_value_of_a_stranger_stays_one_value() {
    let base = DistinguishedName::parse("ou=people,dc=example").unwrap();
    let uid = Identifier::parse("uid").unwrap();
    for value in
        ["x,ou=admins", "a+cn=b", " lead", "trail ", "#04", "\\2c", "", " ", "a=b", "a\0b", "\"q\"", "\r\n"]
    {
        let name = base.child(RelativeName::new(uid.clone(), value.as_bytes()));
        let read = DistinguishedName::parse(&name.to_string()).unwrap();
        assert_eq!(read, name, "{value:?}");
        assert_eq!(read.parent(), Some(base.clone()));
    }
}

#[test]
fn a_name_inside_a_name_inside_a_name_costs_one_pass() {
    let nested = "member=".repeat(1100) + "cn=a";
    let name = DistinguishedName::parse(&nested).unwrap();
    assert_eq!(name.parts.len(), 1);
    let normal = scrinium_ldap_wire::NormalName::of(&name);
    assert_eq!(
        normal,
        scrinium_ldap_wire::NormalName::of(&DistinguishedName::parse(&nested.to_uppercase()).unwrap())
    );
}
