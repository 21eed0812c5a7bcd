//! Filters held against entries.

use scrinium_ldap_wire::{
    Assertion, Attribute, Entry, Filter, GeneralizedTime, Matcher, MessageLimits, ResultCode, Selection,
    Truth, compare,
};

fn ada() -> Entry {
    Entry::new("uid=ada,ou=people,dc=example")
        .with("objectClass", ["top", "person", "organizationalPerson", "inetOrgPerson"])
        .with("cn", ["Ada  Lovelace", "Augusta Ada King"])
        .with("cn;lang-fr", ["Comtesse de Lovelace"])
        .with("sn", ["Lovelace"])
        .with("mail", ["Ada@example.test"])
        .with("telephoneNumber", ["+44 20 7946-0100"])
        .with("postalAddress", ["12 St James's Square$London  SW1$England"])
        .with("labeledURI", ["https://example.test/Ada"])
        .with("manager", ["uid=charles, ou=People, dc=example"])
        .with("title", ["Straße"])
        .with("createTimestamp", ["20261126043000Z"])
        .with("entryUUID", ["597ae2f6-16a6-1027-98f4-d28b5365dc14"])
        .with("supportedLDAPVersion", ["514"])
        .with("x-unknown", ["1"])
}

fn truth(filter: &str) -> Truth {
    let filter =
        Filter::parse(filter, MessageLimits::SERVER).unwrap_or_else(|error| panic!("{filter}: {error}"));
    Matcher::new(&filter).matches(&ada())
}

#[test]
fn values_match_by_the_rules_of_their_attributes() {
    for filter in [
        "(cn=ada lovelace)",
        "(cn= ADA   LOVELACE )",
        "(commonName=ada lovelace)",
        "(2.5.4.3=ada lovelace)",
        "(cn=ada*)",
        "(cn=*lace)",
        "(cn=a*a*k*g)",
        "(cn=ada *)",
        "(cn=* love*)",
        "(cn=ada* *lovelace)",
        "(cn=*)",
        "(name=lovelace)",
        "(name=*ada*)",
        "(cn;lang-fr=comtesse de lovelace)",
        "(cn=comtesse*)",
        "(mail=ada@EXAMPLE.test)",
        "(mail=*@example.test)",
        "(telephoneNumber=+442079460100)",
        "(telephoneNumber=*7946 0*)",
        "(postalAddress=12 st james's square$london sw1$ENGLAND)",
        "(postalAddress=*london sw1*)",
        "(labeledURI=https://example.test/Ada)",
        "(manager=UID=Charles,ou=people,DC=example)",
        "(title=STRASSE)",
        "(title=stra*)",
        "(objectClass=PERSON)",
        "(objectClass=2.5.6.6)",
        "(sn>=love)",
        "(sn<=lovelacf)",
        "(sn~=lovelace)",
        "(createTimestamp>=20261126042959Z)",
        "(createTimestamp<=202611260530+0100)",
        "(createTimestamp=20261126043000.000Z)",
        "(entryUUID=597AE2F6-16a6-1027-98f4-d28b5365dc14)",
        "(cn:caseExactMatch:=Ada Lovelace)",
        "(cn:=ada lovelace)",
        "(:caseIgnoreMatch:=ada lovelace)",
        "(ou:dn:=people)",
        "(supportedLDAPVersion:1.2.840.113556.1.4.803:=514)",
        "(supportedLDAPVersion:1.2.840.113556.1.4.804:=3)",
        "(&)",
        "(!(|))",
    ] {
        assert_eq!(truth(filter), Truth::True, "{filter}");
    }
    for filter in [
        "(cn=ada)",
        "(cn=ada l ovelace)",
        "(cn=lovelace*)",
        "(cn=ada*ada)",
        "(cn=adalovelace)",
        "(cn=ada*x*lovelace)",
        "(cn;lang-de=comtesse de lovelace)",
        "(sn=)",
        "(givenName=ada)",
        "(labeledURI=https://example.test/ada)",
        "(cn:caseExactMatch:=ada lovelace)",
        "(ou=people)",
        "(ou:dn:=groups)",
        "(sn>=m)",
        "(createTimestamp>=20261126043001Z)",
        "(supportedLDAPVersion:1.2.840.113556.1.4.803:=3)",
        "(objectClass=groupOfNames)",
        "(|)",
    ] {
        assert_eq!(truth(filter), Truth::False, "{filter}");
    }
}

#[test]
fn what_cannot_be_told_is_neither_true_nor_false() {
    let undefined = [
        // Attributes that are not known, though the entry has one of them.
        "(x-unknown=1)",
        "(x-unknown=*)",
        "(nothing=*)",
        // Rules that are not known, or not served; comparisons that an attribute has not.
        "(cn:noSuchMatch:=a)",
        "(:noSuchMatch:=a)",
        "(cn:caseIgnoreSubstringsMatch:=a)",
        "(mail>=a)",
        "(jpegPhoto=a)",
        "(manager=*charles*)",
        // Values that have not the form of the attribute.
        "(createTimestamp>=yesterday)",
        "(manager=charles)",
        "(entryUUID=7)",
        "(objectClass=noSuchClass)",
        "(cn=\\ff)",
        "(cn=\\ee\\80\\80)",
        "(supportedLDAPVersion=three)",
    ];
    for filter in undefined {
        assert_eq!(truth(filter), Truth::Undefined, "{filter}");
        assert_eq!(truth(&format!("(!{filter})")), Truth::Undefined, "not {filter}");
    }
    for (filter, expected) in [
        ("(&(cn=*)(nothing=1))", Truth::Undefined),
        ("(&(nothing=1)(cn=none))", Truth::False),
        ("(|(nothing=1)(cn=*))", Truth::True),
        ("(|(nothing=1)(cn=none))", Truth::Undefined),
        ("(!(&(nothing=1)(cn=none)))", Truth::True),
    ] {
        assert_eq!(truth(filter), expected, "{filter}");
    }
}

#[test]
fn a_compare_says_why_it_cannot_be_told() {
    for (attribute, value, code) in [
        ("sn", "LOVELACE", ResultCode::COMPARE_TRUE),
        ("surname", "lovelace", ResultCode::COMPARE_TRUE),
        ("sn", "Byron", ResultCode::COMPARE_FALSE),
        ("givenName", "Ada", ResultCode::NO_SUCH_ATTRIBUTE),
        ("nothing", "1", ResultCode::UNDEFINED_ATTRIBUTE_TYPE),
        ("userCertificate", "1", ResultCode::INAPPROPRIATE_MATCHING),
        ("createTimestamp", "now", ResultCode::INVALID_ATTRIBUTE_SYNTAX),
    ] {
        let assertion = Assertion { attribute: attribute.to_owned(), value: value.as_bytes().to_vec() };
        assert_eq!(compare(&ada(), &assertion), code, "{attribute}={value}");
    }
}

#[test]
fn a_search_gets_the_attributes_it_asked_for() {
    let entry = Entry {
        attributes: ["objectClass", "cn", "cn;lang-fr", "sn", "createTimestamp", "entryUUID"]
            .map(|name| Attribute::texts(name, ["x"]))
            .to_vec(),
        ..Entry::new("uid=ada")
    };
    for (asked, expected) in [
        (&[][..], "objectClass cn cn;lang-fr sn"),
        (&["*"], "objectClass cn cn;lang-fr sn"),
        (&["+"], "createTimestamp entryUUID"),
        (&["*", "+"], "objectClass cn cn;lang-fr sn createTimestamp entryUUID"),
        (&["1.1"], ""),
        (&["1.1", "sn"], "sn"),
        (&["CN"], "cn cn;lang-fr"),
        (&["cn;lang-FR"], "cn;lang-fr"),
        (&["name"], "cn cn;lang-fr sn"),
        (&["ENTRYUUID", "nothing", "("], "entryUUID"),
        (&["@person"], "objectClass cn cn;lang-fr sn"),
        (&["@nobody"], ""),
    ] {
        let asked: Vec<String> = asked.iter().map(|&name| name.to_owned()).collect();
        let found = Selection::new(&asked).apply(&entry, false);
        let names: Vec<&str> = found.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
        assert_eq!(names.join(" "), expected, "{asked:?}");
    }
}

#[test]
fn times() {
    let ms = |text: &str| GeneralizedTime::parse(text).map(GeneralizedTime::unix_ms);
    for (text, expected) in [
        ("19700101000000Z", 0),
        ("197001010000Z", 0),
        ("1970010100Z", 0),
        ("20261126043000Z", 1_795_667_400_000),
        ("20261126053000+0100", 1_795_667_400_000),
        ("20261126053000+01", 1_795_667_400_000),
        ("2026112604.5Z", 1_795_667_400_000),
        ("202611260429,5Z", 1_795_667_370_000),
        ("20261126043000.1239999Z", 1_795_667_400_123),
        ("20240229000000Z", 1_709_164_800_000),
        ("00000301000000Z", -62_162_035_200_000),
        ("99991231235959.999Z", 253_402_300_799_999),
    ] {
        assert_eq!(ms(text), Some(expected), "{text}");
        let again = GeneralizedTime::from_unix_ms(expected).unwrap();
        assert_eq!(ms(&again.to_string()), Some(expected), "{again}");
    }
    for wrong in [
        "",
        "2026",
        "20261126",
        "20261126043000",
        "20261126043000z0",
        "20261326043000Z",
        "20260229043000Z",
        "20261126243000Z",
        "20261126046000Z",
        "20261126043061Z",
        "20261126043000.Z",
        "20261126043000+1",
        "20261126043000+2400",
        "99991231235959-0001",
        "2026112604300Z",
        " 20261126043000Z",
    ] {
        assert_eq!(ms(wrong), None, "{wrong}");
    }
}
