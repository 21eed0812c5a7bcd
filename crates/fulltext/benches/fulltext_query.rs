//! Queries of a large database: a rare word, a common one by date, for an administrator and for somebody who may read one
//! document in 10,000; and a document that was just written.
//!
//! `cargo bench -p scrinium-fulltext --bench fulltext_query`; `SCRINIUM_SIZES=20000` for a quick form.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

mod texts;

use std::time::Instant;

use scrinium_bench::{Against, Line, folder, report, sizes};
use scrinium_fulltext::{
    AnalysisOptions, DocumentText, Field, FullTextIndex, Query, Readers, Readership, Search, SegmentBuilder,
    Sort,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};

const PEOPLE: u64 = 10_000;
const WORDS: u64 = 25;
const ROUNDS: usize = 15;
const SEGMENT_BYTES: usize = 48 << 20;

/// Half have the word `common`, one in 100,000 `rare`; each has one reader.
fn document(builder: &mut SegmentBuilder, number: u64) {
    let mut body = texts::words(number, WORDS);
    if number.is_multiple_of(2) {
        body.push_str("common ");
    }
    if number.is_multiple_of(100_000) {
        body.push_str("rare ");
    }
    let (id, reader) = (format!("document-{number:010}"), format!("person-{}", number % PEOPLE));
    #[allow(clippy::cast_precision_loss, reason = "minutes of a life")]
    let date = (number * 60_000) as f64;
    let fields = vec![Field::text("body", &body), Field::number("date", date).sorted()];
    builder.add(&DocumentText { id: &id, readers: Readers::Names(vec![&reader]), language: None, fields });
}

fn fill(index: &FullTextIndex, documents: u64) {
    let mut builder = SegmentBuilder::new(AnalysisOptions::default());
    for number in 0..documents {
        document(&mut builder, number);
        if builder.is_full(SEGMENT_BYTES) {
            index.update::<&str>(&[], &builder.finish(), number).unwrap();
        }
    }
    index.update::<&str>(&[], &builder.finish(), documents).unwrap();
}

/// Milliseconds of each round.
fn ask(store: &Store, index: &FullTextIndex, search: &Search) -> Vec<f64> {
    let once = || {
        let began = Instant::now();
        let reader = index.reader(&store.snapshot()).unwrap();
        assert!(!reader.search(search).unwrap().hits.is_empty());
        began.elapsed().as_secs_f64() * 1e3
    };
    once();
    (0..ROUNDS).map(|_| once()).collect()
}

/// Milliseconds from handing a document over until it was found.
fn write_and_find(store: &Store, index: &FullTextIndex, documents: u64) -> Vec<f64> {
    let mut builder = SegmentBuilder::default();
    let once = |round: usize| {
        let (id, body) =
            (format!("new-{round}"), format!("{} fresh{round}x", texts::words(round as u64, 200)));
        let began = Instant::now();
        let fields = vec![Field::text("body", &body)];
        builder.add(&DocumentText { id: &id, readers: Readers::Everybody, language: None, fields });
        index.update::<&str>(&[], &builder.finish(), documents + round as u64 + 1).unwrap();
        let reader = index.reader(&store.snapshot()).unwrap();
        let query = Query::word("body", &format!("fresh{round}x"));
        assert_eq!(reader.search(&Search::new(query, Readership::Everything, 5)).unwrap().hits.len(), 1);
        began.elapsed().as_secs_f64() * 1e3
    };
    (0..500).map(once).collect()
}

fn main() {
    for documents in sizes(&[1_000_000]) {
        let folder = folder();
        let mut options = StoreOptions::new(folder.path());
        options.budget_bytes = Some(1 << 30);
        let store = Store::open(options, &Registry::new()).unwrap();
        let index = FullTextIndex::open(&store, 1, AnalysisOptions::default()).unwrap();
        fill(&index, documents);
        let by_date = vec![Sort::Field { name: "date".to_owned(), is_descending: true }];
        let search = |word: &str, readership: &Readership| Search {
            sort: by_date.clone(),
            ..Search::new(Query::word("body", word), readership.clone(), 30)
        };
        let (all, one) = (Readership::Everything, Readership::Names(vec!["person-0".to_owned()]));
        let show = |case: &str, values: &[f64], against: Against<'_>| {
            let case = format!("{case}, {documents} documents");
            report(&Line { name: "fulltext-query", case: &case, values, unit: "ms", against });
        };
        let rare = ask(&store, &index, &search("rare", &all));
        show("rare word", &rare, Against::Given("allowed", 2.0));
        let common = ask(&store, &index, &search("common", &all));
        show("common word by date, first 30", &common, Against::Given("allowed", 20.0));
        let relevant = Search { sort: vec![Sort::Relevance], ..search("common", &all) };
        show(
            "common word by relevance, first 30",
            &ask(&store, &index, &relevant),
            Against::Given("a second", 1e3),
        );
        let limited = ask(&store, &index, &search("rare", &one));
        show("rare word, reader of 1 in 10000", &limited, Against::Measured("an administrator", &rare));
        let limited = ask(&store, &index, &search("common", &one));
        show("common word, reader of 1 in 10000, first 30", &limited, Against::Given("allowed", 20.0));
        let written = write_and_find(&store, &index, documents);
        show("a document written and found", &written, Against::Given("a second", 1e3));
    }
}
