//! Maps of messages.

use proptest::prelude::*;
use scrinium_imap_wire::{
    FetchItem, MessageData, NameEncoding, Response, Section, SectionText, WriteOptions, joined,
};
use scrinium_mailbox::{
    Decoder, FieldFilter, MapBuilder, MapLimits, MessageMap, Outline, OutlineBuilder, PartKind,
    SectionContent, Span, TransferEncoding, locate, locate_part,
};

fn structure(message: &str) -> String {
    let map = MapBuilder::map(message.as_bytes());
    let item = FetchItem::BodyStructure(Box::new(map.structure(true, false)));
    shown(item)
}

fn shown(item: FetchItem) -> String {
    let response = Response::Fetch { number: 1, items: vec![item] };
    let line = joined(&response.write(NameEncoding::Utf7, WriteOptions::SERVER));
    String::from_utf8(line).unwrap().trim_end().trim_start_matches("* 1 FETCH ").to_owned()
}

fn envelope(message: &str) -> String {
    shown(FetchItem::Envelope(Box::new(MapBuilder::map(message.as_bytes()).envelope(false))))
}

const NESTED: &str = "From: a@x.test\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\npreamble\r\n--b\r\n\r\nOne\r\nTwo\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\nContent-Type: multipart/alternative; boundary=bb\r\n\r\n--bb\r\n\r\nplain\r\n--bb\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\nPGI+aGk8L2I+\r\n--bb--\r\n\r\n--b\r\nContent-Type: image/png; name*0=a; name*1=b.png\r\nContent-Disposition: attachment; filename=ab.png\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAA\r\nAAAA\r\n--b--\r\nepilogue\r\n";

#[test]
fn a_structure_has_all_of_its_extension_data() {
    assert_eq!(
        structure(NESTED),
        "(BODYSTRUCTURE ((\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 8 1 NIL NIL NIL NIL)(\"message\" \"rfc822\" NIL NIL NIL \"7bit\" 173 (NIL \"inner\" NIL NIL NIL NIL NIL NIL NIL NIL) ((\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 5 0 NIL NIL NIL NIL)(\"text\" \"html\" (\"charset\" \"us-ascii\") NIL NIL \"base64\" 12 0 NIL NIL NIL NIL) \"alternative\" (\"boundary\" \"bb\") NIL NIL NIL) 12 NIL NIL NIL NIL)(\"image\" \"png\" (\"name\" \"ab.png\") NIL NIL \"base64\" 10 NIL (\"attachment\" (\"filename\" \"ab.png\")) NIL NIL) \"mixed\" (\"boundary\" \"b\") NIL NIL NIL))"
    );
}

fn section(map: &MessageMap, message: &[u8], part: &[u32], text: Option<SectionText>) -> Option<String> {
    match locate(map, &Section { part: part.to_vec(), text })? {
        SectionContent::Bytes(Span { start, end }) => {
            Some(String::from_utf8_lossy(&message[start as usize..end as usize]).into_owned())
        }
        SectionContent::Fields(span, names, excluded) => {
            let mut out = Vec::new();
            let mut filter = FieldFilter::new(&names, excluded);
            filter.push(&message[span.start as usize..span.end as usize], &mut out);
            Some(String::from_utf8(out).unwrap())
        }
    }
}

#[test]
fn an_outline_comes_back_as_it_was_kept_and_no_cut_or_changed_one_is_another_shape() {
    let with_feeds = NESTED.replace("\r\n", "\n");
    let dated = format!("Date: Thu, 26 Nov 2026 09:20:51 +0100\r\nReferences: <a@x> <b@x>\r\n{NESTED}");
    for source in [NESTED, &with_feeds, &dated, "", "\n"] {
        let mut builder = OutlineBuilder::default();
        source.as_bytes().chunks(7).for_each(|piece| builder.push(piece));
        let outline = builder.finish();
        assert_eq!(outline.places.is_some(), source.contains('\n') && !source.contains('\r'));
        let kept = outline.encode().unwrap();
        assert_eq!(Outline::decode(&kept).as_ref(), Some(&outline));
        assert_eq!(Outline::decode_sent(&kept), Some(outline.map.sent));
        for cut in 0..kept.len() {
            assert_eq!(Outline::decode(&kept[..cut]), None);
            let mut changed = kept.clone();
            changed[cut] ^= 0x55;
            if let Some(found) = Outline::decode(&changed) {
                let _ = found.map.structure(true, true);
            }
        }
    }
    let long = "a line\n".repeat(30_000);
    let of_pieces = |bytes: usize| {
        let mut builder = OutlineBuilder::default();
        long.as_bytes().chunks(bytes).for_each(|piece| builder.push(piece));
        builder.finish()
    };
    assert_eq!(of_pieces(1000), of_pieces(100_000), "pieces mean nothing");
    let many = format!(
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n{}",
        "--b\r\nContent-ID: <an id of a part>\r\nContent-Description: of a length that is more than most of them have in any message\r\n\r\n\r\n".repeat(999)
    );
    let mut builder = OutlineBuilder::default();
    builder.push(many.as_bytes());
    assert_eq!(builder.finish().encode(), None, "it has a limit");
}

#[test]
fn sections_are_those_of_the_standard() {
    let map = MapBuilder::map(NESTED.as_bytes());
    let get = |part: &[u32], text| section(&map, NESTED.as_bytes(), part, text);
    assert_eq!(get(&[], None).as_deref(), Some(NESTED));
    assert_eq!(get(&[1], None).as_deref(), Some("One\r\nTwo"));
    assert_eq!(get(&[1], Some(SectionText::Mime)).as_deref(), Some("\r\n"));
    assert_eq!(get(&[1, 1], None), None);
    assert_eq!(get(&[2], Some(SectionText::Mime)).as_deref(), Some("Content-Type: message/rfc822\r\n\r\n"));
    assert!(get(&[2], Some(SectionText::Header)).unwrap().starts_with("Subject: inner\r\n"));
    assert!(get(&[2], Some(SectionText::Text)).unwrap().starts_with("--bb\r\n"));
    assert_eq!(get(&[2, 1], None).as_deref(), Some("plain"));
    assert_eq!(get(&[2, 2], None).as_deref(), Some("PGI+aGk8L2I+"));
    assert_eq!(get(&[1], Some(SectionText::Header)), None);
    assert_eq!(get(&[4], None), None);
    let fields = Some(SectionText::HeaderFields(vec!["SUBJECT".to_owned()], false));
    assert_eq!(get(&[2], fields).as_deref(), Some("Subject: inner\r\n"));
    assert_eq!(locate_part(&map, &[2, 2]).unwrap().decoded_bytes, 9);
    assert_eq!(locate_part(&map, &[3]).unwrap().decoded_bytes, 6);
    assert_eq!(map.preview.as_deref(), Some("One Two"));
}

#[test]
fn a_message_alone_has_one_part() {
    let message = "Subject: x\r\n\r\nbody\r\n";
    let map = MapBuilder::map(message.as_bytes());
    let get = |part: &[u32], text| section(&map, message.as_bytes(), part, text);
    assert_eq!(get(&[1], None).as_deref(), Some("body\r\n"));
    assert_eq!(get(&[1], Some(SectionText::Mime)).as_deref(), Some("Subject: x\r\n\r\n"));
    assert_eq!(get(&[2], None), None);
    assert_eq!(get(&[], Some(SectionText::Text)).as_deref(), Some("body\r\n"));
}

#[test]
fn envelopes_have_groups_routes_comments_and_old_forms() {
    let message = "From: \"Ada, L\" <ada@x.test>\r\nTo: Friends: a@x.test, Bob <b@y.test>;, c@z.test (Carl)\r\nCc: <@r1.test,@r2.test:d@x.test>, e . f @ g.test\r\nSubject: =?utf-8?q?a?=\r\n  b\r\nDate: today\r\nMessage-ID: <1@x>\r\n\r\n";
    assert_eq!(
        envelope(message),
        "(ENVELOPE (\"today\" \"=?utf-8?q?a?= b\" ((\"Ada, L\" NIL \"ada\" \"x.test\")) ((\"Ada, L\" NIL \"ada\" \"x.test\")) ((\"Ada, L\" NIL \"ada\" \"x.test\")) ((NIL NIL \"Friends\" NIL)(NIL NIL \"a\" \"x.test\")(\"Bob\" NIL \"b\" \"y.test\")(NIL NIL NIL NIL)(\"Carl\" NIL \"c\" \"z.test\")) ((NIL \"@r1.test,@r2.test\" \"d\" \"x.test\")(NIL NIL \"e.f\" \"g.test\")) NIL NIL \"<1@x>\"))"
    );
}

#[test]
fn what_goes_beyond_ascii_is_encoded_for_a_client_that_has_not_asked_for_it() {
    let message = "Subject: Grüße\r\nFrom: Jörg <j@x.test>\r\n\r\n";
    let map = MapBuilder::map(message.as_bytes());
    assert!(envelope(message).is_ascii());
    assert_eq!(map.envelope(true).subject.as_deref(), Some("Grüße".as_bytes()));
}

#[test]
fn broken_messages_stay_within_their_limits() {
    let deep: String = (0..100)
        .map(|level| format!("Content-Type: multipart/mixed; boundary=b{level}x\r\n\r\n--b{level}x\r\n"))
        .collect();
    let map = MapBuilder::map(deep.as_bytes());
    assert!(map.parts.len() <= 33, "{}", map.parts.len());
    let wide =
        format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{}", "--b\r\n\r\nx\r\n".repeat(5000));
    assert_eq!(MapBuilder::map(wide.as_bytes()).parts.len(), 1000);
    let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(5000);
    assert!(MapBuilder::map(nested.as_bytes()).parts.len() <= 33);
    let no_parts = "Content-Type: multipart/mixed; boundary=b\r\n\r\nnothing\r\n";
    assert!(
        structure(no_parts).contains("(\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 0 0")
    );
    assert_eq!(MapBuilder::map(b"").bytes, 0);
}

#[test]
fn encodings_are_decoded_in_any_pieces() {
    for (encoding, text, decoded) in [
        (TransferEncoding::Base64, "aGVs\r\nbG8=\r\n", "hello"),
        (TransferEncoding::Base64, "aGVsbG8", "hello"),
        (TransferEncoding::QuotedPrintable, "a=3D b=\r\nc =\r\n  \r\nd=3", "a= bc \r\nd=3"),
        (TransferEncoding::QuotedPrintable, "a =20 \r\n=xy==41", "a  \r\n=xy=A"),
        (TransferEncoding::Identity, "a=3D", "a=3D"),
    ] {
        for piece in 1..text.len() {
            let (mut decoder, mut out) = (Decoder::new(encoding), Vec::new());
            text.as_bytes().chunks(piece).for_each(|piece| decoder.push(piece, &mut out));
            decoder.finish(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), decoded, "{text:?} in pieces of {piece}");
        }
    }
}

fn messages() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("\r\n".to_owned()),
        Just("--b\r\n".to_owned()),
        Just("--b--\r\n".to_owned()),
        Just("--bb\r\n".to_owned()),
        Just("Content-Type: multipart/mixed; boundary=b\r\n".to_owned()),
        Just("Content-Type: multipart/digest; boundary=\"bb\"\r\n".to_owned()),
        Just("Content-Type: message/rfc822\r\n".to_owned()),
        Just("Content-Transfer-Encoding: base64\r\n".to_owned()),
        Just("Subject: \r\n folded\r\n".to_owned()),
        Just("To: a (b (c) \"d\\\" <e@f>, g: ;\r\n".to_owned()),
        Just("text\n".to_owned()),
        Just("no end".to_owned()),
        Just("x".repeat(9000) + "\r"),
        "[ -~]{0,20}\r\n",
    ];
    prop::collection::vec(line, 0..30).prop_map(|lines| lines.concat().into_bytes())
}

proptest! {
    #[test]
    fn a_map_lies_within_its_message_however_it_comes(message in messages(), piece in 1_usize..40) {
        let map = MapBuilder::map(&message);
        prop_assert_eq!(map.bytes, message.len() as u64);
        for part in &map.parts {
            for span in [part.header, part.body] {
                prop_assert!(span.start <= span.end && span.end <= map.bytes);
            }
            prop_assert!(part.header.end == part.body.start);
            let body = &message[part.body.start as usize..part.body.end as usize];
            prop_assert_eq!(part.lines, body.iter().filter(|byte| **byte == b'\n').count() as u64);
            let (mut decoder, mut out) = (Decoder::new(part.encoding), Vec::new());
            decoder.push(body, &mut out);
            decoder.finish(&mut out);
            prop_assert!(part.kind != PartKind::Single || part.decoded_bytes == out.len() as u64);
        }
        let mut builder = MapBuilder::new(MapLimits::default());
        message.chunks(piece).for_each(|piece| builder.push(piece));
        prop_assert_eq!(&builder.finish(), &map);
        // What is written is read back.
        let item = FetchItem::BodyStructure(Box::new(map.structure(true, false)));
        let mut items = vec![item, FetchItem::Envelope(Box::new(map.envelope(false)))];
        items.push(FetchItem::Rfc822(MessageData::Nil));
        let response = Response::Fetch { number: 1, items };
        let line = joined(&response.write(NameEncoding::Utf7, WriteOptions::SERVER));
        prop_assert!(line.is_ascii());
    }

    #[test]
    fn fields_are_filtered_in_any_pieces(header in "([A-Za-z]{1,3}: ?[a-z]{0,5}\r\n( [a-z]{0,3}\r\n)?){0,6}\r\n", piece in 1_usize..9) {
        let names = ["a".to_owned(), "Bc".to_owned()];
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        let (mut keeps, mut drops) = (FieldFilter::new(&names, false), FieldFilter::new(&names, true));
        for piece in header.as_bytes().chunks(piece) {
            keeps.push(piece, &mut kept);
            drops.push(piece, &mut dropped);
        }
        let is_named = |field: &&scrinium_mailbox::Field<'_>| names.iter().any(|name| field.is(name));
        let fields: Vec<_> = scrinium_mailbox::fields(header.as_bytes()).collect();
        let expected: Vec<u8> = fields.iter().filter(is_named).flat_map(|field| field.raw.to_vec()).collect();
        prop_assert_eq!(kept, expected);
        let others: Vec<u8> =
            fields.iter().filter(|field| !is_named(field)).flat_map(|field| field.raw.to_vec()).collect();
        prop_assert_eq!(dropped, others);
    }
}
