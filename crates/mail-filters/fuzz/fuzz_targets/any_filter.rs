//! Any bytes as what a filter answers to a whole SMTP session: no panic, and changes that stay within what they are.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_mail_filters::milter::{Change, Client, MilterLimits, MilterSession, Told};

fuzz_target!(|bytes: &[u8]| {
    let limits = MilterLimits { packet_bytes: 1_000, changes: 10, changed_bytes: 5_000 };
    let (mut session, _) = MilterSession::new(limits);
    let client = Client { name: "mx.example.com", address: None, port: 0 };
    let events = [
        Told::Connect(client),
        Told::Helo(b"mx.example.com"),
        Told::Sender(b"<a@example.com>", &[]),
        Told::Recipient(b"<b@example.org>", &[]),
        Told::Data,
        Told::Field(b"Subject", b" x"),
        Told::EndOfFields,
        Told::Body(b"Hello"),
        Told::End,
    ];
    let mut events = events.iter();
    for piece in bytes.chunks(7) {
        match session.take(piece) {
            Err(_) => return,
            Ok(None) => {}
            Ok(Some(_)) => {
                let mut is_answered = false;
                while !is_answered {
                    let Some(told) = events.next() else { break };
                    let Ok(sending) = session.tell(told, &[("i", "1")]) else { return };
                    is_answered = sending.is_answered;
                }
            }
        }
    }
    let changes = session.take_changes();
    assert!(changes.len() <= limits.changes);
    for change in changes {
        if let Change::AddField { name, value } | Change::InsertField { name, value, .. } = change {
            assert!(!name.contains(['\r', '\n', ':', ' ']) && !value.windows(4).any(|four| four == b"\r\n\r\n"));
        }
    }
});
