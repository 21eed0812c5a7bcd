//! What a server answers to what it cannot read.

use scrinium_ldap_wire::{
    Fault, LdapResult, Message, MessageError, MessageId, MessageLimits, NOTICE_OF_DISCONNECTION, Operation,
    RequestKind, ResultCode,
};

fn read(bytes: &[u8]) -> Result<Message, MessageError> {
    Message::parse(bytes, MessageLimits { depth: 3, filters: 5, items: 4, ..MessageLimits::ANONYMOUS })
}

fn message(operation: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x30, u8::try_from(operation.len() + 3).unwrap(), 0x02, 0x01, 0x07];
    bytes.extend_from_slice(operation);
    bytes
}

fn search(filter: &[u8]) -> Vec<u8> {
    let mut inside = vec![0x04, 0, 0x0a, 1, 2, 0x0a, 1, 0, 0x02, 1, 0, 0x02, 1, 0, 0x01, 1, 0];
    inside.extend_from_slice(filter);
    inside.extend_from_slice(&[0x30, 0]);
    let mut operation = vec![0x63, u8::try_from(inside.len()).unwrap()];
    operation.extend_from_slice(&inside);
    message(&operation)
}

#[test]
fn what_can_be_answered_is_answered_in_its_own_form() {
    let id = MessageId::from_number(7).unwrap();
    let present = [0x87, 2, b'c', b'n'];
    assert!(read(&search(&present)).is_ok());
    let deep = [0xa2, 10, 0xa2, 8, 0xa2, 6, 0xa2, 4, 0x87, 2, b'c', b'n'];
    let many = [vec![0xa1, 20], present.repeat(5)].concat();
    for (bytes, kind, fault, code) in [
        (search(&deep), RequestKind::Search, Fault::TooDeep(3), ResultCode::ADMIN_LIMIT_EXCEEDED),
        (search(&many), RequestKind::Search, Fault::TooManyFilters(5), ResultCode::ADMIN_LIMIT_EXCEEDED),
        (
            search(&[0x87, 1, b'(']),
            RequestKind::Search,
            Fault::Value("the name of an attribute or of a rule"),
            ResultCode::PROTOCOL_ERROR,
        ),
        (
            search(&[0xaf, 0]),
            RequestKind::Search,
            Fault::Value("the kind of a filter"),
            ResultCode::PROTOCOL_ERROR,
        ),
        (message(&[0x4a, 1, 0xff]), RequestKind::Delete, Fault::Text, ResultCode::PROTOCOL_ERROR),
        (message(&[0x60, 0]), RequestKind::Bind, Fault::Missing { expected: 2 }, ResultCode::PROTOCOL_ERROR),
    ] {
        let error = read(&bytes).unwrap_err();
        assert_eq!(error, MessageError { id: Some(id), request: Some(kind), fault });
        let operation = kind.response(LdapResult::new(code, &fault.to_string()));
        assert_eq!(error.answer(), (Message::new(id, operation), false));
    }
}

#[test]
fn what_cannot_be_trusted_ends_the_connection_with_a_notice() {
    for bytes in [
        &[][..],
        &[0x31, 0],
        &[0x30, 0],
        &[0x30, 3, 0x02, 1, 7],
        &[0x30, 3, 0x02, 1, 0x87],
        // An operation that LDAP does not have, a response of no kind, a tag of two octets.
        &[0x30, 5, 0x02, 1, 7, 0x7e, 0],
        &[0x30, 6, 0x02, 1, 7, 0x7f, 0x20, 0],
        // Longer than what it is in; bytes behind the end.
        &[0x30, 5, 0x02, 1, 7, 0x4a, 9],
        &[0x30, 5, 0x02, 1, 7, 0x42, 0, 0],
        // Indefinite length.
        &[0x30, 7, 0x02, 1, 7, 0x60, 0x80, 0, 0],
        // A number that is not valid, one too large, and of a request that nobody could answer.
        &[0x30, 4, 0x02, 0, 0x42, 0],
        &[0x30, 9, 0x02, 5, 1, 0, 0, 0, 0, 0x42, 0],
        &[0x30, 5, 0x02, 1, 0, 0x42, 0],
    ] {
        let (answer, closes) = read(bytes).unwrap_err().answer();
        assert!(closes && answer.id == MessageId::UNSOLICITED, "{bytes:02x?}");
        let Operation::ExtendedResponse(response) = answer.operation else { panic!("{bytes:02x?}") };
        assert_eq!(response.name.as_deref(), Some(NOTICE_OF_DISCONNECTION));
        assert_eq!(response.result.code, ResultCode::PROTOCOL_ERROR);
    }
}

#[test]
fn elements_that_are_not_known_yet_are_left_out() {
    // RFC 4511, section 4: behind those that are known, in an unbind, a delete's message, and a result.
    assert_eq!(read(&[0x30, 7, 0x02, 1, 7, 0x42, 0, 0x8f, 0]).unwrap().operation, Operation::Unbind);
    let result = message(&[0x6b, 9, 0x0a, 1, 0, 0x04, 0, 0x04, 0, 0x8f, 0]);
    assert_eq!(read(&result).unwrap().operation, Operation::DeleteResponse(LdapResult::success()));
}
