//! Any calendar as what is stored, and any as a message about it: no panic, what is to be stored can be read and is the same meeting,
//! and who gets the same message again has nothing new to do.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_calendar::itip::{Change, FilingRule, Incoming, Person, Storing, change, receive};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_dav_wire::content::{Component, ContentLimits};

fuzz_target!(|input: (u8, &str, &str)| {
    let (flags, stored, message) = input;
    let read = |text: &str| Component::parse(text.as_bytes(), ContentLimits::default()).ok();
    let (stored, Some(message)) = (read(stored), read(message)) else { return };
    let person = Person { addresses: vec!["a@b".to_owned()], zone: Zone::utc() };
    let sender = if flags & 1 == 0 { "c@d" } else { "a@b" };
    let incoming =
        Incoming { calendar: &message, mime_method: None, sender, is_authenticated: true, is_known: true };
    let first = receive(stored.as_ref(), &incoming, FilingRule::Known, &person, Instant(0));
    if let Storing::Put(calendar) = &first.storing {
        let bytes = calendar.to_bytes();
        let again = Component::parse(&bytes, ContentLimits::default()).expect("what is stored can be read");
        let second = receive(Some(&again), &incoming, FilingRule::Known, &person, Instant(60));
        if let Storing::Put(second) = &second.storing {
            let uid = |calendar: &Component| {
                calendar.components().find_map(|part| part.line("UID").map(|line| line.value().to_owned()))
            };
            assert_eq!(uid(second), uid(&again));
        }
    }
    let keeps_answers = flags & 2 != 0;
    for (before, after) in [(stored.as_ref(), Some(&message)), (Some(&message), None), (None, Some(&message))] {
        let request = Change { stored: before, new: after, keeps_answers, informs: true };
        if let Ok(outcome) = change(request, &person, Instant(120)) {
            for sent in outcome.messages {
                let bytes = sent.calendar.to_bytes();
                assert!(Component::parse(&bytes, ContentLimits::default()).is_ok());
            }
        }
    }
});
