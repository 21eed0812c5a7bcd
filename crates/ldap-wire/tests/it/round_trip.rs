//! What is written is read back equal.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_ldap_wire::{
    DistinguishedName, Filter, LdapUrl, Message, MessageLimits, MessageReader, NormalName, PagedResults,
    ResultCode, Scope, SortKey, SortResponse,
};

use crate::arbitrary::{filter, identifier, message, name, value};

proptest! {
    #[test]
    fn messages(messages in vec(message(), 1..4), piece in 1_usize..50) {
        let sent: Vec<u8> = messages.iter().flat_map(Message::to_bytes).collect();
        let mut reader = MessageReader::new(1 << 20);
        let mut read = Vec::new();
        for piece in sent.chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (taken, whole) = reader.read(rest).unwrap();
                rest = &rest[taken..];
                read.extend(whole.map(|whole| Message::parse(&whole, MessageLimits::SERVER)));
            }
        }
        let read: Result<Vec<Message>, _> = read.into_iter().collect();
        prop_assert_eq!(read, Ok(messages));
    }

    #[test]
    fn filters(filter in filter()) {
        prop_assert_eq!(Filter::parse(&filter.to_string(), MessageLimits::SERVER), Ok(filter));
    }

    #[test]
    fn names(name in name(), other in name()) {
        let text = name.to_string();
        prop_assert!(!text.chars().any(char::is_control));
        let read = DistinguishedName::parse(&text);
        prop_assert_eq!(read.as_ref(), Ok(&name));
        let below = DistinguishedName { parts: [other.parts.clone(), name.parts.clone()].concat() };
        let (normal, below) = (NormalName::of(&name), NormalName::of(&below));
        prop_assert_eq!(below.depth_below(&normal), Some(other.parts.len()));
    }

    #[test]
    fn urls(
        host in "[a-z0-9.-]{0,12}", is_tls: bool, base in name(), attributes in vec(identifier(), 0..3),
        filter in proptest::option::of(filter()), port: u16,
    ) {
        let host = (!host.is_empty()).then_some(host);
        let port = Some(port).filter(|port| *port != 0 && host.is_some());
        let url = LdapUrl { is_tls, host, port, base, attributes, scope: Scope::OneLevel, filter };
        let text = url.to_string();
        prop_assume!(text.len() <= scrinium_ldap_wire::URL_MAX_BYTES);
        prop_assert_eq!(LdapUrl::parse(&text), Ok(url));
    }

    #[test]
    fn controls(size in 0..=i32::MAX as u32, cookie in value(), is_reversed: bool, attribute in "[a-z]{1,9}") {
        let page = PagedResults { size, cookie };
        prop_assert_eq!(PagedResults::parse(&page.control(true)), Ok(page));
        let keys = vec![SortKey { attribute: attribute.clone(), rule: Some("x".to_owned()), is_reversed }; 3];
        prop_assert_eq!(SortKey::parse_list(&SortKey::control(&keys, false)), Ok(keys));
        let code = ResultCode::from_number(size).unwrap();
        let response = SortResponse { code, attribute: Some(attribute) };
        prop_assert_eq!(SortResponse::parse(&response.control()), Ok(response));
    }
}
