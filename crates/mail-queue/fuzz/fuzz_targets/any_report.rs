//! Any bytes as a delivery report: no panic, no hang, and nothing that could break a line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_mail_queue::report::read_report;

fuzz_target!(|bytes: &[u8]| {
    let Some(report) = read_report(bytes) else { return };
    assert!(!report.recipients.is_empty());
    for recipient in &report.recipients {
        let texts = [Some(&recipient.address), recipient.diagnostic.as_ref(), recipient.host.as_ref()];
        for text in texts.into_iter().flatten() {
            assert!(!text.chars().any(char::is_control));
        }
    }
});
