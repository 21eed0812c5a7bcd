//! Messages become memos: tricky ones against golden files, arbitrary bytes, and the corpus of real mail.
//!
//! `SCRINIUM_BLESS=1 cargo test -p scrinium-mail --test it messages` writes the golden files again.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use scrinium_mail::{MessageOptions, imported_id, memo_of_message};
use serde_json::{Map, Value};

fn memo(source: &[u8]) -> Map<String, Value> {
    memo_of_message(source, &MessageOptions::default())
}

#[test]
fn tricky_messages_become_the_memos_of_the_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages");
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "eml") {
            continue;
        }
        seen += 1;
        let found = serde_json::to_string_pretty(&memo(&std::fs::read(&path).unwrap())).unwrap() + "\n";
        let golden = path.with_extension("json");
        if std::env::var_os("SCRINIUM_BLESS").is_some() {
            std::fs::write(&golden, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(found, expected, "{}", path.display());
    }
    assert!(seen >= 9);
}

#[test]
fn endless_fields_are_cut() {
    let mut source = b"From: a@b\nSubject: ".to_vec();
    source.extend(std::iter::repeat_n(b's', 3 << 20));
    source.extend(b"\nTo: late@b\n\nbody ");
    source.extend("ø".repeat(300 * 1024).bytes());
    let memo = memo(&source);
    assert_eq!(memo["Subject"].as_str().unwrap().len(), 2_000);
    let body = memo["Body"].as_str().unwrap();
    assert!(body.starts_with("body øø") && body.len() <= 256 * 1024);
    assert_eq!(memo["$BodyTruncated"], true);
    assert_eq!(memo["$Size"], source.len());
    assert!(memo["$ParseNotes"].to_string().contains("longer than 1 MB"));
}

#[test]
fn many_recipients_and_parts_are_bounded() {
    let many: Vec<String> = (0..20_000).map(|n| format!("p{n}@b")).collect();
    let mut source =
        format!("From: a@b\nTo: {}\nContent-Type: multipart/mixed; boundary=x\n\n", many.join(",\n "));
    source.push_str(&"--x\nContent-Type: image/gif\n\nabc\n".repeat(5_000));
    let memo = memo(source.as_bytes());
    assert_eq!(memo["SendTo"].as_array().unwrap().len(), 10_000);
    assert_eq!(memo["$FileNames"].as_array().unwrap().len(), 1_000);
}

#[test]
fn an_imported_message_has_one_id_for_each_person() {
    let id = imported_id(b"source", "ada");
    assert!(id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()));
    assert_eq!(id, imported_id(b"source", "ada"));
    assert_ne!(id, imported_id(b"source", "bob"));
    assert_ne!(imported_id(b"bx", "a"), imported_id(b"x", "ab"));
}

/// Lines that reach the paths behind the first ones.
const PIECES: [&[u8]; 22] = [
    b"From: \"Ada\" <ada@acme.example>\n",
    b"To: a@b, (comment <c@d>, group: x@y;\r\n",
    b"Subject: =?utf-8?Q?=C3=?= =?big5?B?//8=?=\n",
    b"Date: Thu, 99 Foo 99999 99:99:99 +9999\n",
    b"Content-Type: multipart/mixed; boundary=\"b\"\n",
    b"Content-Type: multipart/alternative; boundary=b\n",
    b"Content-Type: text/html; charset=utf-7\n",
    b"Content-Type: message/rfc822\n",
    b"Content-Type: text/plain; charset=iso-2022-jp\n",
    b"Content-Transfer-Encoding: base64\n",
    b"Content-Transfer-Encoding: quoted-printable\n",
    b"Content-Disposition: attachment; filename*0*=utf-8''%ff; filename*1=x\n",
    b"Message-ID: <<a@b>\n",
    b"References: <a> <b\n c> d\n",
    b"Received: from x; \n",
    b"--b\n",
    b"--b--\n",
    b"\n",
    b"\r\n",
    b"=4=\xff=\n",
    b"<html><head><!-- &#x110000; <p",
    b"From x  Thu Aug 22 13:17:22 2002\n",
];

fn mail_like() -> impl Strategy<Value = Vec<u8>> {
    let piece = (0..PIECES.len()).prop_map(|number| PIECES[number].to_vec());
    let noise = prop::collection::vec(any::<u8>(), 0..40);
    prop::collection::vec(prop_oneof![4 => piece, 1 => noise], 0..40).prop_map(|pieces| pieces.concat())
}

/// What holds for the memo of any bytes at all.
fn check_any(source: &[u8]) {
    let memo = memo(source);
    for name in ["Form", "From", "Subject", "Body"] {
        assert!(memo.get(name).is_some_and(Value::is_string), "{name}");
    }
    assert!(memo.get("SendTo").is_some_and(Value::is_array));
    assert_eq!(memo["$Size"], source.len());
    let text = Value::Object(memo.clone()).to_string();
    assert!(!text.contains("\\u0000"), "NUL in {text}");
    assert!(!text.contains("cannot be read; its source"), "the header parser panicked");
    assert_eq!(memo_of_message(source, &MessageOptions::default()), memo, "the same bytes, the same memo");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(600), ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_become_a_memo(source in prop::collection::vec(any::<u8>(), 0..600)) {
        check_any(&source);
    }

    #[test]
    fn anything_like_mail_becomes_a_memo(source in mail_like()) {
        check_any(&source);
    }

    #[test]
    fn a_message_cut_anywhere_becomes_a_memo(at in 0..1_400_usize, flip in any::<u8>(), place in 0..1_400_usize) {
        let mut source = include_bytes!("../messages/parts.eml").to_vec();
        if let Some(byte) = source.get_mut(place) {
            *byte ^= flip;
        }
        source.truncate(at);
        check_any(&source);
    }
}

fn messages_in(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            messages_in(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            found.push(path);
        }
    }
}

#[test]
fn every_message_of_the_corpus_becomes_a_memo() {
    let Some(folder) = crate::common::corpus() else { return };
    let mut paths = Vec::new();
    messages_in(&folder, &mut paths);
    let (mut noted, mut without_body) = (0, 0);
    for path in &paths {
        let memo = memo(&std::fs::read(path).unwrap());
        assert!(memo.get("PostedDate").is_some(), "{}", path.display());
        assert!(!memo["From"].as_str().unwrap().is_empty(), "{}", path.display());
        let year = memo["DeliveredDate"].as_str().unwrap().get(..4).map(str::to_owned);
        assert!(matches!(year.as_deref(), Some("2001" | "2002")), "{}: {memo:?}", path.display());
        noted += usize::from(memo.contains_key("$ParseNotes"));
        without_body += usize::from(memo["Body"].as_str().unwrap().trim().is_empty());
    }
    assert!(paths.len() > 6_000, "{} messages", paths.len());
    // Few are damaged, and only mail made of pictures has no text.
    assert!(noted < paths.len() / 10, "{noted} with notes");
    assert!(without_body < 25, "{without_body} without a body");
}
