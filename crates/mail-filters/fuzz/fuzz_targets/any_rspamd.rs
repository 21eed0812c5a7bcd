//! Any bytes as rspamd's answer: no panic, and fields that stay fields.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_mail_filters::RspamdAnswer;
use scrinium_mail_filters::milter::Change;

fuzz_target!(|bytes: &[u8]| {
    let Ok(answer) = RspamdAnswer::parse(bytes) else { return };
    for change in answer.changes {
        if let Change::AddField { name, value } | Change::InsertField { name, value, .. } = change {
            assert!(!name.contains(['\r', '\n', ':', ' ']) && !value.windows(4).any(|four| four == b"\r\n\r\n"));
        }
    }
});
