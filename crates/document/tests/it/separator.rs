//! Contents of attachments are taken out of JSON as it comes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as ENCODER;
use bytes::Bytes;
use proptest::prelude::*;
use scrinium_document::DocumentError;
use scrinium_document::json::{ContentSeparator, Separated};

/// Longer contents are taken out; shorter ones only where much is held.
const LONG_BYTES: usize = 64 << 10;
const SHORT_BYTES: usize = 1 << 10;
const MUCH_BYTES: usize = 4 << 20;

/// The text that is left, and the contents with their places.
type Parts = (String, Vec<(usize, String, Vec<u8>)>);

fn separate(mut separator: ContentSeparator, text: &str, cuts: &[usize]) -> Result<Parts, DocumentError> {
    let mut rest = text.as_bytes();
    let mut lengths = cuts.iter().cycle();
    let (mut contents, mut content) = (Vec::new(), Vec::new());
    loop {
        match separator.next_piece()? {
            Separated::Data(bytes) => content.extend(bytes),
            Separated::End(place) => {
                contents.push((place.document, place.name, std::mem::take(&mut content)));
            }
            Separated::Starved if rest.is_empty() => break,
            Separated::Starved => {
                let (now, later) = rest.split_at((*lengths.next().unwrap()).clamp(1, rest.len()));
                separator.push(Bytes::copy_from_slice(now));
                rest = later;
            }
        }
    }
    Ok((String::from_utf8(separator.into_text()).unwrap(), contents))
}

fn long(fill: u8) -> (Vec<u8>, String) {
    let content = vec![fill; LONG_BYTES];
    let encoded = ENCODER.encode(&content);
    (content, encoded)
}

#[test]
fn long_contents_are_taken_out_and_nothing_else() {
    let (content, encoded) = long(7);
    let separator = ContentSeparator::of_document;
    for (before, after, name) in [
        (r#"{"a":1,"_attachments":{"f":{"content_type":"a/b","#, r#"}},"b":[{"data":"x"}]}"#, "f"),
        (r#"{"_attachments" : {"x":{"stub":true}, "q\"\u0041" : { "#, r#","digest":"md5-x"}}}"#, "q\"A"),
        (r#"{"v":{"_attachments":{"f":{"data":"x"}}},"_\u0061ttachments":{"":{"#, "}}}", ""),
    ] {
        for key in ["\"data\"", "\"d\\u0061ta\" \n"] {
            let text = format!("{before}{key} : \"{encoded}\"{after}");
            let (left, contents) = separate(separator(), &text, &[1000]).unwrap();
            assert_eq!(left, format!("{before}\"follows\":true{after}"));
            assert_eq!(contents, [(0, name.to_owned(), content.clone())]);
        }
    }
    // What is short, or stands elsewhere, stays.
    for text in [
        r#"{"_attachments":{"f":{"data":"QUJD"}}}"#.to_owned(),
        format!("{{\"data\":\"{encoded}\"}}"),
        format!("{{\"a\":{{\"_attachments\":{{\"f\":{{\"data\":\"{encoded}\"}}}}}}}}"),
        format!("{{\"_attachments\":[{{\"data\":\"{encoded}\"}}]}}"),
        format!("{{\"_attachments\":{{\"f\":{{\"data\":[\"{encoded}\"]}}}}}}"),
        format!("{{\"_attachments\":{{\"f\":{{\"more\":{{\"data\":\"{encoded}\"}}}}}}}}"),
        format!("[{{\"_attachments\":{{\"f\":{{\"data\":\"{encoded}\"}}}}}}]"),
    ] {
        assert_eq!(separate(separator(), &text, &[777]).unwrap(), (text, Vec::new()));
    }
}

#[test]
fn contents_belong_to_their_documents() {
    let (content, encoded) = long(9);
    let text = format!(
        "{{\"new_edits\":false,\"docs\":[{{\"_id\":\"a\",\"x\":[1,{{}}]}},\
         {{\"_attachments\":{{\"f\":{{\"data\":\"{encoded}\"}},\"g\":{{\"data\":\"{encoded}\"}}}}}},{{}},\
         {{\"_attachments\":{{\"h\":{{\"data\":\"{encoded}\"}}}}}}]}}"
    );
    let (_, contents) = separate(ContentSeparator::of_documents(), &text, &[4096]).unwrap();
    let places: Vec<_> = contents.iter().map(|(document, name, _)| (*document, name.as_str())).collect();
    assert_eq!(places, [(1, "f"), (1, "g"), (3, "h")]);
    assert!(contents.iter().all(|(_, _, found)| *found == content));
}

#[test]
fn what_is_no_base64_is_refused_with_the_attachments_name() {
    let (_, encoded) = long(1);
    for wrong in ["*", "\\b", "==AA", "\\u20ac", "\\\"", "A"] {
        let text = format!("{{\"_attachments\":{{\"f\":{{\"data\":\"{encoded}{wrong}\"}}}}}}");
        let refused = separate(ContentSeparator::of_document(), &text, &[9999]).unwrap_err();
        assert_eq!(refused.to_string(), "Invalid attachment data for f", "{wrong}");
    }
}

#[test]
fn short_contents_are_taken_out_where_there_are_many() {
    let content = vec![3; SHORT_BYTES];
    let encoded = ENCODER.encode(&content);
    let one = format!("{{\"_attachments\":{{\"f\":{{\"data\":\"{encoded}\"}}}}}},");
    let text = format!("{{\"docs\":[{}{{}}]}}", one.repeat(2 * MUCH_BYTES / one.len()));
    let (left, contents) = separate(ContentSeparator::of_documents(), &text, &[100_000]).unwrap();
    assert!(left.len() < MUCH_BYTES * 3 / 2, "{}", left.len());
    assert!(contents.iter().all(|(_, _, found)| *found == content));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn contents_are_what_they_were_however_the_text_is_cut(
        start in proptest::collection::vec(any::<u8>(), 0..50),
        cuts in proptest::collection::vec(1_usize..5000, 1..6),
        padded in any::<bool>(),
        spaces in proptest::collection::vec((0_usize..60_000, 0_usize..6), 0..6),
    ) {
        let content: Vec<u8> = start.iter().copied().chain((0..LONG_BYTES).map(|at| (at % 251) as u8)).collect();
        let mut encoded = ENCODER.encode(&content);
        if !padded {
            encoded.truncate(encoded.trim_end_matches('=').len());
        }
        let mut written: Vec<String> = encoded.chars().map(String::from).collect();
        for (at, kind) in spaces {
            let at = at % written.len();
            let plain = written[at].clone();
            written[at] = match (kind, plain.as_str()) {
                (0, _) => format!("{plain} "),
                (1, _) => format!("\\r\\n{plain}"),
                (2, "/") => "\\/".to_owned(),
                (3, one) if one.len() == 1 => format!("\\u{:04X}", u32::from(one.as_bytes()[0])),
                _ => plain,
            };
        }
        let text = format!("{{\"_attachments\":{{\"f\":{{\"data\":\"{}\"}}}}}}", written.concat());
        let (left, contents) = separate(ContentSeparator::of_document(), &text, &cuts).unwrap();
        prop_assert_eq!(left, "{\"_attachments\":{\"f\":{\"follows\":true}}}");
        prop_assert!(contents == [(0, "f".to_owned(), content)]);
    }

    #[test]
    fn whatever_comes_it_ends(
        text in "[\\[\\]{}\":,\\\\ a]{0,200}|\\{\"_attachments\":\\{\"f\":\\{\"data\":\"[A-Z\\\\\"]{0,90}",
        cuts in proptest::collection::vec(1_usize..20, 1..4),
    ) {
        let (left, _) = separate(ContentSeparator::of_document(), &text, &cuts).unwrap();
        prop_assert_eq!(left, text);
    }
}
