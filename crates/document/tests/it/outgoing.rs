//! What comes in is checked so far that it can go out again: revisions, names, media types, JSON text.

use std::sync::Arc;

use proptest::prelude::*;
use scrinium_document::json::{ContentError, InlineContent, JsonText, JsonWriter};
use scrinium_document::{
    GENERATION_MAX, Revision, fit_attachment_name, is_media_type, shown_media_type, validate_attachment,
};
use serde_json::{Value, json};

#[test]
fn revisions_that_may_be_brought() {
    let may_be_brought = |text: &str| Revision::parse(text).is_ok_and(|revision| revision.may_be_brought());
    let long = format!("1-{}", "a".repeat(128));
    for text in ["1-a", "1-._~-Zz09", "9007199254740991-x", "3-917fa2381192822767f010b95b45325b", &long] {
        assert!(may_be_brought(text), "{text}");
    }
    let too_long = format!("1-{}", "a".repeat(129));
    for text in [
        "0-a",
        "9007199254740992-x",
        "18446744073709551615-x",
        "18446744073709551616-x",
        "1-",
        "-a",
        "a-1",
        "+1-a",
        "1-\"",
        "1-a b",
        "1-a\r\nb",
        "1-\u{0}",
        "1-ä",
        "1-a/b",
        "1-{}",
        "1-\u{7f}",
        &too_long,
    ] {
        assert!(!may_be_brought(text), "{text:?}");
    }
    // Earlier versions stored such a one: it must still have a name.
    let old = Revision::parse("18446744073709551615-\"").unwrap();
    assert!(old.generation() > GENERATION_MAX && old.to_string().ends_with("-\""));
}

#[test]
fn media_types_are_of_rfc_9110() {
    for text in [
        "text/plain",
        "text/plain; charset=utf-8",
        "text/plain;charset=\"utf-8\"",
        "application/vnd.a+json",
        "a/b;",
        "a/b ; c=d ;; e=\"f \\\" g\"",
        "image/svg+xml; a=\"ä\"",
    ] {
        assert!(is_media_type(text), "{text}");
        assert_eq!(shown_media_type(text), text);
    }
    let long = format!("a/{}", "b".repeat(2000));
    for text in [
        "",
        "text",
        "text/",
        "/plain",
        "te xt/plain",
        "text/plain\r\nX: y",
        "text/plain; a",
        "text/plain; a=",
        "text/plain; a=\"b",
        "text/plain, b/c",
        "text/plain\u{0}",
        "a/b; c=\"\u{85}\"",
        "ä/b",
        "a/b;c=\"\n\"",
        &long,
    ] {
        assert!(!is_media_type(text), "{text:?}");
        assert_eq!(shown_media_type(text), "application/octet-stream");
    }
}

#[test]
fn names_of_attachments() {
    assert!(validate_attachment("a/b \"c\" ä.txt", "text/plain").is_ok());
    let long = "x".repeat(1025);
    for name in ["", "_a", "a\r\nb", "\u{1b}[2J", "\u{85}", "\u{7f}", &long] {
        assert_eq!(validate_attachment(name, "text/plain").unwrap_err().status(), 400, "{name:?}");
        let fit = fit_attachment_name(name);
        assert!(validate_attachment(&fit, "text/plain").is_ok(), "{name:?} became {fit:?}");
    }
    assert_eq!(validate_attachment("a", "text/plain\r\nX: y").unwrap_err().status(), 400);
    assert_eq!(fit_attachment_name("a.txt"), "a.txt");
}

/// A content that gives five bytes at once.
struct Drops(Vec<u8>);

impl InlineContent for Drops {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, _max_bytes: usize) -> Result<bytes::Bytes, ContentError> {
        let rest = self.0.get(usize::try_from(offset)?..).unwrap_or_default();
        Ok(bytes::Bytes::copy_from_slice(&rest[..rest.len().min(5)]))
    }
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_back(texts: Vec<String>, number: u64, bytes: Vec<u8>, value in any::<String>()) {
        let mut out = JsonWriter::new();
        out.literal("{\"texts\":").strings(&texts).literal(",\"number\":").number(number);
        out.literal(",").string(&value).literal(":").flag(true).literal(",\"data\":");
        out.content(Arc::new(Drops(bytes.clone())));
        out.literal(",\"inner\":").json(&JsonText::of_string(&value)).literal("}");
        let text = out.into_text().filled().unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read["texts"], &json!(texts));
        prop_assert_eq!(&read["number"], &json!(number));
        prop_assert_eq!(&read["inner"], &json!(value));
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &bytes);
        prop_assert_eq!(&read["data"], &json!(encoded));
        prop_assert!(text.members().is_some());
    }
}
