//! Any bytes as a client's: no panic, no more memory than the limits, one message at a time, and no reply but whole lines.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use scrinium_smtp::{
    Answer, Delivery, Encryption, LoginVerdict, Peer, RecipientVerdict, Refusal, Request, SenderField, ServerOptions,
    ServerSession, Service,
};

/// An answer that fits, a refusal, or, by a byte of the input, one that does not fit.
fn answer(request: &Request, choice: u8, is_open: &mut bool) -> Answer {
    match request {
        Request::Begin(_) => assert!(!*is_open),
        Request::Text(_) | Request::Finish(_) | Request::Head(_) => assert!(*is_open),
        _ => {}
    }
    let answer = match (choice % 8, request) {
        (0, _) => Answer::Refused(Refusal::new(450 + u16::from(choice), 7, 1, "No")),
        (1, _) => Answer::Trouble,
        (_, Request::Greet(_) | Request::Sender(_) | Request::Text(_) | Request::Abandon) => Answer::Accepted,
        (_, Request::StartTls) => Answer::Encrypted(Encryption::default()),
        (_, Request::Account(_)) => Answer::Trouble,
        (_, Request::LogIn(_)) => Answer::Login(LoginVerdict::Admitted("ada".to_owned())),
        (2, Request::Recipient(_)) => Answer::Recipient(RecipientVerdict::Unknown),
        (_, Request::Recipient(_)) => Answer::Recipient(RecipientVerdict::Accepted),
        (_, Request::Begin(_)) => Answer::Begun("m1".to_owned()),
        (_, Request::Head(_)) => Answer::Head(SenderField::Keep),
        (2, Request::Finish(_)) => Answer::FinishedEach(vec![Delivery::Accepted]),
        (_, Request::Finish(_)) => Answer::Finished(Delivery::Accepted),
    };
    match (request, &answer) {
        (Request::Begin(_), Answer::Begun(_)) => *is_open = true,
        (Request::Finish(_) | Request::Abandon, _) => *is_open = false,
        _ => {}
    }
    answer
}

fuzz_target!(|bytes: &[u8]| {
    let Some(([kind, piece, choices @ ..], input)) = bytes.split_first_chunk::<18>() else { return };
    let service = [Service::Relay, Service::Submission, Service::Lmtp][usize::from(kind % 3)];
    let mut options = ServerOptions::new(service, "mx.test");
    options.requires_tls = kind & 8 != 0;
    options.has_certificate = true;
    options.has_tokens = true;
    options.limits.message_bytes = 2000;
    options.limits.piece_bytes = 64;
    options.future_release_s = Some(1000);
    let encryption = (kind & 32 != 0).then(Encryption::default);
    let mut session = ServerSession::new(Arc::new(options), Peer::default(), encryption, 1000);
    let (mut is_open, mut asked) = (false, 0_usize);
    let mut pieces = input.chunks(usize::from(*piece).max(1));
    let mut rest: &[u8] = &[];
    loop {
        let request = session.next(1000);
        if session.wants_flush() {
            let output = session.take_output();
            assert!(output.ends_with(b"\r\n") && output.len() < 100_000);
            continue_with(&mut session, request, choices, &mut asked, &mut is_open);
            continue;
        }
        let had_request = request.is_some();
        continue_with(&mut session, request, choices, &mut asked, &mut is_open);
        if had_request {
            continue;
        }
        assert!(session.held_bytes() < 2_000_000);
        if rest.is_empty() {
            let Some(piece) = pieces.next() else { break };
            rest = piece;
        }
        rest = &rest[session.receive(rest, 1000)..];
        if session.is_closed() {
            break;
        }
    }
    session.disconnected();
    while let Some(request) = session.next(1000) {
        let answer = answer(&request, 3, &mut is_open);
        session.answer(answer, 1000);
    }
    assert!(!is_open, "a message is left open");
});

fn continue_with(session: &mut ServerSession, request: Option<Request>, choices: &[u8], asked: &mut usize, is_open: &mut bool) {
    let Some(request) = request else { return };
    let choice = choices[*asked % choices.len()];
    *asked += 1;
    let answer = answer(&request, choice, is_open);
    session.answer(answer, 1000);
}
