//! Any bytes as a client's: no panic, and no more is said than the bytes can ask for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_ldap::{Answer, Binding, Request, ServerSession, SessionOptions};

fuzz_target!(|bytes: &[u8]| {
    let options = SessionOptions { base: "dc=x".to_owned(), entries_max: 2, has_certificate: true };
    let mut session = ServerSession::new(options, true, vec!["PLAIN"]);
    let mut rest = bytes;
    while !session.is_closed() {
        let taken = session.receive(rest);
        rest = &rest[taken..];
        let _ = session.take_output();
        match session.take_request() {
            None => break,
            Some(Request::StartTls) if session.may_start_tls(false) => session.answer(Answer::Encrypted, None),
            Some(Request::Bind { name, .. }) => session.answer(Answer::Bound(Binding { name }, None), None),
            Some(Request::BeginSasl { .. } | Request::ContinueSasl(_)) => {
                session.answer(Answer::Challenge(Vec::new()), None);
            }
            Some(_) => session.answer(Answer::Found { entries: Vec::new(), next: None }, None),
        }
    }
});
