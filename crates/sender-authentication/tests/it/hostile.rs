//! Anything at all: no panic, no endless questions, and no pass where nothing was signed.

use proptest::prelude::*;
use scrinium_sender_authentication::dkim::{BodyDigests, KeyRecord, Signature};
use scrinium_sender_authentication::dmarc::{DmarcRecord, DmarcResult};
use scrinium_sender_authentication::spf::SpfRecord;
use scrinium_sender_authentication::{
    Answer, Answers, Authors, DomainName, FIELDS_MAX, HEAD_BYTES_MAX, Head, MessageReader, QUESTIONS_MAX,
    Question, ReadMessage, ReportLimits, parse_report, split_message, unpack_report,
};

use crate::kit::{Zone, authenticated, request};

/// Pieces that mean something in one of the languages here.
fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "v=DKIM1",
        "v=spf1",
        "v=DMARC1",
        "v=1",
        ";",
        "; ",
        "=",
        "p=",
        "p=reject",
        "a=rsa-sha256",
        "d=",
        "example.org",
        "s=",
        "s1",
        "h=from",
        "bh=",
        "b=",
        "AAAA",
        "i=@",
        "l=1",
        "t=",
        "x=",
        "c=relaxed/",
        "include:",
        "redirect=",
        "exp=",
        "a:",
        "mx",
        "ptr",
        "exists:",
        "%{i}",
        "%{p}",
        "%{d2r}",
        "%{",
        "}",
        "%",
        "/24",
        "//64",
        "-all",
        " ",
        "\r\n",
        "\r\n ",
        "\t",
        "From: ",
        "To: ",
        "DKIM-Signature: ",
        "Authentication-Results: ",
        "<",
        ">",
        "@",
        ",",
        ":",
        "\"",
        "\\",
        "(",
        ")",
        "[",
        "]",
        ".",
        "..",
        "ü",
        "\u{0}",
        "_dmarc.",
        "99999999999999999999",
    ]);
    let piece = prop_oneof![4 => word.prop_map(ToOwned::to_owned), 1 => "[ -~]{0,8}", 1 => any::<char>().prop_map(String::from)];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_a_record_or_none(text in text()) {
        let bytes = text.as_bytes();
        for read in [format!("v=spf1 {text}"), text.clone()] {
            _ = SpfRecord::parse(read.as_bytes());
        }
        _ = (KeyRecord::parse(bytes), DmarcRecord::parse(bytes), Signature::parse(bytes), DomainName::parse(&text));
        if let Some(name) = DomainName::parse(&text) {
            prop_assert_eq!(DomainName::parse(name.as_str()), Some(name.clone()), "a name is its own");
            prop_assert!(name.is_within(&name) && name.last_labels(1).labels() == 1);
        }
    }

    #[test]
    fn any_message_has_a_verdict(head in text(), body in text(), spf in text(), dmarc in text(), key in text()) {
        let mut zone = Zone::default();
        zone.add("example.org", "TXT", &format!("v=spf1 {spf}"));
        zone.add("_dmarc.example.org", "TXT", &format!("v=DMARC1; {dmarc}"));
        zone.add("s1._domainkey.example.org", "TXT", &key);
        let message = format!("From: a@example.org\r\n{head}\r\n\r\n{body}");
        let found = authenticated(&zone, &message, request("192.0.2.1", "a@example.net", "example.org"));
        prop_assert!(!found.dmarc.is_dkim_aligned, "{:?}", found);
        prop_assert!(zone.asked.lock().unwrap().len() <= QUESTIONS_MAX);
        let (head, _) = split_message(message.as_bytes());
        let fields = Head::parse(head).fields;
        let whole: Vec<u8> = fields.iter().flat_map(|field| field.raw.iter().copied()).collect();
        prop_assert_eq!(whole.as_slice(), head, "no byte of a head is lost");
    }

    /// A message that comes in pieces is the message that is there as a whole.
    #[test]
    fn a_message_in_pieces_is_the_whole(message in "[ab:\r\n]{0,12}(\r\n\r\n)?[ab\r\n]{0,12}", size in 1_usize..9) {
        let mut reader = MessageReader::default();
        message.as_bytes().chunks(size).for_each(|piece| reader.update(piece));
        let (head, body) = split_message(message.as_bytes());
        prop_assert_eq!(reader.finish(), ReadMessage { head: head.to_vec(), digests: BodyDigests::of(body) });
    }

    /// A From field is one domain's, or has a fault.
    #[test]
    fn any_from_field_has_its_domains(value in text()) {
        let field = format!("From: {value}\r\n");
        let authors = Authors::of(&Head::parse(field.as_bytes()));
        prop_assert_eq!(authors.single().is_some(), authors.fault.is_none());
        if authors.fault.is_none() {
            prop_assert_eq!(authors.domains.len(), 1);
        }
    }

    #[test]
    fn any_bytes_are_a_report_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300), start in 0_usize..3) {
        let start: &[u8] = [&b"\x1f\x8b\x08\0"[..], b"PK\x03\x04", b"<feedback>"][start];
        let bytes = [start, &bytes].concat();
        let limits = ReportLimits { packed_bytes: 1_000, xml_bytes: 10_000, rows: 2 };
        if let Ok(xml) = unpack_report(&bytes, &limits) {
            prop_assert!(xml.len() <= limits.xml_bytes);
            _ = parse_report(&xml, &limits);
        }
    }
}

#[test]
fn a_huge_head_is_cut_and_never_passes() {
    let zone = Zone::of("_dmarc.example.org TXT v=DMARC1; p=reject");
    for head in [
        "X: y\r\n".repeat(FIELDS_MAX + 1),
        format!("X: {}\r\n", "y".repeat(HEAD_BYTES_MAX)),
        format!("DKIM-Signature: {}\r\n", "h=from:".repeat(10_000)),
        format!("From: {}a@example.org\r\n", "(".repeat(100_000)),
        format!("From: {}\r\n", "a@b.example, ".repeat(4_000)),
    ] {
        let message = format!("{head}From: a@example.org\r\n\r\n");
        let found = authenticated(&zone, &message, request("192.0.2.1", "a@example.org", "x"));
        assert_ne!(found.dmarc.result, DmarcResult::Pass);
    }
}

#[test]
fn answers_have_room_for_a_message() {
    let mut answers = Answers::with_room(1);
    let question = |name: &str| Question::Texts(DomainName::parse(name).unwrap());
    assert!(answers.get(question("a.example")).is_err());
    answers.insert(question("a.example"), Answer::NoRecords);
    assert_eq!(answers.get(question("a.example")), Ok(&Answer::NoRecords));
    assert_eq!(answers.get(question("b.example")), Ok(&Answer::Failed), "no room is a failure of DNS");
}
