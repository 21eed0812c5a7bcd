//! Files that are none, or that want more than they may have: they have no words, and nothing else happens.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_extraction::{ExtractionError, Extractor, Kind, Limits};

use crate::files::{archive, pdf};

#[test]
fn a_file_that_is_damaged_costs_its_own_words_alone() {
    let extractor = Extractor::default();
    let mut random = StdRng::seed_from_u64(11);
    let rounds: usize =
        std::env::var("SCRINIUM_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(12);
    for round in 0..rounds {
        let (kind, mut file) = match round % 2 {
            0 => (Kind::Pdf, pdf("words of a file")),
            _ => (Kind::Office, archive(&[("word/document.xml", "<w><t>words of a file</t></w>")])),
        };
        for _ in 0..random.random_range(1..6) {
            let place = random.random_range(0..file.len());
            file[place] ^= 1 << random.random_range(0..8);
        }
        if random.random_bool(0.3) {
            file.truncate(random.random_range(0..file.len()));
        }
        assert!(!matches!(extractor.text(kind, &file), Err(ExtractionError::Unavailable { .. })), "{round}");
    }
    for file in [&b""[..], b"%PDF-1.7", b"PK\x03\x04"] {
        for kind in [Kind::Pdf, Kind::Office] {
            assert!(
                matches!(extractor.text(kind, file), Err(ExtractionError::Unreadable { .. })),
                "{file:?}"
            );
        }
    }
}

#[test]
fn an_archive_that_unpacks_to_much_more_is_cut() {
    let limits = Limits { text_bytes: 10_000, ..Limits::default() };
    let bomb = format!("<w><t>{}</t></w>", "a ".repeat(20 << 20));
    let began = Instant::now();
    let text = Extractor::new(limits).text(Kind::Office, &archive(&[("word/document.xml", &bomb)]));
    assert!(text.is_err() || text.unwrap().len() <= 10_000);
    assert!(began.elapsed() < Duration::from_secs(40), "it was not waited for without end");
}
