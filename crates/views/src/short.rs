//! Sort keys in fewer bytes, for the lists of documents' entries: ASCII texts at the beginning stand as they are, in
//! place of their collation keys, which take twice as many bytes and compress worse.
//!
//! A short key is such texts, each a byte for its direction, its characters and a zero, and then, if there is more of
//! the key, a byte for that and the rest of it.

use scrinium_document::collation::{descending, leading_text, write_text_key};

const ASCENDING_TEXT: u8 = 1;
const DESCENDING_TEXT: u8 = 2;
const REST: u8 = 3;
const END_OF_TEXT: u8 = 0;

/// Appends a sort key in its short form.
pub(super) fn shorten(out: &mut Vec<u8>, mut key: &[u8]) {
    while !key.is_empty() {
        let start = out.len();
        out.push(ASCENDING_TEXT);
        let mut length = leading_text(out, key.iter().copied());
        if length.is_none() {
            out.truncate(start);
            out.push(DESCENDING_TEXT);
            length = leading_text(out, key.iter().map(|byte| !byte));
        }
        let Some(length) = length else {
            out.truncate(start);
            out.push(REST);
            return out.extend_from_slice(key);
        };
        out.push(END_OF_TEXT);
        key = key.get(length..).unwrap_or_default();
    }
}

/// The sort key whose short form this is. `None`: damaged.
pub(super) fn lengthen(mut short: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(short.len() * 2 + 16);
    while let Some((kind, rest)) = short.split_first() {
        if *kind == REST {
            key.extend_from_slice(rest);
            break;
        }
        let end = rest.iter().position(|byte| *byte == END_OF_TEXT)?;
        let text = std::str::from_utf8(rest.get(..end)?).ok().filter(|text| text.is_ascii())?;
        let start = key.len();
        write_text_key(&mut key, text);
        match *kind {
            ASCENDING_TEXT => {}
            DESCENDING_TEXT => descending(key.get_mut(start..)?),
            _ => return None,
        }
        short = rest.get(end + 1..)?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::definition::{ColumnOrder, Sort};
    use crate::entries::write_component;
    use scrinium_document::collation::Sensitivity;

    fn short(key: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        shorten(&mut out, key);
        out
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            "[ -~]{0,30}".prop_map(Value::from),
            ".{0,10}".prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(|number| json!(number)),
            prop::collection::vec("[a-z]{0,3}", 0..3).prop_map(|texts| json!(texts)),
            Just(Value::Null),
        ]
    }

    proptest! {
        #[test]
        fn a_key_comes_back_from_its_short_form(
            columns in prop::collection::vec((value(), any::<bool>(), any::<bool>(), any::<bool>()), 0..5),
        ) {
            let mut key = Vec::new();
            for (value, descends, case, accent) in columns {
                let sort = if descends { Sort::Descending } else { Sort::Ascending };
                write_component(&mut key, &value, ColumnOrder { sort, sensitivity: Sensitivity { case, accent }, is_raw: false });
            }
            prop_assert_eq!(lengthen(&short(&key)), Some(key));
        }

        #[test]
        fn so_do_bytes_that_are_no_key(key in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(lengthen(&short(&key)), Some(key.clone()));
            drop(lengthen(&key));
        }
    }

    #[test]
    fn texts_take_as_many_bytes_as_they_have_characters() {
        let mut key = Vec::new();
        let order = |sort| ColumnOrder { sort, ..ColumnOrder::ASCENDING };
        write_component(&mut key, &json!("Ada Lovelace"), order(Sort::Ascending));
        write_component(&mut key, &json!("1843-08-01T00:00:00Z"), order(Sort::Descending));
        assert_eq!(short(&key).len(), 12 + 20 + 4);
    }
}
