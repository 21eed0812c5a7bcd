//! The same texts indexed by tantivy alone: `scrinium-fulltext-library TEXTS DOCUMENTS THREADS FOLDER WORD...`.
//!
//! TEXTS holds, for each text, the length of its subject (4 bytes, little endian), the subject, and the same of its body. They
//! are repeated until there are DOCUMENTS. Prints the seconds of building on the first line, and for each WORD the median
//! milliseconds of finding the first 30 by date.

use std::time::Instant;

use tantivy::collector::TopDocs;
use tantivy::query::TermQuery;
use tantivy::schema::{FAST, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexWriter, Order, TantivyDocument, Term};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MEMORY_BYTES: usize = 256 << 20;
const ROUNDS: usize = 7;

fn texts(bytes: &[u8]) -> Vec<(String, String)> {
    let mut rest = bytes;
    let mut next = || -> Option<String> {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (text, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    std::iter::from_fn(|| Some((next()?, next()?))).collect()
}

fn main() -> tantivy::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, file, documents, threads, folder, words @ ..] = arguments.as_slice() else {
        panic!("TEXTS DOCUMENTS THREADS FOLDER WORD...")
    };
    let texts = texts(&std::fs::read(file).expect("the texts can be read"));
    let documents: u64 = documents.parse().expect("a number of documents");
    let threads: usize = threads.parse().expect("a number of threads");

    let mut schema = Schema::builder();
    let words_of = |tokenizer| {
        let indexing =
            TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(IndexRecordOption::WithFreqsAndPositions);
        TextOptions::default().set_indexing_options(indexing)
    };
    let id = schema.add_text_field("id", STRING);
    let date = schema.add_u64_field("date", FAST);
    let subject = schema.add_text_field("subject", words_of("en_stem"));
    let body = schema.add_text_field("body", words_of("en_stem"));
    let index = Index::create_in_dir(folder, schema.build())?;
    let mut writer: IndexWriter = index.writer_with_num_threads(threads, MEMORY_BYTES)?;
    let began = Instant::now();
    for number in 0..documents {
        let (subject_text, body_text) = &texts[number as usize % texts.len()];
        let mut document = TantivyDocument::default();
        document.add_text(id, format!("message-{number:010}"));
        document.add_u64(date, number * 60);
        document.add_text(subject, subject_text);
        document.add_text(body, body_text);
        writer.add_document(document)?;
    }
    writer.commit()?;
    println!("{}", began.elapsed().as_secs_f64());
    writer.wait_merging_threads()?;

    let searcher = index.reader()?.searcher();
    for word in words {
        let query = TermQuery::new(Term::from_field_text(body, word), IndexRecordOption::Basic);
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let began = Instant::now();
                let found = searcher.search(&query, &TopDocs::with_limit(30).order_by_u64_field("date", Order::Desc));
                assert!(found.is_ok_and(|found| !found.is_empty()), "{word} is found");
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{}", times[ROUNDS / 2]);
    }
    Ok(())
}
