//! Any bytes as reports, records and replies: nothing panics, nothing takes long, and what is written is read back.

use proptest::prelude::*;
use scrinium_mail_queue::report::read_report;
use scrinium_mail_queue::{QueuePolicy, Random, Record, rebuild};

use crate::kit::{START_MS, entry};

/// Bytes that look like reports.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "Content-Type: multipart/report; boundary=b\r\n",
        "Content-Type: multipart/report; boundary=\"b\\\"\r\n",
        "--b\r\n",
        "--b--\r\n",
        "\r\n",
        "\n",
        "Content-Type: message/delivery-status\r\n",
        "Final-Recipient: rfc822; a@b\r\n",
        "Original-Recipient: utf-8; \\x{F6}\\x{}\\x{110000}\r\n",
        "Action: failed\r\n",
        "Status: 5.1.1\r\n",
        " folded\r\n",
        "Content-Transfer-Encoding: quoted-printable\r\n",
        "=",
        "=3D",
        "=\r\n",
        "Content-Type: message/rfc822\r\n",
        "Message-ID: <x@y>\r\n",
        ":",
        ";",
        "\u{0}",
        "\u{f6}",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scrinium_fault::cases(256)))]

    #[test]
    fn any_bytes_may_be_a_report(bytes in prop_oneof![pieces(), prop::collection::vec(any::<u8>(), 0..500)]) {
        if let Some(report) = read_report(&bytes) {
            prop_assert!(!report.recipients.is_empty());
            for recipient in report.recipients {
                prop_assert!(!recipient.address.chars().any(|letter| letter == '\n' || letter == '\r'));
            }
        }
    }

    #[test]
    fn a_record_with_any_byte_changed_is_read_or_refused(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let policy = QueuePolicy::default();
        let mut entry = entry("m", Some("ada@example.org"), &["bob@example.net", "eve@example.net"]);
        let queued = entry.snapshot(START_MS);
        let begin = entry.begin(START_MS, &policy).unwrap();
        entry.apply(&begin).unwrap();
        let end = entry.interrupted(START_MS).unwrap();
        for record in [&queued, &begin, &end] {
            let mut bytes = record.encode();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            let Ok(read) = Record::decode(&bytes) else { continue };
            prop_assert_eq!(&Record::decode(&read.encode()).unwrap(), &read);
            if let Ok(Some(mut entry)) = rebuild([&queued, &begin, &read]) {
                let _ = (entry.step(START_MS, &policy), entry.queue(), entry.due_row(&policy));
                let outcomes = [(0, scrinium_mail_queue::Outcome::new(
                    scrinium_mail_queue::Ending::Failed,
                    scrinium_mail_queue::Cause::Throttled,
                ))];
                if let Some(record) = entry.end(START_MS, &outcomes, &policy, &mut Random::new(1)) {
                    entry.apply(&record).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_report_of_megabytes_is_looked_at_up_to_its_bound() {
    let mut report = b"Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n".to_vec();
    while report.len() < 8 << 20 {
        report.extend_from_slice(b"\r\nFinal-Recipient: rfc822; a@example.net\r\nAction: failed\r\n");
    }
    assert_eq!(read_report(&report).unwrap().recipients.len(), 10_000);
    let folded = [b"Content-Type: multipart/report;\r\n".as_slice(), &b" x\r\n".repeat(1 << 20)].concat();
    assert_eq!(read_report(&folded), None);
    let nested = b"\r\n--b".repeat(1 << 20);
    assert_eq!(read_report(&nested), None);
}
