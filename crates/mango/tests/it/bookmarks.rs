//! Bookmarks come back as they were given, and whatever else comes is refused.

use proptest::prelude::*;
use scrinium_mango::{Bookmark, MangoError};
use serde_json::{Value, json};

fn key() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// As the server encodes a text in a bookmark.
fn packed(json: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json)
}

proptest! {
    #[test]
    fn what_was_given_comes_back(key in prop::collection::vec(key(), 0..4), id in ".{0,12}") {
        let bookmark = Bookmark { key, id };
        prop_assert_eq!(Bookmark::decode(&bookmark.encode()), Ok(Some(bookmark)));
    }

    /// With a letter changed, taken out or added, it is another bookmark or none, and nothing breaks.
    #[test]
    fn what_was_changed_is_another_bookmark_or_refused(
        key in prop::collection::vec(key(), 0..3),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(any::<char>()), any::<bool>()), 1..4),
    ) {
        let mut text: Vec<char> = Bookmark { key, id: "x".to_owned() }.encode().chars().collect();
        for (place, letter, replaces) in changes {
            let place = place.index(text.len() + 1);
            if replaces && place < text.len() {
                text.remove(place);
            }
            if let Some(letter) = letter {
                text.insert(place.min(text.len()), letter);
            }
        }
        let text: String = text.into_iter().collect();
        match Bookmark::decode(&text) {
            Ok(None) => prop_assert!(text.is_empty() || text == "nil"),
            Ok(Some(other)) => prop_assert_eq!(Bookmark::decode(&other.encode()), Ok(Some(other))),
            Err(error) => {
                let is_told = matches!(error, MangoError::InvalidBookmark(_));
                prop_assert!(is_told, "{error}");
            }
        }
    }
}

#[test]
fn bookmarks_that_are_deep_or_none_are_refused() {
    let deep = |levels: usize| packed(&format!("[[{}1{}],\"x\"]", "[".repeat(levels), "]".repeat(levels)));
    assert!(Bookmark::decode(&deep(500)).is_ok());
    for text in [
        deep(600),
        deep(100_000),
        packed("{}"),
        packed("[[],1]"),
        packed("[1,\"x\"]"),
        packed("[[],\"x\",1]"),
    ] {
        let refused = Bookmark::decode(&text).unwrap_err();
        assert!(matches!(refused, MangoError::InvalidBookmark(_)), "{refused:.200}");
    }
}
