//! Messages of OpenLDAP's tools and of Python's ldap3 to OpenLDAP's server, and its answers, as a proxy saw them: a line a
//! message, `C` of the client and `S` of the server.

use scrinium_ldap_wire::{
    Authentication, CANCEL, Filter, Message, MessageLimits, MessageReader, Operation, PAGED_RESULTS,
    PASSWORD_MODIFY, PagedResults, PasswordModify, RequestKind, SORT_REQUEST, START_TLS, SortKey, WHO_AM_I,
};

const LDAP_UTILS: &str = include_str!("recorded/ldap_utils.txt");
const LDAP3: &str = include_str!("recorded/ldap3.txt");

fn bytes_of(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// All messages, and whether a client sent them.
pub(crate) fn messages() -> Vec<(bool, Vec<u8>)> {
    let lines = LDAP_UTILS.lines().chain(LDAP3.lines());
    lines.map(|line| (line.starts_with('C'), bytes_of(&line[2..]))).collect()
}

fn read(bytes: &[u8]) -> Message {
    Message::parse(bytes, MessageLimits::SERVER).unwrap_or_else(|error| panic!("{error}: {bytes:02x?}"))
}

fn requests() -> Vec<Message> {
    let messages = messages().into_iter().filter(|(from_client, _)| *from_client);
    messages.map(|(_, bytes)| read(&bytes)).collect()
}

#[test]
fn every_message_is_read_and_written_as_it_was() {
    for (from_client, bytes) in messages() {
        let message = read(&bytes);
        assert_eq!(message.operation.is_request(), from_client, "{message:?}");
        assert_eq!(message.to_bytes(), bytes, "{message:?}");
    }
}

#[test]
fn messages_come_out_of_one_stream_in_pieces_of_any_size() {
    let messages: Vec<Vec<u8>> = messages().into_iter().map(|(_, bytes)| bytes).collect();
    let stream = messages.concat();
    for size in [1, 2, 3, 7, 64, 4096, stream.len()] {
        let mut reader = MessageReader::new(1 << 20);
        let mut found = Vec::new();
        for piece in stream.chunks(size) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (taken, message) = reader.read(rest).unwrap();
                rest = &rest[taken..];
                found.extend(message);
            }
        }
        assert_eq!(found, messages);
        assert!(reader.is_idle());
    }
}

#[test]
fn filters_have_the_text_that_was_typed() {
    let searches = requests().into_iter().filter_map(|message| match message.operation {
        Operation::Search(search) => Some(search.filter.to_string()),
        _ => None,
    });
    let filters: Vec<String> = searches.collect();
    for typed in [
        "(cn=*lace*)",
        "(&(objectClass=inetOrgPerson)(|(uid=a*)(mail=*@example.test)(!(sn~=nobody))))",
        "(&(ou:dn:=people)(cn:caseExactMatch:=Smith, James)(modifyTimestamp>=20200101000000Z)(createTimestamp<=20991231235959Z))",
        "(cn=José*\\28x\\29)",
        "(cn=Smith, James \\28x\\2a\\29)",
        "(|(uid:dn:=ada)(!(sn<=M))(employeeNumber:1.2.840.113556.1.4.803:=2))",
    ] {
        assert!(filters.iter().any(|filter| filter == typed), "{typed} is not in {filters:#?}");
        assert_eq!(Filter::parse(typed, MessageLimits::ANONYMOUS).unwrap().to_string(), typed);
    }
}

#[test]
fn controls_and_extended_operations_have_their_values() {
    let requests = requests();
    let control = |oid| requests.iter().find_map(|message| message.control(oid)).unwrap();
    let page = PagedResults::parse(control(PAGED_RESULTS)).unwrap();
    assert_eq!((page.size, page.cookie.as_slice()), (2, b"".as_slice()));
    assert_eq!(page.control(false), *control(PAGED_RESULTS));
    let sort = SortKey::parse_list(control(SORT_REQUEST)).unwrap();
    let key = SortKey { attribute: "sn".to_owned(), rule: Some("2.5.13.3".to_owned()), is_reversed: false };
    assert_eq!(sort, [key]);
    assert_eq!(SortKey::control(&sort, true), *control(SORT_REQUEST));

    let extended: Vec<_> = requests
        .iter()
        .filter_map(|message| match &message.operation {
            Operation::Extended(request) => Some(request),
            _ => None,
        })
        .collect();
    for name in [WHO_AM_I, START_TLS] {
        assert!(extended.iter().any(|request| request.name == name && request.value.is_none()));
    }
    let cancel = extended.iter().find(|request| request.name == CANCEL).unwrap();
    assert_eq!(cancel.cancelled().unwrap().number(), 5);
    let password = extended.iter().find(|request| request.name == PASSWORD_MODIFY).unwrap();
    let modify = PasswordModify::parse(password).unwrap();
    assert_eq!(modify.identity.as_deref(), Some("uid=ada,ou=people,dc=example,dc=test"));
    assert_eq!(modify.request(), **password);
}

#[test]
fn every_kind_of_request_was_recorded_and_no_password_is_shown() {
    let requests = requests();
    for kind in [
        RequestKind::Bind,
        RequestKind::Search,
        RequestKind::Modify,
        RequestKind::Add,
        RequestKind::Delete,
        RequestKind::ModifyName,
        RequestKind::Compare,
        RequestKind::Extended,
    ] {
        assert!(requests.iter().any(|message| message.operation.request_kind() == Some(kind)), "{kind:?}");
    }
    assert!(requests.iter().any(|message| message.operation == Operation::Unbind));
    let is_sasl = |message: &Message| matches!(&message.operation, Operation::Bind(bind) if matches!(bind.authentication, Authentication::Sasl { .. }));
    assert!(requests.iter().any(is_sasl));
    let shown = format!("{requests:?}");
    // The bytes of "secret" and "newengine", as Debug would write them.
    assert!(
        !shown.contains("115, 101, 99, 114, 101, 116") && !shown.contains("101, 110, 103, 105, 110, 101")
    );
}
