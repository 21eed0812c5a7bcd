//! Documents from JSON: what CouchDB takes and refuses, and that no bytes do harm.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_document::{
    AttachmentBody, DocumentError, Limits, ParsedDocument, json, parse_document, validate_id,
};
use serde_json::Value;

fn parse(text: &str) -> Result<ParsedDocument, DocumentError> {
    parse_document(text.as_bytes(), &Limits::default())
}

#[track_caller]
fn refused(text: &str, status: u16, error: &str, reason: &str) {
    let refusal = parse(text).unwrap_err();
    assert_eq!((refusal.status(), refusal.error(), &*refusal.reason()), (status, error, reason), "{text}");
}

#[test]
fn special_members() {
    let document = parse(
        r#"{"_id":"a","Subject":"x","_rev":"2-b","_deleted":true,"_conflicts":[1],"_deleted_conflicts":0,"_local_seq":{},
            "_revs_info":null,"_replication_state":"completed","_revisions":{"start":3,"ids":["c","917fa2381192822767f010b95b45325b"]}}"#,
    )
    .unwrap();
    assert_eq!(document.id.as_deref(), Some("a"));
    assert_eq!(document.revision.as_ref().unwrap().to_string(), "3-c");
    let path: Vec<String> = document.path().iter().map(ToString::to_string).collect();
    assert_eq!(path, ["3-c", "2-917fa2381192822767f010b95b45325b"]);
    assert!(document.deleted);
    let names: Vec<&str> = document.fields.fields().iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["Subject", "_replication_state"]);
    assert_eq!(parse(r#"{"_rev":"2-b"}"#).unwrap().path().len(), 1);
    assert!(parse("{}").unwrap().path().is_empty());
}

#[test]
fn refusals_are_couchdbs() {
    refused("[]", 400, "bad_request", "Document must be a JSON object");
    refused("1", 400, "bad_request", "Document must be a JSON object");
    refused("", 400, "bad_request", "invalid UTF-8 JSON");
    refused("{", 400, "bad_request", "invalid UTF-8 JSON");
    refused("{}x", 400, "bad_request", "invalid UTF-8 JSON");
    refused("{\"a\":01}", 400, "bad_request", "invalid UTF-8 JSON");
    refused("{\"a\":1e999}", 400, "bad_request", "invalid UTF-8 JSON");
    refused(r#"{"a":"\ud800"}"#, 400, "bad_request", "invalid UTF-8 JSON");
    refused(r#"{"_foo":1}"#, 400, "doc_validation", "Bad special document member: _foo");
    refused(r#"{"_deleted":1}"#, 400, "doc_validation", "Bad special document member: _deleted");
    refused(r#"{"_attachments":1}"#, 400, "doc_validation", "Bad special document member: _attachments");
    refused(r#"{"_id":1}"#, 400, "illegal_docid", "Document id must be a string");
    refused(r#"{"_id":""}"#, 400, "illegal_docid", "Document id must not be empty");
    refused(r#"{"_id":"_x"}"#, 400, "illegal_docid", "Only reserved document ids may start with underscore.");
    refused(r#"{"_rev":"x"}"#, 400, "bad_request", "Invalid rev format");
    refused(r#"{"_rev":1}"#, 400, "bad_request", "Invalid rev format");
    refused(
        r#"{"_revisions":{"start":"1","ids":[]}}"#,
        400,
        "doc_validation",
        "_revisions.start isn't an integer.",
    );
    refused(r#"{"_revisions":{"start":1,"ids":1}}"#, 400, "doc_validation", "_revisions.ids isn't a array.");
    refused(r#"{"_revisions":{"start":1,"ids":[1]}}"#, 400, "doc_validation", "RevId isn't a string");
    let not_hexadecimal = format!(r#"{{"_revisions":{{"start":1,"ids":["{}"]}}}}"#, "z".repeat(32));
    refused(&not_hexadecimal, 400, "doc_validation", "RevId isn't a valid hexadecimal");
    refused(r#"{"_attachments":{"a":{"data":"%"}}}"#, 400, "bad_request", "Invalid attachment data for a");
    refused(r#"{"_attachments":{"a":{}}}"#, 400, "bad_request", "Invalid attachment data for a");
    let reason = "Attachment name '_a' starts with prohibited character '_'";
    refused(r#"{"_attachments":{"_a":{"stub":true}}}"#, 400, "bad_request", reason);
    assert_eq!(parse_document(b"{\"a\":\"\xff\"}", &Limits::default()), Err(DocumentError::InvalidJson));
}

#[test]
fn limits_refuse_with_413() {
    let limits = Limits { document_bytes: 10, attachment_bytes: 3, ..Limits::default() };
    let refusal = |text: &str| {
        let refusal = parse_document(text.as_bytes(), &limits).unwrap_err();
        (refusal.status(), refusal.error(), refusal.reason().into_owned())
    };
    assert_eq!(refusal(r#"{"a":"123456789","_id":"x"}"#), (413, "document_too_large", "x".to_owned()));
    assert_eq!(
        refusal(r#"{"_attachments":{"n":{"data":"YWJjZA=="}}}"#),
        (413, "attachment_too_large", "n".to_owned())
    );
    assert_eq!(
        refusal(r#"{"_attachments":{"n":{"follows":true,"length":4}}}"#),
        (413, "attachment_too_large", "n".to_owned())
    );
    assert!(parse_document(br#"{"a":"1234567","_attachments":{"n":{"data":"YWJj"}}}"#, &limits).is_ok());
}

#[test]
fn ids() {
    for id in ["a", "_design/a", "_local/a", "ä/b c", "-_", &"x".repeat(7168)] {
        assert_eq!(validate_id(id), Ok(()));
    }
    for id in ["", "_", "_x", "_design", "_design/", "_local/", "_designs/x", &"x".repeat(7169)] {
        assert_eq!(validate_id(id).unwrap_err().error(), "illegal_docid", "{id}");
    }
}

#[test]
fn attachments() {
    let document = parse(
        r#"{"_attachments":{
            "a.txt":{"content_type":"text\/plain","data":"aGVsbG8\u003d","revpos":3},
            "b":{"stub":true,"digest":"md5-x","length":9,"revpos":1,"encoding":"gzip","encoded_length":5},
            "c":{"follows":true,"length":12,"content_type":"image/png"},
            "d":{"data":""}, "e":{"data":"aGVs\nbG8"}, "a.txt":{"content_type":"text\/plain","data":"aGVsbG8"}}}"#
            .replace("\\n", " ")
            .as_str(),
    )
    .unwrap();
    let names: Vec<&str> = document.attachments.iter().map(|attachment| attachment.name.as_str()).collect();
    assert_eq!(names, ["b", "c", "d", "e", "a.txt"]);
    let [stub, follows, empty, spaced, text] = document.attachments.as_slice() else { panic!() };
    assert_eq!(stub.body, AttachmentBody::Stub);
    assert_eq!((stub.digest.as_deref(), stub.length, stub.revpos), (Some("md5-x"), Some(9), Some(1)));
    assert_eq!((stub.encoding.as_deref(), stub.encoded_length), (Some("gzip"), Some(5)));
    assert_eq!((&follows.body, follows.length), (&AttachmentBody::Follows, Some(12)));
    assert_eq!(empty.body, AttachmentBody::Inline(Vec::new()));
    assert_eq!(empty.content_type, "application/octet-stream");
    assert_eq!(spaced.body, AttachmentBody::Inline(b"hello".to_vec()));
    assert_eq!((text.content_type.as_str(), text.length), ("text/plain", Some(5)));
}

#[test]
fn repeated_members_keep_the_last() {
    let document = parse(r#"{"a":1,"b":2,"a":3,"_id":"x","\u0061":4,"_id":"y"}"#).unwrap();
    assert_eq!(document.id.as_deref(), Some("y"));
    let fields: Vec<(&str, &str)> =
        document.fields.fields().iter().map(|(name, value)| (name, value.json().unwrap())).collect();
    assert_eq!(fields, [("b", "2"), ("a", "4")]);
}

#[test]
fn nesting_is_bounded_without_recursion() {
    let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(&nested(511)).is_ok());
    for levels in [512, 10_000, 10_000_000] {
        refused(&nested(levels), 400, "bad_request", "JSON nested deeper than 512 levels");
        refused(
            &format!("{{\"a\":{}", "[".repeat(levels)),
            400,
            "bad_request",
            "JSON nested deeper than 512 levels",
        );
        refused(
            &"{\"a\":".repeat(levels.clamp(513, 100_000)),
            400,
            "bad_request",
            "JSON nested deeper than 512 levels",
        );
    }
    refused(&"[".repeat(10_000), 400, "bad_request", "JSON nested deeper than 512 levels");
    let value = json::parse_value(&nested(511), 512).unwrap();
    assert_eq!(value.to_string(), nested(511));
}

fn agrees_with_serde(text: &str) {
    let ours = json::parse_value(text, usize::MAX);
    let theirs = serde_json::from_str::<Value>(text);
    match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{text}"),
        (Err(_), Err(error)) => assert!(!error.to_string().contains("recursion"), "{text}"),
        (Ok(_), Err(error)) => assert!(error.to_string().contains("recursion"), "{text}: {error}"),
        (Err(error), Ok(_)) => panic!("{text}: {error}"),
    }
    if let Ok(Some(members)) = json::members(text, usize::MAX) {
        let theirs = theirs.as_ref().unwrap().as_object().unwrap();
        assert_eq!(members.len(), theirs.len());
        for (name, raw) in members {
            assert_eq!(serde_json::from_str::<Value>(raw).unwrap(), theirs[name.as_ref()]);
            let mut compact = String::new();
            json::write_compact(&mut compact, raw);
            assert!(json::is_compact(&compact));
            assert_eq!(serde_json::from_str::<Value>(&compact).unwrap(), theirs[name.as_ref()]);
        }
    }
    let elements = json::elements(text, usize::MAX, usize::MAX).map_err(drop);
    // What is beyond a limit is checked like the rest, and not kept.
    let limited = json::elements(text, usize::MAX, 1).map_err(drop);
    assert_eq!(limited, elements.clone().map(|all| all.map(|all| all.into_iter().take(2).collect())));
    if let Ok(Some(elements)) = elements {
        let elements: Vec<Value> = elements.iter().map(|raw| serde_json::from_str(raw).unwrap()).collect();
        assert_eq!(&Value::from(elements), theirs.as_ref().unwrap());
    }
}

fn json_text() -> impl Strategy<Value = String> {
    let number = "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?";
    let string = r#""([ -!#-\[\]-~äé一😀]|\\["\\/bfnrt]|\\u(00|0[0-9a-f]|20|fe|FF)[0-9a-fA-F]{2}|\\ud83d\\ude00){0,6}""#;
    let leaf = prop_oneof![
        number,
        string,
        Just("true".to_owned()),
        Just("false".to_owned()),
        Just("null".to_owned())
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let space = "[ \t\r\n]{0,2}";
        prop_oneof![
            vec((space, inner.clone(), space), 0..4).prop_map(|elements| {
                let elements: Vec<String> =
                    elements.into_iter().map(|(a, b, c)| format!("{a}{b}{c}")).collect();
                format!("[{}]", elements.join(","))
            }),
            vec((string, space, inner, space), 0..4).prop_map(|members| {
                let members: Vec<String> =
                    members.into_iter().map(|(name, a, b, c)| format!("{a}{name}{c}:{a}{b}{c}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn json_is_taken_as_serde_takes_it(text in json_text()) {
        agrees_with_serde(&text);
    }

    #[test]
    fn damaged_json_is_refused_as_serde_refuses_it(
        text in json_text(), at in any::<prop::sample::Index>(), other in r#"[\[\]{}:,"\\0-9eE.+tfnu \u{1}a-]{0,2}"#, cut in 0..3usize,
    ) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let at = places[at.index(places.len())];
        let rest: String = text[at..].chars().skip(cut).collect();
        agrees_with_serde(&format!("{}{other}{rest}", &text[..at]));
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..64), members in r#"\{("_[a-z]{2,12}":[\[\]{}"0-9a-z,:-]{0,20},?){0,4}\}"#) {
        let _ = parse_document(&bytes, &Limits::default());
        let _ = parse_document(members.as_bytes(), &Limits::default());
    }

    #[test]
    fn strings_are_written_as_serde_writes_them(text: String) {
        let mut out = json::JsonWriter::new();
        out.string(&text);
        let out = out.into_string();
        prop_assert_eq!(&out, &Value::from(text.as_str()).to_string());
        let read = json::string(&out);
        prop_assert_eq!(read.as_deref(), Some(text.as_str()));
    }
}
