//! Any text, in any language, as a body, as HTML and as something to show: no panic, and no more words than letters.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_fulltext::{
    DocumentText, Field, Language, Query, Readers, SegmentBuilder, SnippetOptions, snippet, text_of_flowed,
    text_of_html,
};

fuzz_target!(|input: (u8, &str)| {
    let (number, text) = input;
    let language = Language::all().nth(usize::from(number) % 31);
    let html = text_of_html(text);
    assert!(html.len() <= 3 * text.len());
    let flowed = text_of_flowed(text, number % 2 == 0);
    let mut builder = SegmentBuilder::default();
    let fields = vec![
        Field::text("body", text),
        Field::text("html", &html),
        Field::text("body", &flowed),
        Field::exact("exact", text).sorted(),
    ];
    builder.add(&DocumentText { id: text, readers: Readers::Names(vec![text]), language, fields });
    assert_eq!(builder.finish().len(), 1);
    let shown = snippet(text, &Query::word("body", text), SnippetOptions::default());
    assert!(shown.iter().map(|fragment| fragment.text.len()).sum::<usize>() <= text.len());
});
