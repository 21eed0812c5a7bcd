//! Any bytes as a message: a memo comes out, always the same, within its limits.

#![no_main]
#![allow(dead_code, unused_imports, reason = "the sources of the reader hold what others use")]

#[path = "../../src/address.rs"]
mod address;
#[path = "../../src/memo.rs"]
mod memo;
#[path = "../../src/message/mod.rs"]
mod message;
#[path = "../../src/notes.rs"]
mod notes;

use libfuzzer_sys::fuzz_target;
use memo::{LONGEST_BODY, MOST_RECIPIENTS, field};
use message::{MessageOptions, memo_of_message};
use serde_json::Value;

fuzz_target!(|source: &[u8]| {
    let memo = memo_of_message(source, &MessageOptions::default());
    for name in [field::FORM, field::FROM, field::SUBJECT, field::BODY] {
        assert!(memo.get(name).is_some_and(Value::is_string), "{name}");
    }
    assert!(memo[field::BODY].as_str().unwrap().len() <= LONGEST_BODY);
    for name in [field::SEND_TO, field::COPY_TO, field::BLIND_COPY_TO] {
        let list = memo.get(name).and_then(Value::as_array);
        for written in list.into_iter().flatten() {
            let written = written.as_str().unwrap();
            assert!(!written.is_empty() && !written.contains(char::is_control), "{written:?}");
        }
        assert!(list.is_none_or(|list| list.len() <= MOST_RECIPIENTS));
    }
    let lengths = [field::FILE_NAMES, field::FILE_TYPES, field::FILE_SIZES]
        .map(|name| memo.get(name).and_then(Value::as_array).map_or(0, Vec::len));
    assert!(lengths.iter().all(|length| *length == lengths[0]));
    let text = Value::Object(memo.clone()).to_string();
    assert!(!text.contains("\\u0000"), "NUL in {text}");
    assert_eq!(memo_of_message(source, &MessageOptions::default()), memo, "the same bytes, the same memo");
});
