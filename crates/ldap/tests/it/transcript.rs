//! What clients ask, and what they hear.

use scrinium_ldap::{Answer, Binding, Request, ServerSession};
use scrinium_ldap_wire::{
    Control, Entry, ExtendedRequest, Message, MessageId, Operation, PAGED_RESULTS, PagedResults, ResultCode,
    START_TLS, Scope, WHO_AM_I,
};

use crate::{bind, bytes, messages, search, session};

fn give(session: &mut ServerSession, bytes: &[u8]) -> Option<Request> {
    assert_eq!(session.receive(bytes), bytes.len());
    session.take_request()
}

fn heard(session: &mut ServerSession) -> Vec<Message> {
    messages(&session.take_output())
}

fn code(session: &mut ServerSession) -> ResultCode {
    heard(session).last().unwrap().operation.result().unwrap().code
}

fn bound() -> ServerSession {
    let mut session = session(true);
    let asked = give(&mut session, &bytes(1, bind("uid=ada,ou=people,dc=example,dc=org", "secret")));
    let Some(Request::Bind { name, password }) = asked else { panic!("a bind") };
    assert_eq!(
        (name.as_str(), password.0.as_slice()),
        ("uid=ada,ou=people,dc=example,dc=org", &b"secret"[..])
    );
    session.answer(Answer::Bound(Binding { name }, None), None);
    assert_eq!(code(&mut session), ResultCode::SUCCESS);
    session
}

#[test]
fn nobody_sees_more_than_the_root_entry() {
    let mut session = session(true);
    // What the server says of itself is operational, and comes only where it is asked for (RFC 4512, section 5.1).
    let mut root = search("", Scope::Base, "(objectClass=*)");
    if let Operation::Search(root) = &mut root {
        root.attributes = vec!["+".to_owned()];
    }
    assert!(give(&mut session, &bytes(1, root)).is_none());
    let told = heard(&mut session);
    let Operation::SearchEntry(root) = &told[0].operation else { panic!("the root") };
    assert_eq!(root.text("namingContexts"), Some("dc=example,dc=org"));
    assert!(root.values("vendorVersion").next().is_none());
    for (number, base) in
        ["dc=example,dc=org", "cn=Subschema", "ou=people,dc=example,dc=org"].iter().enumerate()
    {
        assert!(
            give(
                &mut session,
                &bytes(u32::try_from(number).unwrap() + 2, search(base, Scope::Subtree, "(cn=*)"))
            )
            .is_none()
        );
        assert_eq!(code(&mut session), ResultCode::INSUFFICIENT_ACCESS_RIGHTS, "{base}");
    }
    // Without a name nobody is bound, whatever was answered (RFC 4513, section 5.1).
    give(&mut session, &bytes(9, bind("", "")));
    assert_eq!((code(&mut session), session.is_bound()), (ResultCode::SUCCESS, false));
    give(&mut session, &bytes(10, bind("uid=ada,ou=people,dc=example,dc=org", "")));
    assert_eq!((code(&mut session), session.is_bound()), (ResultCode::UNWILLING_TO_PERFORM, false));
}

#[test]
fn a_password_is_not_looked_at_where_others_can_listen() {
    let mut session = session(false);
    assert!(give(&mut session, &bytes(1, bind("ada", "secret"))).is_none());
    assert_eq!(code(&mut session), ResultCode::CONFIDENTIALITY_REQUIRED);
    let start = Operation::Extended(ExtendedRequest::new(START_TLS));
    assert!(matches!(give(&mut session, &bytes(2, start.clone())), Some(Request::StartTls)));
    assert!(session.may_start_tls(false));
    assert_eq!(code(&mut session), ResultCode::SUCCESS);
    session.answer(Answer::Encrypted, Some(Vec::new()));
    assert!(matches!(give(&mut session, &bytes(3, bind("ada", "secret"))), Some(Request::Bind { .. })));
    // What came behind the request may be somebody else's.
    let mut session = crate::session(false);
    assert!(matches!(give(&mut session, &bytes(1, start)), Some(Request::StartTls)));
    assert!(!session.may_start_tls(true) && session.is_closed());
}

#[test]
fn entries_come_in_pages_and_a_limit_is_said() {
    let mut session = bound();
    let mut asked = Message::new(
        MessageId::from_number(2).unwrap(),
        search("dc=example,dc=org", Scope::Subtree, "(cn=*)"),
    );
    asked.controls.push(PagedResults { size: 2, cookie: Vec::new() }.control(true));
    let Some(Request::Search(request)) = give(&mut session, &asked.to_bytes()) else { panic!("a search") };
    assert_eq!((request.entries_max, request.after.as_deref(), request.is_paged), (2, None, true));
    let entries = vec![Entry::new("uid=a").with("cn", ["A"]), Entry::new("uid=b").with("cn", ["B"])];
    session.answer(Answer::Found { entries: entries.clone(), next: Some(b"b".to_vec()) }, None);
    let told = heard(&mut session);
    let cookie =
        |message: &Message| PagedResults::parse(message.control(PAGED_RESULTS).unwrap()).unwrap().cookie;
    assert_eq!((told.len(), cookie(&told[2])), (3, b"b".to_vec()));
    asked.controls = vec![PagedResults { size: 2, cookie: b"b".to_vec() }.control(true)];
    let Some(Request::Search(request)) = give(&mut session, &asked.to_bytes()) else { panic!("a search") };
    assert_eq!(request.after.as_deref(), Some(&b"b"[..]));
    session.answer(Answer::Found { entries: Vec::new(), next: None }, None);
    assert!(cookie(&heard(&mut session)[0]).is_empty());
    // Without pages there is a limit, and more are said to be there.
    let Some(Request::Search(request)) =
        give(&mut session, &bytes(3, search("dc=example,dc=org", Scope::Subtree, "(cn=*)")))
    else {
        panic!("a search")
    };
    assert_eq!(request.entries_max, 3);
    session.answer(Answer::Found { entries, next: Some(b"b".to_vec()) }, None);
    assert_eq!(code(&mut session), ResultCode::SIZE_LIMIT_EXCEEDED);
}

#[test]
fn a_bind_takes_away_the_one_before_and_nothing_is_written() {
    let mut session = bound();
    let who = || bytes(5, Operation::Extended(ExtendedRequest::new(WHO_AM_I)));
    give(&mut session, &who());
    let told = heard(&mut session);
    let Operation::ExtendedResponse(response) = &told[0].operation else { panic!("an answer") };
    assert_eq!(response.value.as_deref(), Some(&b"dn:uid=ada,ou=people,dc=example,dc=org"[..]));
    give(&mut session, &bytes(6, Operation::Delete("uid=ada,ou=people,dc=example,dc=org".to_owned())));
    assert_eq!(code(&mut session), ResultCode::UNWILLING_TO_PERFORM);
    let mut critical =
        Message::new(MessageId::from_number(7).unwrap(), search("dc=example,dc=org", Scope::Base, "(cn=*)"));
    critical.controls.push(Control::new("1.2.3.4", true, None));
    assert!(give(&mut session, &critical.to_bytes()).is_none());
    assert_eq!(code(&mut session), ResultCode::UNAVAILABLE_CRITICAL_EXTENSION);
    assert!(give(&mut session, &bytes(8, bind("ada", "wrong"))).is_some());
    assert!(!session.is_bound());
    let ended = scrinium_ldap_wire::LdapResult::new(ResultCode::INVALID_CREDENTIALS, "");
    session.answer(Answer::Ended(ended), None);
    assert_eq!(code(&mut session), ResultCode::INVALID_CREDENTIALS);
    give(&mut session, &who());
    let told = heard(&mut session);
    let Operation::ExtendedResponse(response) = &told[0].operation else { panic!("an answer") };
    assert_eq!(response.value.as_deref(), Some(&b""[..]));
    give(&mut session, &bytes(9, Operation::Unbind));
    assert!(session.is_closed());
}

#[test]
fn a_search_for_one_short_name_or_address_says_which() {
    for (filter, key) in [
        ("(uid=ada)", Some("ada")),
        ("(&(objectClass=person)(MAIL=ada@example.org))", Some("ada@example.org")),
        ("(|(uid=ada)(uid=bob))", None),
        ("(!(uid=ada))", None),
        ("(uid=a*)", None),
        ("(cn=ada)", None),
        ("(mail=\"a b\"@example.org)", None),
        ("(uid=\u{e4}da)", None),
    ] {
        let mut session = bound();
        let asked = give(&mut session, &bytes(2, search("dc=example,dc=org", Scope::Subtree, filter)));
        let Some(Request::Search(request)) = asked else { panic!("a search") };
        assert_eq!(request.key.as_deref(), key, "{filter}");
    }
}
