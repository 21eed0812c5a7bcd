//! Whatever stands in a document of the directory: it is taken or refused, and what is taken can be read.

use proptest::prelude::*;
use scrinium_credentials::StoredCredentials;
use scrinium_directory::{GROUP_FORM, Group, PERSON_FORM, PasswordEdit, Person, prepare};
use serde_json::{Map, Value, json};

/// A hash of `password` that costs as little as there is.
const CHEAP: &str =
    "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$HJcOlGqgV3mDW5bX3nTXaTuQ9m6Y8F4oIlpY8rVtVsA";

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z/=@. <>\"*,]{0,12}",
        1 => ".{0,20}",
        1 => Just("x".repeat(5_000)),
        1 => Just(CHEAP.to_owned()),
        1 => Just("ada@example.org".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => text().prop_map(Value::from),
        3 => prop::collection::vec(text(), 0..4).prop_map(Value::from),
        1 => prop::collection::vec("[a-z]{1,5}", 0..2_000).prop_map(Value::from),
        1 => Just(json!(null)),
        1 => Just(json!(5)),
        1 => Just(json!({"a": [[]]})),
    ]
}

fn document() -> impl Strategy<Value = Map<String, Value>> {
    let fields = [
        "_id",
        "Form",
        "FullName",
        "ShortName",
        "InternetAddress",
        "MailFile",
        "Roles",
        "PasswordHash",
        "Members",
        "ListName",
        "Owner",
        "password",
    ];
    let field = prop::sample::select(fields.to_vec());
    let members = prop::collection::vec((field, value()), 0..8);
    (prop::bool::ANY, prop::bool::weighted(0.8), "[a-z]{1,6}", members).prop_map(
        |(is_person, is_usual, name, members)| {
            let mut document = Map::new();
            if is_usual && is_person {
                document.insert("_id".to_owned(), format!("person/{name}").into());
                document.insert("Form".to_owned(), PERSON_FORM.into());
                document.insert("ShortName".to_owned(), name.as_str().into());
                document.insert("FullName".to_owned(), json!([format!("{name} Oak")]));
            } else if is_usual {
                document.insert("_id".to_owned(), format!("group/{name}").into());
                document.insert("Form".to_owned(), GROUP_FORM.into());
                document.insert("ListName".to_owned(), name.as_str().into());
            }
            // Hashing one is slow, and not what is tried here.
            let more = members.into_iter().filter(|(name, value)| *name != "password" || !value.is_string());
            document.extend(more.map(|(name, value)| (name.to_owned(), value)));
            document
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_taken_can_be_read_and_stays_as_it_is(document in document()) {
        let Ok(prepared) = prepare(document) else { return Ok(()) };
        let prepared = prepared.document;
        match prepared.get("Form").and_then(Value::as_str) {
            Some(PERSON_FORM) => drop(Person::read(&prepared).unwrap()),
            Some(GROUP_FORM) => drop(Group::read(&prepared).unwrap()),
            _ => {}
        }
        let again = prepare(prepared.clone()).unwrap();
        prop_assert_eq!(again.password, PasswordEdit::Keep);
        prop_assert_eq!(again.document, prepared);
    }

    /// A hash is of bounded length and cost, or none; and one that is taken can be held against any password.
    #[test]
    fn hashes_that_were_changed_are_refused_or_bounded(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, prop::sample::select(PIECES.to_vec())), 1..4),
    ) {
        let mut text = CHEAP.to_owned();
        for (place, kind, piece) in changes {
            let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
            let Some(place) = places.get(place.index(places.len().max(1))).copied() else { continue };
            match kind {
                0 => drop(text.remove(place)),
                1 => text.insert_str(place, piece),
                2 => text = text.replacen(['8', '1', '='], piece, 1),
                _ => text.truncate(place),
            }
        }
        check_hash(&text)?;
    }

    #[test]
    fn any_text_is_a_hash_or_refused(text in ".{0,200}") {
        check_hash(&text)?;
    }
}

const PIECES: [&str; 14] = [
    "$",
    "=",
    ",",
    "m=",
    "t=4294967295",
    "99999999999999999999",
    "0",
    "-1",
    "p=16777215",
    "argon2d",
    "v=16",
    "\u{e4}",
    " ",
    "keyid=abc",
];

fn check_hash(text: &str) -> Result<(), TestCaseError> {
    let mut stored = StoredCredentials::default();
    if stored.take_over_password(text).is_err() {
        return Ok(());
    }
    let hash = stored.password().unwrap();
    prop_assert!(text.len() <= 512);
    let cost = |name: &str| -> u32 {
        let of = text.split(['$', ',']).find_map(|part| part.strip_prefix(name));
        of.and_then(|digits| digits.parse().ok()).unwrap_or_default()
    };
    prop_assert!(cost("m=") <= 65_536 && cost("t=") <= 10 && cost("p=") <= 4, "{text}");
    if cost("m=") <= 64 {
        prop_assert!(!hash.verify(""));
        prop_assert!(!hash.verify("another one"));
    }
    Ok(())
}
