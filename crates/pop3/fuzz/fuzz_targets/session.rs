//! Any bytes as a client's: no panic, no more memory than the limits, and the maildrop is released.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use scrinium_mailbox::{FolderState, FolderView, NumberSet};
use scrinium_pop3::{
    Answer, ContentId, Encryption, Entry, LoginVerdict, Maildrop, MaildropAnswer, MaildropOutcome, MaildropQuestion, Peer,
    Refusal, Request, ServerOptions, ServerSession,
};

const SOURCE: &[u8] = b"Subject: x\r\n\r\none\r\n.two\r\n";

fn answer(request: Request, choice: u8, is_open: &mut bool) -> Answer {
    match request {
        Request::Greet(_) => Answer::Accepted,
        Request::StartTls => Answer::Encrypted(Encryption::default()),
        Request::Account(_) => Answer::Trouble,
        Request::LogIn(_) => Answer::Login(LoginVerdict::Admitted("ada".to_owned())),
        Request::Open(_) if choice % 4 == 0 => Answer::Refused(Refusal::trouble()),
        Request::Open(_) => {
            *is_open = true;
            let state = FolderState { change: 1, uid_next: 10, count: 9, last_uid: 9 };
            Answer::Opened(Box::new(Maildrop { view: FolderView::new(1, 7, state), bytes: 1000 }))
        }
        Request::Release => {
            *is_open = false;
            Answer::Accepted
        }
        Request::Content(_, span) if choice % 8 != 0 => {
            let from = usize::try_from(span.start).unwrap_or(0).min(SOURCE.len());
            Answer::Content(SOURCE[from..usize::try_from(span.end).unwrap_or(0).min(SOURCE.len())].to_vec())
        }
        Request::Content(..) => Answer::Gone,
        Request::Maildrop(question) => {
            let (view, outcome) = match *question {
                MaildropQuestion::Entries(view, numbers, _) => {
                    let entry = numbers.ends().map(|(first, _)| Entry {
                        number: first,
                        uid: first,
                        bytes: SOURCE.len() as u64,
                        content: ContentId(Arc::from([1])),
                    });
                    let rest = numbers.ends().map_or_else(NumberSet::default, |(first, _)| numbers.above(first));
                    (view, MaildropOutcome::Entries { entries: entry.into_iter().collect(), rest })
                }
                MaildropQuestion::Delete(view, _) => (view, MaildropOutcome::Deleted { rest: NumberSet::default() }),
            };
            Answer::Maildrop(Box::new(MaildropAnswer { view, outcome }))
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some(([kind, piece, choices @ ..], input)) = bytes.split_first_chunk::<10>() else { return };
    let mut options = ServerOptions::new("pop.test");
    options.has_certificate = true;
    options.requires_tls = kind & 1 != 0;
    options.limits.piece_bytes = 7;
    options.limits.output_bytes = 50;
    let encryption = (kind & 2 != 0).then(Encryption::default);
    let mut session = ServerSession::new(Arc::new(options), Peer::default(), encryption, 1000);
    let (mut is_open, mut asked) = (false, 0_usize);
    let mut text: Vec<u8> = Vec::new();
    if kind & 4 != 0 {
        text.extend_from_slice(b"USER ada\r\nPASS secret\r\n");
    }
    text.extend_from_slice(input);
    let mut rest = text.as_slice();
    loop {
        let request = session.next(1000);
        let output = session.take_output();
        assert!(output.len() < 100_000 && session.held_bytes() < 1 << 20);
        match request {
            Some(request) => {
                let choice = choices[asked % choices.len()];
                asked += 1;
                session.answer(answer(request, choice, &mut is_open), 1000);
            }
            None if !output.is_empty() => {}
            None if rest.is_empty() || session.is_closed() => break,
            None => {
                let taken = session.receive(&rest[..rest.len().min(usize::from(*piece).max(1))], 1000);
                rest = &rest[taken..];
                if taken == 0 {
                    break;
                }
            }
        }
    }
    session.disconnected();
    while let Some(request) = session.next(1000) {
        session.answer(answer(request, 3, &mut is_open), 1000);
    }
    assert!(!is_open, "the maildrop is not released");
});
