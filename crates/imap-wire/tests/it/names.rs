//! Names of mailboxes.

use proptest::prelude::*;
use scrinium_imap_wire::{MailboxName, NameEncoding, decode_utf7, encode_utf7};

#[test]
fn names_in_modified_utf7() {
    for (name, written) in [
        ("Entwürfe", "Entw&APw-rfe"),
        ("R&D", "R&-D"),
        ("😀", "&2D3eAA-"),
        ("日本語/x", "&ZeVnLIqe-/x"),
        ("&", "&-"),
        ("", ""),
    ] {
        assert_eq!(encode_utf7(name), written);
        assert_eq!(decode_utf7(written.as_bytes()).as_deref(), Ok(name));
    }
    // Half a pair, plain letters that were encoded, no end, other base64, odd bytes, raw characters beyond ASCII.
    for wrong in ["&2D0-", "&AGE-", "&APw", "&APw=-", "&AP-", "ü", "&-&", "&APx-"] {
        assert!(decode_utf7(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn there_is_one_inbox() {
    for name in ["inbox", "INBOX", "InBox"] {
        assert_eq!(MailboxName::new(name), Some(MailboxName::inbox()));
    }
    assert_ne!(MailboxName::new("inbox/x"), MailboxName::new("INBOX/x"));
    assert_eq!(MailboxName::new("two\nlines"), None);
    assert_eq!(MailboxName::new(&"x".repeat(5000)), None);
}

proptest! {
    #[test]
    fn any_name_is_read_back(name in "[^\\p{C}]{0,30}") {
        let name = MailboxName::new(&name).unwrap();
        for encoding in [NameEncoding::Utf7, NameEncoding::Utf8] {
            prop_assert_eq!(MailboxName::decode(name.encode(encoding).as_bytes(), encoding), Ok(name.clone()));
        }
    }

    #[test]
    fn a_name_has_one_spelling(written in "[&a-zA-Z0-9,+-]{0,12}") {
        if let Ok(name) = decode_utf7(written.as_bytes()) {
            prop_assert_eq!(encode_utf7(&name), written);
        }
    }
}
