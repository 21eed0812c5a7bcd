//! Nothing panics, and nothing grows, whatever the bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_ldap_wire::{
    DistinguishedName, Entry, Fault, Filter, FilterFault, LdapUrl, Matcher, Message, MessageLimits,
    NormalName,
};

use crate::arbitrary::{filter, message};
use crate::recorded::messages;

fn read(bytes: &[u8]) -> Result<Message, Fault> {
    Message::parse(bytes, MessageLimits::SERVER).map_err(|error| error.fault)
}

/// An element with its length in four octets.
fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = u32::try_from(contents.len()).unwrap().to_be_bytes();
    [&[tag, 0x84][..], &length, contents].concat()
}

fn search(filter: &[u8]) -> Vec<u8> {
    let head = [0x04, 0, 0x0a, 1, 2, 0x0a, 1, 0, 0x02, 1, 0, 0x02, 1, 0, 0x01, 1, 0];
    let operation = element(0x63, &[&head[..], filter, &[0x30, 0]].concat());
    element(0x30, &[&[0x02, 1, 7][..], &operation].concat())
}

#[test]
fn a_message_cut_at_any_byte_is_refused() {
    for (_, bytes) in messages() {
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_err(), "{end} of {bytes:02x?}");
        }
    }
}

#[test]
fn a_message_with_any_byte_changed_is_read_or_refused() {
    for (_, bytes) in messages() {
        for at in 0..bytes.len().min(160) {
            for change in [0x01, 0x20, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                if let Ok(message) = read(&changed) {
                    assert_eq!(read(&message.to_bytes()), Ok(message));
                }
            }
        }
    }
}

#[test]
fn a_length_that_lies_costs_nothing() {
    for length in [
        &[0x84, 0xff, 0xff, 0xff, 0xff][..],
        &[0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x88, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x7f],
    ] {
        let inside = [&[0x02, 1, 7, 0x4a][..], length].concat();
        assert_eq!(read(&element(0x30, &inside)), Err(Fault::Truncated));
    }
    let inside = [0x02, 1, 7, 0x4a, 0xfe];
    assert_eq!(read(&element(0x30, &inside)), Err(Fault::LongLength));
}

#[test]
fn nested_filters_end_at_the_limit() {
    let mut filter = vec![0x87, 2, b'c', b'n'];
    for tag in [0xa2, 0xa0, 0xa1].into_iter().cycle().take(20_000) {
        filter = element(tag, &filter);
    }
    assert_eq!(read(&search(&filter)), Err(Fault::TooDeep(MessageLimits::SERVER.depth)));
    for text in ["(!".repeat(20_000), "(&(cn=a)".repeat(20_000), "(|".repeat(20_000)] {
        let error = Filter::parse(&text, MessageLimits::SERVER).unwrap_err();
        assert_eq!(error.what, FilterFault::Limit(Fault::TooDeep(MessageLimits::SERVER.depth)));
    }
}

#[test]
fn many_filters_and_many_members_end_at_the_limit() {
    let limits = MessageLimits::SERVER;
    let filters = element(0xa0, &[0x87, 1, b'a'].repeat(limits.filters));
    assert_eq!(read(&search(&filters)), Err(Fault::TooManyFilters(limits.filters)));
    let parts = [&[0x04, 1, b'a'][..], &element(0x30, &[0x81, 0].repeat(limits.items + 1))].concat();
    assert_eq!(read(&search(&element(0xa4, &parts))), Err(Fault::TooManyItems(limits.items)));
    let text = format!("(a={})", "*".repeat(limits.items + 1));
    let error = Filter::parse(&text, limits).unwrap_err();
    assert_eq!(error.what, FilterFault::Limit(Fault::TooManyItems(limits.items)));

    // Members of lists in lists count together.
    let attribute = element(0x30, &[&[0x04, 0][..], &element(0x31, &[0x04, 0].repeat(99))].concat());
    let entry = [&[0x04, 0][..], &element(0x30, &attribute.repeat(limits.items / 100 + 1))].concat();
    let message = element(0x30, &[&[0x02, 1, 7][..], &element(0x68, &entry)].concat());
    assert_eq!(read(&message), Err(Fault::TooManyItems(limits.items)));
    let control = element(0x30, &[0x04, 0]);
    let controls = element(0xa0, &control.repeat(limits.items + 1));
    let message = element(0x30, &[&[0x02, 1, 7, 0x42, 0][..], &controls].concat());
    assert_eq!(read(&message), Err(Fault::TooManyItems(limits.items)));
}

#[test]
fn what_is_no_filter_is_refused_with_its_place() {
    for (text, at, what) in [
        ("", 0, FilterFault::Comparison),
        ("(cn=a", 5, FilterFault::End),
        ("(cn=a))", 6, FilterFault::Trailing),
        ("(cn=a)(cn=b)", 6, FilterFault::Trailing),
        ("(&cn=a)", 2, FilterFault::End),
        ("(!)", 2, FilterFault::Start),
        ("(!(a=1)(b=2))", 7, FilterFault::End),
        ("(=a)", 2, FilterFault::Name),
        ("(c n=a)", 3, FilterFault::Comparison),
        ("(cn)", 4, FilterFault::Comparison),
        ("(cn>a)", 4, FilterFault::Comparison),
        ("(cn=(a))", 4, FilterFault::Value),
        ("(cn=\\)", 6, FilterFault::Value),
        ("(cn=\\4)", 7, FilterFault::Value),
        ("(cn=a\0)", 5, FilterFault::Value),
        ("(cn>=a*)", 6, FilterFault::End),
        ("(:=a)", 3, FilterFault::Name),
        ("(:dn:=a)", 6, FilterFault::Name),
        ("(cn:rule=a)", 8, FilterFault::Comparison),
        ("(cn:rule:a)", 9, FilterFault::Comparison),
        ("(cn:dn:rule:dn:=a)", 12, FilterFault::Comparison),
    ] {
        let error = Filter::parse(text, MessageLimits::ANONYMOUS).expect_err(text);
        assert_eq!((error.at, error.what), (at, what), "{text}");
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(message) = read(&bytes) {
            prop_assert_eq!(read(&message.to_bytes()), Ok(message));
        }
    }

    #[test]
    fn nearly_a_message(message in message(), at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        let mut bytes = message.to_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len() * 4).max(at + 1));
        if let Ok(message) = read(&bytes) {
            prop_assert_eq!(read(&message.to_bytes()), Ok(message));
        }
    }

    #[test]
    fn any_text(text in "[ -~é(&|!)*=:]{0,40}") {
        if let Ok(filter) = Filter::parse(&text, MessageLimits::ANONYMOUS) {
            prop_assert_eq!(Filter::parse(&filter.to_string(), MessageLimits::ANONYMOUS), Ok(filter));
        }
        if let Ok(name) = DistinguishedName::parse(&text) {
            let again = DistinguishedName::parse(&name.to_string()).unwrap();
            prop_assert_eq!(NormalName::of(&again), NormalName::of(&name));
        }
        let _ = LdapUrl::parse(&format!("ldap://{text}"));
        let _ = LdapUrl::parse(&format!("ldap:///{text}"));
    }

    #[test]
    fn any_filter_against_any_values(filter in filter(), values in vec(any::<String>(), 0..4)) {
        let names = ["objectClass", "cn", "mail", "telephoneNumber", "createTimestamp", "member", "postalAddress"];
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let entry = names.iter().fold(Entry::new("cn=a"), |entry, name| entry.with(name, values.iter().copied()));
        let _ = Matcher::new(&filter).matches(&entry);
    }
}
