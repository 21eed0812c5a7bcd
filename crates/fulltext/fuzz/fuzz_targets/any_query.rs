//! Any text as a query: no panic, and twice the same outcome.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_fulltext::parse_query;

fuzz_target!(|text: &str| {
    for wants_all in [false, true] {
        let query = parse_query(text, &["one", "two"], wants_all);
        assert_eq!(query.is_ok(), parse_query(text, &["one", "two"], wants_all).is_ok());
    }
});
