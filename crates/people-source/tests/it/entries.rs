//! Entries of OpenLDAP and of Active Directory.

use scrinium_ldap_wire::{Attribute, Entry};
use scrinium_people_source::{
    DirectoryKind, GroupField, Member, PersonField, RecordFault, ValueRange, records_of,
};

fn texts(values: Option<&Vec<String>>) -> String {
    values.map(|values| values.join("|")).unwrap_or_else(|| "-".to_owned())
}

#[test]
fn people_and_groups_of_openldap() {
    let ada = Entry::new("uid=ada,ou=people,dc=example")
        .with("objectClass", ["inetOrgPerson"])
        .with("uid", ["ada"])
        .with("cn", ["Ada Lovelace"])
        .with("cn;lang-fr", ["Ada de Lovelace"])
        .with("sn", ["Lovelace"])
        .with("mail", ["ada@example.test", "a.lovelace@example.test", "ADA@example.test"])
        .with("preferredLanguage", ["en-gb;q=1, fr"])
        .with("userPassword", ["engine"])
        .with("entryUUID", ["597AE2F6-16a6-1027-98f4-d28b5365dc14"]);
    let closed = Entry::new("uid=charles,dc=example")
        .with("objectClass", ["person", "posixAccount"])
        .with("uid", ["charles"])
        .with("pwdAccountLockedTime", ["000001010000Z"]);
    let engines = Entry::new("cn=engines,dc=example")
        .with("objectClass", ["groupOfNames"])
        .with("cn", ["engines"])
        .with("description", ["Builders"])
        .with("member", ["uid=ada,ou=people,dc=example"]);
    let unix = Entry::new("cn=unix,dc=example")
        .with("objectClass", ["posixGroup"])
        .with("cn", ["unix"])
        .with("memberUid", ["ada", "charles"]);
    let unit = Entry::new("ou=people,dc=example").with("objectClass", ["organizationalUnit"]);
    let nameless = Entry::new("cn=x,dc=example").with("objectClass", ["person"]).with("entryUUID", ["7"]);
    let all = [ada, closed, engines, unix, unit, nameless];
    let records = records_of(&all, DirectoryKind::Standard);

    let [ada, charles] = records.people.as_slice() else { panic!("two people") };
    assert_eq!(ada.identity, "597ae2f6-16a6-1027-98f4-d28b5365dc14");
    assert_eq!(
        (ada.short_name.as_str(), ada.is_disabled, ada.has_primary_address),
        ("ada", Some(false), false)
    );
    let field = |field| texts(ada.fields.get(&field));
    assert_eq!(field(PersonField::FullName), "Ada Lovelace");
    assert_eq!(
        (field(PersonField::Address), field(PersonField::Aliases)),
        ("ada@example.test".to_owned(), "a.lovelace@example.test".to_owned())
    );
    assert_eq!(field(PersonField::Language), "en-gb");
    // A password's hash is nobody's business, nor a password.
    assert!(ada.password.is_none() && !format!("{records:?}").contains("engine\""));
    // Without an id of its own the entry's name has to serve.
    assert_eq!((charles.identity.as_str(), charles.is_disabled), ("uid=charles,dc=example", Some(true)));
    assert_eq!(texts(charles.fields.get(&PersonField::FullName)), "charles");

    let [engines, unix] = records.groups.as_slice() else { panic!("two groups") };
    assert_eq!(engines.members, [Member::Entry("uid=ada,ou=people,dc=example".to_owned())]);
    assert_eq!(texts(engines.fields.get(&GroupField::Description)), "Builders");
    assert_eq!(unix.members.len(), 2);
    let [left_out] = records.left_out.as_slice() else { panic!("one is left out") };
    assert_eq!((left_out.identity.as_deref(), &left_out.fault), (Some("7"), &RecordFault::NoName));
}

#[test]
fn people_and_groups_of_active_directory() {
    let guid = Attribute {
        name: "objectGUID".to_owned(),
        values: vec![vec![
            0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
        ]],
    };
    let mut ada = Entry::new("CN=Ada Lovelace,OU=Staff,DC=example,DC=test")
        .with("objectClass", ["top", "person", "organizationalPerson", "user"])
        .with("sAMAccountName", ["ada"])
        .with("userPrincipalName", ["ada@example.test"])
        .with("displayName", ["Ada Lovelace"])
        .with("mail", ["a.lovelace@example.test"])
        .with(
            "proxyAddresses",
            [
                "smtp:a.lovelace@example.test",
                "SMTP:ada.lovelace@example.test",
                "X400:c=GB;a= ;p=Example;s=Lovelace",
                "smtp:countess@example.test",
            ],
        )
        .with("department", ["Engines"])
        .with("userAccountControl", ["514"]);
    ada.attributes.push(guid);
    let pc = Entry::new("CN=PC7,DC=example")
        .with("objectClass", ["user", "computer"])
        .with("sAMAccountName", ["PC7$"]);
    let staff = Entry::new("CN=Staff,DC=example,DC=test")
        .with("objectClass", ["top", "group"])
        .with("cn", ["Staff"])
        .with("mail", ["staff@example.test"])
        .with("member", ["CN=Ada Lovelace,OU=Staff,DC=example,DC=test"]);
    let records = records_of(&[ada, pc, staff], DirectoryKind::ActiveDirectory);
    let [ada] = records.people.as_slice() else { panic!("one person") };
    assert_eq!(ada.identity, "00112233-4455-6677-8899-aabbccddeeff");
    assert_eq!(
        (ada.short_name.as_str(), ada.is_disabled, ada.has_primary_address),
        ("ada", Some(true), true)
    );
    assert_eq!(texts(ada.fields.get(&PersonField::Address)), "ada.lovelace@example.test");
    assert_eq!(texts(ada.fields.get(&PersonField::Aliases)), "a.lovelace@example.test|countess@example.test");
    assert_eq!(texts(records.groups[0].fields.get(&GroupField::Address)), "staff@example.test");
    assert_eq!(records.left_out_count, 0);
}

#[test]
fn values_in_ranges() {
    let mut entry = Entry::new("CN=Staff").with("member;range=0-1", ["CN=a", "CN=b"]).with("cn", ["Staff"]);
    let missing = ValueRange::join(&mut entry);
    assert_eq!(missing, [ValueRange { attribute: "member".to_owned(), next: Some(2) }]);
    assert_eq!(entry.values("member").count(), 2);
    assert_eq!(ValueRange::parse("member;range=1500-*").unwrap().next, None);
    for no_range in
        ["member", "member;lang-de", "member;range=5", "member;range=0-x", "member;range=0-4294967295"]
    {
        assert_eq!(ValueRange::parse(no_range), None);
    }
}

#[test]
fn filters_of_the_kinds_find_what_becomes_a_record() {
    assert_eq!(
        DirectoryKind::ActiveDirectory.filter().to_string(),
        "(|(&(objectCategory=person)(objectClass=user))(objectClass=group))"
    );
    assert!(DirectoryKind::Standard.filter().to_string().contains("(objectClass=posixGroup)"));
}
