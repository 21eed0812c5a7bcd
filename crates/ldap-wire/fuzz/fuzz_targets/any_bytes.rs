//! Any bytes as messages, and any text as filters, names and URLs: no panic, and what is read is written so that it is read
//! again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_ldap_wire::{
    DistinguishedName, Entry, Filter, LdapUrl, Matcher, Message, MessageLimits, MessageReader, NormalName, Operation,
    PagedResults, SortKey,
};

fn entry() -> Entry {
    Entry::new("uid=ada,ou=people,dc=example")
        .with("objectClass", ["person"])
        .with("cn", ["Ada Lovelace"])
        .with("telephoneNumber", ["+44 20"])
        .with("createTimestamp", ["20261126043000Z"])
        .with("member", ["cn=a,dc=b"])
}

fn text(text: &str) {
    if let Ok(filter) = Filter::parse(text, MessageLimits::ANONYMOUS) {
        assert_eq!(Filter::parse(&filter.to_string(), MessageLimits::ANONYMOUS).as_ref(), Ok(&filter));
        let _ = Matcher::new(&filter).matches(&entry());
    }
    if let Ok(name) = DistinguishedName::parse(text) {
        if let Ok(again) = DistinguishedName::parse(&name.to_string()) {
            assert_eq!(NormalName::of(&again), NormalName::of(&name));
        }
    }
    let _ = LdapUrl::parse(text);
}

fuzz_target!(|bytes: &[u8]| {
    let mut reader = MessageReader::new(1 << 16);
    let mut rest = bytes;
    while !rest.is_empty() {
        let Ok((taken, whole)) = reader.read(rest) else { break };
        rest = &rest[taken..];
        let Some(whole) = whole else { break };
        match Message::parse(&whole, MessageLimits::ANONYMOUS) {
            Ok(message) => {
                let read = Message::parse(&message.to_bytes(), MessageLimits::ANONYMOUS);
                assert_eq!(read.as_ref(), Ok(&message));
                for control in &message.controls {
                    let _ = (PagedResults::parse(control), SortKey::parse_list(control));
                }
                if let Operation::Search(search) = &message.operation {
                    let _ = Matcher::new(&search.filter).matches(&entry());
                    text(&search.filter.to_string());
                }
            }
            Err(error) => drop(error.answer().0.to_bytes()),
        }
    }
    if let Ok(written) = std::str::from_utf8(bytes) {
        text(written);
    }
});
