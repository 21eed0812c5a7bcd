//! The fields record against `serde_json`, and its stored form.

use std::convert::Infallible;

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_document::json::JsonWriter;
use scrinium_document::{
    Digest, FieldValue, Fields, FieldsBuf, Limits, OUTSIDE_MIN_BYTES, OutsideValue, Revision, new_revision,
    parse_document,
};
use serde_json::{Map, Value};

fn json_of(fields: Fields<'_>) -> String {
    let mut out = JsonWriter::new();
    let Ok(()) = fields.write_json(&mut out, |_, _| Ok::<(), Infallible>(()));
    out.into_string()
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        vec(any::<String>(), 0..3).prop_map(Value::from),
    ];
    vec(("[^_]{0,12}", value), 0..12)
        .prop_map(|members| members.into_iter().filter(|(name, _)| !name.starts_with('_')).collect())
}

proptest! {
    #[test]
    fn rebuilt_json_is_the_json_that_came(object in object(), pretty: bool) {
        let value = Value::Object(object.clone());
        let compact = value.to_string();
        let sent = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { compact.clone() };
        let document = parse_document(sent.as_bytes(), &Limits::default()).unwrap();
        let fields = document.fields.fields();
        prop_assert_eq!(json_of(fields), compact);
        prop_assert_eq!(fields.len(), object.len());
        for (name, value) in &object {
            let read: Value = serde_json::from_str(fields.get(name).unwrap()).unwrap();
            prop_assert_eq!(&read, value);
            let any_case = fields.value_ignore_case(&name.to_lowercase()).is_some();
            prop_assert!(any_case);
        }
        prop_assert!(fields.get("no such field, surely").is_none());
        let again = FieldsBuf::decode(document.fields.as_bytes().to_vec()).unwrap();
        prop_assert_eq!(again, document.fields);
    }

    #[test]
    fn decoding_never_panics(bytes in vec(any::<u8>(), 0..120), at in any::<prop::sample::Index>(), object in object()) {
        let mut led = vec![1];
        led.extend_from_slice(&bytes);
        let mut damaged = parse_document(Value::Object(object).to_string().as_bytes(), &Limits::default())
            .unwrap().fields.into_bytes();
        let at = at.index(damaged.len());
        damaged[at] ^= bytes.first().copied().unwrap_or(1);
        for bytes in [&bytes, &led, &damaged, &damaged[..at].to_vec()] {
            if let Ok(fields) = Fields::decode(bytes) {
                prop_assert_eq!(fields.iter().count(), fields.len());
                json_of(fields);
            }
        }
    }

    #[test]
    fn where_a_value_lies_does_not_show_in_the_revision(object in object(), length in 0..3000usize, deleted: bool) {
        let mut object = object;
        object.insert("Body".to_owned(), "x".repeat(length).into());
        let here = parse_document(Value::Object(object).to_string().as_bytes(), &Limits::default()).unwrap().fields;
        let mut kept: Vec<(OutsideValue, String)> = Vec::new();
        let there = here.move_outside(|_, value, json| { kept.push((value, json.to_owned())); true });
        prop_assert_eq!(there.is_some(), length + 2 >= OUTSIDE_MIN_BYTES);
        let Some(there) = there else { return Ok(()) };
        let parent = Revision::new(3, Digest::Hash([7; 16]));
        let digests = [("a.txt", "sha256-1"), ("b.txt", "sha256-2")];
        let revision = new_revision(Some(&parent), deleted, here.fields(), &digests);
        prop_assert_eq!(&revision, &new_revision(Some(&parent), deleted, there.fields(), &[digests[1], digests[0]]));
        prop_assert_ne!(&revision, &new_revision(Some(&parent), !deleted, there.fields(), &digests));
        prop_assert_ne!(&revision, &new_revision(None, deleted, there.fields(), &digests));
        prop_assert_ne!(&revision, &new_revision(Some(&parent), deleted, there.fields(), &[]));
        prop_assert_eq!(revision.generation(), 4);

        prop_assert!(there.fields().has_outside() && there.fields().get("Body").is_none());
        prop_assert_eq!(there.fields().value_bytes(), here.fields().value_bytes());
        let mut out = JsonWriter::new();
        there.fields().write_json(&mut out, |value, out| {
            let (_, json) = kept.iter().find(|(kept, _)| *kept == value).ok_or("not kept")?;
            out.outside_value(json.as_bytes()).map_err(|_| "not UTF-8").map(|_| ())
        }).unwrap();
        prop_assert_eq!(out.into_string(), json_of(here.fields()));
    }
}

/// The stored form. A change here must come with a new format version that still reads these bytes.
#[test]
fn golden_bytes() {
    let outside = OutsideValue { digest: [0xab; 32], length: 0x1234 };
    let fields = [
        ("Form", FieldValue::Json("\"Memo\"")),
        ("Body", FieldValue::Outside(outside)),
        ("Größe", FieldValue::Json("1.50")),
    ];
    let record = FieldsBuf::build(fields.into_iter());
    let hex: String = record.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let table = "040c0401 0708".replace(' ', "");
    let text: String = "FormBodyGröße\"Memo\"1.50".bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, format!("010306010f{table}{}0000000000001234{text}", "ab".repeat(32)));
    assert_eq!(record.fields().iter().collect::<Vec<_>>(), fields);
    assert_eq!(record.fields().value_ignore_case("GRÖSSE"), None);
    assert_eq!(record.fields().value_ignore_case("GRÖßE"), Some(FieldValue::Json("1.50")));
    assert_eq!(FieldsBuf::default().as_bytes(), [1, 0, 0, 0, 0]);
    let newer = Fields::decode(&[2, 0]).unwrap_err();
    assert_eq!((newer.status(), newer.error()), (500, "internal_server_error"));
}

/// The digest is part of replication: two versions of this server must make one revision of one edit.
#[test]
fn golden_revision() {
    let fields = FieldsBuf::from_json(&[("a", "1"), ("b", "\"x\"")]);
    let first = new_revision(None, false, fields.fields(), &[]);
    assert_eq!(first.to_string(), "1-ca6a2f5e3eedb54cf49eeee3e6cfdd9e");
    assert_eq!(
        new_revision(Some(&first), true, FieldsBuf::default().fields(), &[("n", "d")]).to_string(),
        "2-85ee330c407f8a9cdf310ece376375d8"
    );
}
