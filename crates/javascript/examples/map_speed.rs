//! How fast documents go through a map function: 256,000 documents of about 600 bytes each.
//!
//! `cargo run --release -p scrinium-javascript --example map_speed`

use std::hint::black_box;
use std::time::Instant;

use scrinium_javascript::{MapEngine, Owner, Pool};

const DOCUMENTS: u32 = 256_000;
const DATABASE: Owner = [255; 16];

fn memo(number: u32) -> String {
    let (person, month, day) = (number % 500, number % 12 + 1, number % 28 + 1);
    format!(
        r#"{{"_id":"memo-{number:08}","_rev":"1-967a00dff5e02add41819138abb3284d","type":"memo","from":"CN=Person {person}/OU=Sales/O=Acme","sendTo":["person1@acme.com","person2@acme.com","person{}@acme.com"],"subject":"Re: the plan for week {} of the year","date":"2026-{month:02}-{day:02}T10:15:00Z","size":{},"read":false,"tags":["plan","sales"],"place":{{"room":"{}","floor":3}},"body":"{}"}}"#,
        number % 9,
        number % 52,
        number * 37 % 90_000,
        number % 100,
        "All of us meet there, and then we see what comes. ".repeat(5)
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::default();
    let documents: Vec<String> = (0..DOCUMENTS).map(memo).collect();
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    let bytes: usize = documents.iter().map(|document| document.len()).sum();
    println!("{DOCUMENTS} documents of {} bytes", bytes / documents.len());
    let by_date = "function (doc) { if (doc.type === 'memo') emit(doc.date, null); }";
    let by_sender =
        "function (doc) { emit([doc.from, doc.date], { size: doc.size, subject: doc.subject }); }";
    let by_recipient = "doc => { for (const name of doc.sendTo) emit(name.split('@')[0].toUpperCase(), 1); }";
    for (name, sources) in [
        ("date", &[by_date][..]),
        ("sender and date", &[by_sender]),
        ("each recipient", &[by_recipient]),
        ("all three", &[by_date, by_sender, by_recipient]),
    ] {
        let mut engine = MapEngine::new(&pool, DATABASE, sources, None);
        let began = Instant::now();
        for batch in documents.chunks(64) {
            black_box(engine.map_many(batch)?);
        }
        println!("{:8.0} documents/s  {name}", f64::from(DOCUMENTS) / began.elapsed().as_secs_f64());
    }
    let mut engine = MapEngine::new(&pool, DATABASE, &[by_date], None);
    let began = Instant::now();
    for document in &documents {
        black_box(engine.map(document)?);
    }
    println!("{:8.0} documents/s  date, one by one", f64::from(DOCUMENTS) / began.elapsed().as_secs_f64());
    let began = Instant::now();
    for number in 0..100 {
        black_box(MapEngine::new(&pool, [number; 16], &[by_date], None).check()?);
    }
    println!("{:8.2} ms           to make a process and its engine", began.elapsed().as_secs_f64() * 10.0);
    Ok(())
}
