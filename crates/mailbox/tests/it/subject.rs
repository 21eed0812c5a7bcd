//! Subjects, encoded words, dates.

use scrinium_mailbox::{SentDate, base_subject, decode_words, encode_words};

#[test]
fn base_subjects_are_those_of_rfc_5256() {
    for (subject, base, is_reply) in [
        ("Hello", "HELLO", false),
        ("Re: Hello", "HELLO", true),
        ("re[2] : [list] Fwd: Hello (fwd)", "HELLO", true),
        ("[list] Hello", "HELLO", false),
        ("[only]", "[ONLY]", false),
        ("[fwd: [fwd: Hello]]", "HELLO", true),
        ("=?utf-8?q?Re=3A_Gr=C3=BC=C3=9Fe?=", "GRÜSSE", true),
        ("Re:", "", true),
        ("", "", false),
    ] {
        let found = base_subject(subject.as_bytes());
        assert_eq!((found.text.as_str(), found.is_reply), (base, is_reply), "{subject}");
    }
}

#[test]
fn encoded_words_are_read_and_written() {
    for (text, decoded) in [
        ("=?iso-8859-1?Q?Andr=E9?= Pirard", "André Pirard"),
        (
            "=?ISO-8859-1?B?SWYgeW91IGNhbiByZWFkIHRoaXMgeW8=?= =?ISO-8859-2?B?dSB1bmRlcnN0YW5kIHRoZSBleGFtcGxlLg==?=",
            "If you can read this you understand the example.",
        ),
        ("=?utf-8*de?q?a_b?= c =?x?", "a b c =?x?"),
        ("=?none?q?a?= b", "=?none?q?a?= b"),
        ("plain", "plain"),
    ] {
        assert_eq!(decode_words(text.as_bytes()), decoded);
    }
    let long = "Ein sehr langer Betreff mit Umlauten äöü, und das mehr als einmal: äöü äöü äöü 😀";
    let written = encode_words(long.as_bytes());
    assert!(written.is_ascii() && written.split(|byte| *byte == b' ').all(|word| word.len() <= 75));
    assert_eq!(decode_words(&written), long);
}

#[test]
fn dates_are_read() {
    let utc = |text: &str| SentDate::parse(text.as_bytes()).map(|date| date.utc_seconds);
    assert_eq!(utc("Thu, 26 Nov 2026 12:00:00 +0100"), Some(1_795_690_800));
    assert_eq!(utc("26 Nov 26 06:00 EST (winter)"), Some(1_795_690_800));
    assert_eq!(utc("nonsense"), None);
    assert_eq!(utc("31 Feb 2026 00:00:00 +0000"), None);
}
