//! URLs that are nearly ones.

use scrinium_ldap_wire::{LdapUrl, URL_MAX_BYTES, UrlError};

#[test]
fn what_is_no_url_is_refused() {
    for text in [
        "http://host/",
        "ldap:host",
        "ldapi://%2frun%2fldapi",
        "ldap://host:0/",
        "ldap://host:65536/",
        "ldap://host:+389/",
        "ldap://:389/",
        "ldap://[::1/",
        "ldap://[host]/",
        "ldap://[::1]389/",
        "ldap://user@host/",
        "ldap://ho st/",
        "ldap://host%0d%0a/",
        "ldap://host/cn=a%2",
        "ldap://host/cn=a%ff",
        "ldap://host/cn",
        "ldap://host/?a b",
        "ldap://host/??subtree",
        "ldap://host/???(cn=a",
        "ldap://host/????e=1?x",
    ] {
        assert!(LdapUrl::parse(text).is_err(), "{text}");
    }
    assert_eq!(LdapUrl::parse(&"l".repeat(URL_MAX_BYTES + 1)), Err(UrlError::TooLong));
}

#[test]
fn hosts_and_ports() {
    for (text, host, port) in [
        ("ldaps://dc1.example.test", Some("dc1.example.test"), 636),
        ("ldap://[2001:db8::7]:1389/", Some("2001:db8::7"), 1389),
        ("ldap://192.0.2.7", Some("192.0.2.7"), 389),
        ("ldap://", None, 389),
        ("ldap://host?cn", Some("host"), 389),
    ] {
        let url = LdapUrl::parse(text).unwrap();
        assert_eq!((url.host.as_deref(), url.port_or_default()), (host, port), "{text}");
        assert_eq!(LdapUrl::parse(&url.to_string()), Ok(url), "{text}");
    }
}
