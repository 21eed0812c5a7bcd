//! Each operator against documents, as CouchDB documents and answers it (`golden/operators.json`), and the normal
//! form that `_explain` shows (`golden/normal.json`).

use scrinium_mango::Selector;
use serde_json::{Value, json};

fn golden(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn operators_select_what_couchdb_selects() {
    let mut wrong = Vec::new();
    for case in golden(include_str!("../golden/operators.json")) {
        let written = &case["selector"];
        let selector = match Selector::parse(written) {
            Ok(_) if case.get("refused").is_some() => {
                wrong.push(format!("{written} was taken"));
                continue;
            }
            Ok(selector) => selector,
            Err(error) => {
                let told = json!([error.error(), error.reason()]);
                if case.get("refused") != Some(&told) {
                    wrong.push(format!("{written} was refused: {told}"));
                }
                continue;
            }
        };
        for (documents, expected) in [(&case["matching"], true), (&case["other"], false)] {
            for document in documents.as_array().unwrap() {
                if selector.matches(document) != expected {
                    wrong.push(format!("{written}: {document} should be {expected}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_normal_form_is_couchdbs() {
    for pair in golden(include_str!("../golden/normal.json")) {
        let selector = Selector::parse(&pair[0]).unwrap();
        assert_eq!(selector.to_json(), pair[1], "{}", pair[0]);
    }
}
