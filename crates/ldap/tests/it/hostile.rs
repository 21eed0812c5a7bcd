//! Bytes that are nearly right, and pieces of any size.

use proptest::prelude::*;
use scrinium_ldap::{Answer, Binding, Request, ServerSession};
use scrinium_ldap_wire::{ExtendedRequest, LdapResult, Operation, ResultCode, START_TLS, Scope, WHO_AM_I};

use crate::{bind, bytes, search, session};

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let operation = prop_oneof![
        Just(bind("ada", "secret")),
        Just(bind("", "")),
        Just(search("", Scope::Base, "(objectClass=*)")),
        Just(search("dc=example,dc=org", Scope::Subtree, "(|(cn=*a*)(!(mail=x)))")),
        Just(Operation::Extended(ExtendedRequest::new(WHO_AM_I))),
        Just(Operation::Extended(ExtendedRequest::new(START_TLS))),
        Just(Operation::Delete("cn=x".to_owned())),
    ];
    let one = (1..1_000_u32, operation).prop_map(|(number, operation)| bytes(number, operation));
    proptest::collection::vec(one, 0..6).prop_map(|all| all.concat())
}

/// Gives bytes in pieces, answers everything in one way, and gives back what the client hears.
fn run(mut session: ServerSession, bytes: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let (mut output, mut waiting) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        waiting.extend_from_slice(piece);
        loop {
            let taken = session.receive(&waiting);
            waiting.drain(..taken);
            output.extend(session.take_output());
            let Some(request) = session.take_request() else { break };
            match request {
                Request::StartTls => {
                    // In one piece nobody can tell what came behind it.
                    if !session.may_start_tls(false) {
                        break;
                    }
                    session.answer(Answer::Encrypted, Some(vec!["PLAIN"]));
                }
                Request::Bind { name, .. } => session.answer(Answer::Bound(Binding { name }, None), None),
                Request::Search(_) => session.answer(Answer::Found { entries: Vec::new(), next: None }, None),
                _ => session.answer(Answer::Ended(LdapResult::new(ResultCode::OTHER, "")), None),
            }
            output.extend(session.take_output());
        }
    }
    (output, session.is_closed())
}

proptest! {
    #[test]
    fn any_bytes_are_answered_or_end_the_connection(
        requests in requests(), noise: Vec<u8>, place: prop::sample::Index, flip: u8, is_protected: bool,
    ) {
        let mut bytes = [requests, noise].concat();
        if !bytes.is_empty() {
            let place = place.index(bytes.len());
            bytes[place] ^= flip;
        }
        let (output, _) = run(session(is_protected), &bytes, bytes.len().max(1));
        // What is answered grows with what was asked, and no more.
        prop_assert!(output.len() <= 2_000 + bytes.len() * 400);
    }

    #[test]
    fn requests_in_other_pieces_mean_the_same(requests in requests(), piece in 1..40_usize, is_protected: bool) {
        let whole = run(session(is_protected), &requests, requests.len().max(1));
        prop_assert_eq!(run(session(is_protected), &requests, piece), whole);
    }
}
