//! Full text of many messages, with the library that could have been taken, on the same text and as many threads; and what
//! 20,000 mail files take at rest.
//!
//! `cargo bench -p scrinium-fulltext --bench fulltext_build`; `SCRINIUM_DOCUMENTS=5000 SCRINIUM_FILES=500 SCRINIUM_ROUNDS=1`
//! for a quick form. The library is built from the folder `library`, or is the program `SCRINIUM_FULLTEXT_LIBRARY`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

mod texts;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use scrinium_bench::{Against, Line, folder, report, setting};
use scrinium_fulltext::{
    AnalysisOptions, DocumentText, Field, FullTextIndex, Readers, SegmentBuilder, text_of_html,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};

const THREADS: usize = 2;
const SEGMENT_BYTES: usize = 48 << 20;
const CHUNK: usize = 256;

const MESSAGES: usize = 6000;

fn corpus() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("SCRINIUM_CORPUS") {
        return Some(PathBuf::from(folder));
    }
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let folder = home.join(".cache/scrinium/corpus/spam-assassin-0.2.3/data");
    folder.is_dir().then_some(folder)
}

fn gather(folder: &Path, messages: &mut Vec<Vec<u8>>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            gather(&path, messages);
        } else if messages.len() < MESSAGES && path.metadata().is_ok_and(|file| file.len() < 200_000) {
            messages.push(std::fs::read(&path).unwrap());
        }
    }
}

/// Raw messages.
fn messages() -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    if let Some(folder) = corpus() {
        gather(&folder, &mut messages);
    }
    if messages.is_empty() {
        eprintln!("fulltext: scripts/corpus was not run; words are made up");
        messages.extend((0..2000).map(|number| {
            format!("Subject: {}\n\n{}", texts::words(number, 8), texts::words(number, 300)).into_bytes()
        }));
    }
    messages
}

/// Subject and body of a message, without what encodings would need.
fn parse(message: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(message);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let subject = head.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap_or_default();
    let is_html =
        body.get(..body.len().min(2000)).is_some_and(|start| start.to_ascii_lowercase().contains("<html"));
    let body = if is_html { text_of_html(body) } else { body.to_owned() };
    (subject.to_owned(), body)
}

fn open(folder: &Path, budget_bytes: u64) -> Store {
    let mut options = StoreOptions::new(folder);
    options.budget_bytes = Some(budget_bytes);
    Store::open(options, &Registry::new()).unwrap()
}

fn add(builder: &mut SegmentBuilder, number: usize, message: &[u8]) {
    let (subject, body) = parse(message);
    let id = format!("message-{number:010}");
    let date = number as f64 * 60_000.0;
    let fields = vec![
        Field::text("subject", &subject),
        Field::text("body", &body),
        Field::number("date", date).sorted(),
    ];
    builder.add(&DocumentText { id: &id, readers: Readers::Everybody, language: None, fields });
}

/// Seconds of building.
fn build(messages: &[Vec<u8>], documents: usize) -> f64 {
    let folder = folder();
    let store = open(folder.path(), 512 << 20);
    let index = FullTextIndex::open(&store, 1, AnalysisOptions::default()).unwrap();
    let (next, writer) = (AtomicUsize::new(0), Mutex::new(()));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut builder = SegmentBuilder::default();
                let hand_over = |builder: &mut SegmentBuilder| {
                    let segment = builder.finish();
                    let _one = writer.lock().unwrap();
                    index.update::<&str>(&[], &segment, next.load(Ordering::Relaxed) as u64).unwrap();
                };
                loop {
                    let from = next.fetch_add(CHUNK, Ordering::Relaxed);
                    if from >= documents {
                        break;
                    }
                    for number in from..documents.min(from + CHUNK) {
                        add(&mut builder, number, &messages[number % messages.len()]);
                    }
                    if builder.is_full(SEGMENT_BYTES) {
                        hand_over(&mut builder);
                    }
                }
                hand_over(&mut builder);
            });
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(index.figures().unwrap().documents, documents as u64);
    seconds
}

fn library() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os("SCRINIUM_FULLTEXT_LIBRARY") {
        return Some(PathBuf::from(program));
    }
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("library");
    let target = std::env::current_exe().ok()?.ancestors().nth(3)?.join("library");
    let built = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--manifest-path"])
        .arg(project.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", &target)
        .status();
    built.is_ok_and(|status| status.success()).then(|| target.join("release/scrinium-fulltext-library"))
}

/// Seconds of building with the library.
fn build_with(library: &Path, texts: &Path, documents: usize) -> f64 {
    let folder = folder();
    let output = Command::new(library)
        .arg(texts)
        .args([documents.to_string(), THREADS.to_string()])
        .arg(folder.path())
        .output()
        .unwrap();
    let seconds = String::from_utf8(output.stdout).unwrap();
    seconds.lines().next().unwrap().parse().unwrap()
}

fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}

/// Megabytes that a process has more with this number of small indexes open and at rest.
fn at_rest(messages: &[Vec<u8>], files: usize) -> f64 {
    let folder = folder();
    let store = open(folder.path(), 64 << 20);
    let before = resident_bytes();
    let mut builder = SegmentBuilder::default();
    let mut indexes = Vec::new();
    for file in 0..files {
        let index = FullTextIndex::open(&store, file as u64 + 1, AnalysisOptions::default()).unwrap();
        for number in 0..3 {
            add(&mut builder, number, &messages[(file + number) % messages.len()]);
        }
        index.update::<&str>(&[], &builder.finish(), 1).unwrap();
        indexes.push(index);
    }
    drop(builder);
    (resident_bytes() - before) / 1e6
}

#[allow(clippy::cast_precision_loss, reason = "a few million at most")]
fn main() {
    let messages = messages();
    let documents: usize = setting("SCRINIUM_DOCUMENTS", 100_000);
    let rounds: usize = setting("SCRINIUM_ROUNDS", 3);
    let place = folder();
    let file = place.path().join("texts");
    let mut bytes = Vec::new();
    for message in &messages {
        let (subject, body) = parse(message);
        for text in [subject, body] {
            bytes.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    std::fs::write(&file, bytes).unwrap();
    let library = library();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(documents as f64 / build(&messages, documents));
        if let Some(library) = &library {
            theirs.push(documents as f64 / build_with(library, &file, documents));
        }
    }
    let case = format!("{documents} messages, with parsing");
    let given = |name, value| Against::Given(name, value);
    report(&Line {
        name: "fulltext-build",
        case: &case,
        values: &ours,
        unit: "/s",
        against: given("wanted", 5000.0),
    });
    if !theirs.is_empty() {
        let against = Against::Measured("tantivy on the same text", &theirs);
        report(&Line { name: "fulltext-build", case: &case, values: &ours, unit: "/s", against });
    }
    let files: usize = setting("SCRINIUM_FILES", 20_000);
    let case = format!("{files} mail files at rest, memory");
    let memory = [at_rest(&messages, files)];
    report(&Line {
        name: "fulltext-build",
        case: &case,
        values: &memory,
        unit: "MB",
        against: given("allowed", 200.0),
    });
}
