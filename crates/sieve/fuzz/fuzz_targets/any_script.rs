//! Any bytes as a script, and what stands behind a NUL as a message: no panic, no hang, and twice the same outcome.

#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use scrinium_sieve::{BodyPart, Delivery, HeaderField, Limits, Message, NoHost, PartForm, Script};

/// Lines of `name:value`; all of it is the body, too.
struct Lines<'a>(&'a [u8]);

impl Message for Lines<'_> {
    fn size_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn field(&self, index: usize) -> Option<HeaderField<'_>> {
        let line = self.0.split(|byte| *byte == b'\n').nth(index)?;
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some(HeaderField { name: line.get(..colon)?, value: line.get(colon + 1..)? })
    }

    fn decode(&self, value: &[u8]) -> String {
        String::from_utf8_lossy(value).into_owned()
    }

    fn raw_body(&self) -> &[u8] {
        self.0
    }

    fn part(&self, index: usize, _: PartForm) -> Option<BodyPart<'_>> {
        let text = String::from_utf8_lossy(self.0);
        (index < 2).then_some(BodyPart { content_type: Cow::Borrowed("text/plain"), text })
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut halves = bytes.splitn(2, |byte| *byte == 0);
    let (script, message) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
    let limits = Limits { work_bytes: 10_000_000, ..Limits::default() };
    let Ok(script) = Script::compile(script, &limits) else { return };
    let delivery = Delivery {
        sender: "ada@example.net",
        recipient: "bob+x@example.org",
        own_addresses: &["bob@example.org"],
        now_seconds: 1_795_663_813,
        zone_seconds: 3_600,
        environment: &[("name", "Scrinium")],
        separator: '+',
    };
    let outcome = script.run(&Lines(message), &delivery, &NoHost, &limits);
    assert_eq!(outcome, script.run(&Lines(message), &delivery, &NoHost, &limits));
    assert!(outcome.actions.len() <= limits.actions + 1);
});
