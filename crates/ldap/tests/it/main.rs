//! Sessions of LDAP.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod hostile;
mod transcript;

use scrinium_ldap::{ServerSession, SessionOptions};
use scrinium_ldap_wire::{
    Authentication, BindRequest, DereferenceAliases, Filter, Message, MessageId, MessageLimits,
    MessageReader, Operation, Scope, SearchRequest, Secret,
};

/// A session; `is_protected`: nobody listens.
pub(crate) fn session(is_protected: bool) -> ServerSession {
    let options =
        SessionOptions { base: "dc=example,dc=org".to_owned(), entries_max: 3, has_certificate: true };
    ServerSession::new(options, is_protected, vec!["PLAIN", "SCRAM-SHA-256"])
}

/// All messages in bytes.
pub(crate) fn messages(bytes: &[u8]) -> Vec<Message> {
    let mut reader = MessageReader::new(MessageLimits::CLIENT.message_bytes);
    let (mut rest, mut all) = (bytes, Vec::new());
    while !rest.is_empty() {
        let (count, whole) = reader.read(rest).unwrap();
        rest = &rest[count..];
        all.extend(whole.map(|whole| Message::parse(&whole, MessageLimits::CLIENT).unwrap()));
    }
    all
}

/// A request.
pub(crate) fn bytes(number: u32, operation: Operation) -> Vec<u8> {
    Message::new(MessageId::from_number(number).unwrap(), operation).to_bytes()
}

pub(crate) fn bind(name: &str, password: &str) -> Operation {
    let authentication = Authentication::Simple(Secret(password.as_bytes().to_vec()));
    Operation::Bind(BindRequest { version: 3, name: name.to_owned(), authentication })
}

pub(crate) fn search(base: &str, scope: Scope, filter: &str) -> Operation {
    Operation::Search(SearchRequest {
        base: base.to_owned(),
        scope,
        aliases: DereferenceAliases::Never,
        size_limit: 0,
        time_limit_s: 0,
        types_only: false,
        filter: Filter::parse(filter, MessageLimits::CLIENT).unwrap(),
        attributes: Vec::new(),
    })
}
