//! Any bytes as a server's: no panic, no more memory than the limits, one outcome for each recipient, and none but for
//! a message that was handed in.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_credentials::sasl::ChannelBindings;
use scrinium_smtp::ClientSession;
use scrinium_smtp::client::{ClientLogin, ClientOptions, ClientRequest, LoginSecret, Outgoing, Protocol};
use scrinium_smtp_wire::{ForwardPath, ReversePath};

fuzz_target!(|bytes: &[u8]| {
    let Some(([kind, piece], input)) = bytes.split_first_chunk::<2>() else { return };
    let protocol = if kind & 1 == 0 { Protocol::Smtp } else { Protocol::Lmtp };
    let mut options = ClientOptions::new(protocol, "us.test");
    options.prefers_chunks = kind & 2 != 0;
    options.login = (kind & 4 != 0)
        .then(|| ClientLogin { name: "ada".to_owned(), secret: LoginSecret::Password("secret".to_owned()) });
    let encryption = (kind & 8 != 0).then(ChannelBindings::default);
    let mut session = ClientSession::new(options, encryption, 1000);
    let recipients = usize::from(kind >> 5) + 1;
    let (mut handed_in, mut done) = (0, 0);
    for piece in input.chunks(usize::from(*piece).max(1)) {
        for _ in 0..20 {
            let Some(request) = session.next(1000) else { break };
            match request {
                ClientRequest::Ready if handed_in < 3 => {
                    handed_in += 1;
                    let message = Outgoing::new(ReversePath::Null, vec![ForwardPath::Postmaster; recipients]);
                    assert!(session.send(message, 1000));
                }
                ClientRequest::Ready => session.quit(1000),
                ClientRequest::StartTls => session.tls_started(ChannelBindings::default(), 1000),
                ClientRequest::Text if kind & 16 != 0 => session.give_text(b".a\r\n.\r"),
                ClientRequest::Text => session.end_text(),
                ClientRequest::Done(outcomes) => {
                    done += 1;
                    assert_eq!(outcomes.len(), recipients);
                }
                ClientRequest::Failed(_) => {}
            }
        }
        assert!(session.held_bytes() < 200_000);
        let _ = session.take_output();
        session.receive(piece, 1000);
    }
    session.disconnected();
    while let Some(request) = session.next(1000) {
        if let ClientRequest::Done(outcomes) = request {
            done += 1;
            assert_eq!(outcomes.len(), recipients);
        }
    }
    assert!(session.is_closed());
    assert_eq!(handed_in, done);
});
