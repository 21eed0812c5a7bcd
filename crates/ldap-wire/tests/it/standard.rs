//! Examples of the standards.

use scrinium_ldap_wire::{
    AuthorizationIdentity, DistinguishedName, ExtendedRequest, Filter, LdapUrl, Message, MessageId,
    MessageLimits, NormalName, Operation, START_TLS, Scope,
};

fn name(text: &str) -> DistinguishedName {
    DistinguishedName::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn first_value(text: &str) -> Vec<u8> {
    name(text).parts[0].values().next().unwrap().1.to_vec()
}

/// RFC 4514, section 4.
#[test]
fn names() {
    let plain = name("UID=jsmith,DC=example,DC=net");
    assert_eq!((plain.parts.len(), plain.to_string().as_str()), (3, "UID=jsmith,DC=example,DC=net"));
    let two = name("OU=Sales+CN=J.  Smith,DC=example,DC=net");
    assert_eq!((two.parts.len(), two.parts[0].values().count()), (3, 2));
    let quoted = "CN=James \\\"Jim\\\" Smith\\, III,DC=example,DC=net";
    assert_eq!(first_value(quoted), b"James \"Jim\" Smith, III");
    assert_eq!(name(quoted).to_string(), quoted);
    assert_eq!(first_value("CN=Before\\0dAfter,DC=example,DC=net"), b"Before\rAfter");
    assert_eq!(name("CN=Before\\0DAfter,DC=example").to_string(), "CN=Before\\0dAfter,DC=example");
    let by_number = name("1.3.6.1.4.1.1466.0=#04024869");
    assert_eq!(by_number.parts[0].values().next().unwrap().1, b"Hi");
    assert_eq!(by_number.to_string(), "1.3.6.1.4.1.1466.0=#04024869");
    assert_eq!(first_value("CN=Lu\\C4\\8Di\\C4\\87"), "Lučić".as_bytes());
    assert_eq!(name("CN=Lu\\C4\\8Di\\C4\\87").to_string(), "CN=Lučić");
}

/// RFC 4515, section 4.
#[test]
fn filters() {
    for text in [
        "(cn=Babs Jensen)",
        "(!(cn=Tim Howes))",
        "(&(objectClass=Person)(|(sn=Jensen)(cn=Babs J*)))",
        "(o=univ*of*mich*)",
        "(seeAlso=)",
        "(cn:caseExactMatch:=Fred Flintstone)",
        "(cn:=Betty Rubble)",
        "(sn:dn:2.4.6.8.10:=Barney Rubble)",
        "(o:dn:=Ace Industry)",
        "(:1.2.3:=Wilma Flintstone)",
        "(o=Parens R Us \\28for all your parenthetical needs\\29)",
        "(cn=*\\2a*)",
        "(filename=C:\\5cMyFile)",
        "(bin=\\00\\00\\00\\04)",
        "(1.3.6.1.4.1.1466.0=\\04\\02Hi)",
        // RFC 4526.
        "(&)",
        "(|)",
    ] {
        let filter =
            Filter::parse(text, MessageLimits::ANONYMOUS).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(filter.to_string(), text);
    }
    let filter = Filter::parse("(:DN:2.4.6.8.10:=Dino)", MessageLimits::ANONYMOUS).unwrap();
    assert_eq!(filter.to_string(), "(:dn:2.4.6.8.10:=Dino)");
    let Filter::Equal(_, value) =
        Filter::parse("(sn=Lu\\c4\\8di\\c4\\87)", MessageLimits::ANONYMOUS).unwrap()
    else {
        panic!("it is a comparison");
    };
    assert_eq!(value, "Lučić".as_bytes());
}

/// RFC 4516, section 4.
#[test]
fn urls() {
    let url = |text: &str| LdapUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let plain = url("ldap:///o=University%20of%20Michigan,c=US");
    assert_eq!(
        (plain.host.as_deref(), plain.base.to_string().as_str()),
        (None, "o=University of Michigan,c=US")
    );
    let attribute = url("ldap://ldap1.example.net/o=University%20of%20Michigan,c=US?postalAddress");
    assert_eq!(
        (attribute.host.as_deref(), attribute.attributes[0].as_str()),
        (Some("ldap1.example.net"), "postalAddress")
    );
    let search =
        url("ldap://ldap1.example.net:6666/o=University%20of%20Michigan,c=US??sub?(cn=Babs%20Jensen)");
    assert_eq!((search.port, search.scope), (Some(6666), Scope::Subtree));
    assert_eq!(search.filter.unwrap().to_string(), "(cn=Babs Jensen)");
    let upper = url("LDAP://ldap1.example.com/c=GB?objectClass?ONE");
    assert_eq!((upper.scope, upper.port_or_default()), (Scope::OneLevel, 389));
    assert_eq!(url("ldap://ldap2.example.com/o=Question%3f,c=US?mail").base.to_string(), "o=Question?,c=US");
    let bytes = url("ldap://ldap3.example.com/o=Babsco,c=US???(four-octet=%5c00%5c00%5c00%5c04)");
    assert_eq!(bytes.filter.unwrap().to_string(), "(four-octet=\\00\\00\\00\\04)");
    assert_eq!(
        url("ldap://ldap.example.com/o=An%20Example%5C2C%20Inc.,c=US").base.to_string(),
        "o=An Example\\, Inc.,c=US"
    );
    let same = ["ldap://ldap.example.net", "ldap://ldap.example.net/", "ldap://ldap.example.net/?"];
    assert!(same.iter().all(|text| url(text) == url(same[0])));
    // An extension that must be understood is refused, and any other is left out.
    assert!(LdapUrl::parse("ldap:///??sub??!e-bindname=cn=Manager%2cdc=example%2cdc=com").is_err());
    assert_eq!(url("ldap:///??sub??e-bindname=cn=Manager%2cdc=example%2cdc=com").scope, Scope::Subtree);
}

/// RFC 4511, sections 4.14 and 5.1: the request for TLS, byte by byte.
#[test]
fn start_tls_is_these_bytes() {
    let id = MessageId::from_number(1).unwrap();
    let message = Message::new(id, Operation::Extended(ExtendedRequest::new(START_TLS)));
    let mut expected = vec![0x30, 0x1d, 0x02, 0x01, 0x01, 0x77, 0x18, 0x80, 0x16];
    expected.extend_from_slice(b"1.3.6.1.4.1.1466.20037");
    assert_eq!(message.to_bytes(), expected);
}

/// RFC 4513, section 5.2.1.8, and RFC 4532, section 2.
#[test]
fn identities() {
    for (text, identity) in [
        ("", AuthorizationIdentity::Anonymous),
        ("u:xxyyz@EXAMPLE.NET", AuthorizationIdentity::User("xxyyz@EXAMPLE.NET".to_owned())),
        ("dn:uid=ada,dc=example", AuthorizationIdentity::Name("uid=ada,dc=example".to_owned())),
    ] {
        assert_eq!(AuthorizationIdentity::parse(text), Some(identity.clone()));
        assert_eq!(identity.to_string(), text);
    }
    assert_eq!(AuthorizationIdentity::parse("dn:"), Some(AuthorizationIdentity::Anonymous));
    assert_eq!(AuthorizationIdentity::parse("ada"), None);
}

/// RFC 4517, section 4.2.15: in any order, in any case, by any name of a type.
#[test]
fn equal_names_have_one_normal_form() {
    let normal = |text: &str| NormalName::of(&name(text));
    for (one, other) in [
        ("UID=jsmith,DC=example,DC=net", "uid=JSmith, dc=EXAMPLE; 0.9.2342.19200300.100.1.25=#04036e6574"),
        ("OU=Sales+CN=J.  Smith,DC=example", "commonName=J. smith + organizationalUnitName=sales,dc=example"),
        ("cn=Jose\u{301}", "cn=JOSÉ"),
        ("cn=Straße", "CN=\"STRASSE\""),
        ("telephoneNumber=\\+44 20-7946 0100", "telephoneNumber=\\2b442079460100"),
    ] {
        assert_eq!(normal(one), normal(other), "{one} | {other}");
    }
    for (one, other) in [
        ("cn=a,cn=b", "cn=b,cn=a"),
        ("cn=a+sn=b", "cn=a\\+sn\\=b"),
        ("cn=a\\,b", "cn=a,cn=b"),
        ("cn=a", "sn=a"),
        ("cn=a", ""),
        ("labeledURI=http://a", "labeledURI=http://A"),
    ] {
        assert_ne!(normal(one), normal(other), "{one} | {other}");
    }
    let base = normal("ou=people,dc=example");
    assert_eq!(normal("uid=ada,OU=People,dc=example").depth_below(&base), Some(1));
    assert_eq!(normal("dc=example").depth_below(&base), None);
    assert!(normal("cn=a,uid=ada,ou=people,dc=example").is_within(&base) && base.is_within(&base));
    // The name of a sibling may end in the same letters.
    assert!(!normal("uid=ada,xou=people,dc=example").is_within(&base));
}
