//! Plain English: phrases that no administrator in London or Boston would write.
//!
//! docs/internals/words.md has the plain phrase for each. Documents and messages have none of them; of those that
//! earlier comments still have, no more may come.

use std::path::Path;

use crate::{File, Finding};

/// How many may be left in all sources and documents together. It only shrinks.
const MOST_LEFT: usize = 40;

/// The phrases, in lower case and in halves, so that this file passes.
const PHRASES: [&str; 6] = [
    concat!("so m", "any"),
    concat!("an", "ew"),
    concat!("is t", "old"),
    concat!("who", "ever"),
    concat!("is n", "one"),
    concat!("has c", "ome"),
];

/// What makes a phrase plain when it stands before it: "there is none" is fine.
const PLAIN_AFTER: [(&str, &str); 1] = [(concat!("is n", "one"), "there ")];

/// Where measurements lie, whose texts are of their time; and the page that lists the phrases.
const LEFT_OUT: [&str; 4] = ["docs/results", "benchmarks", "BENCHMARKS.md", "docs/internals/words.md"];

pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) {
    let mut left = Vec::new();
    let mut in_documents = Vec::new();
    for file in files.iter().filter(|file| is_checked(&file.path)) {
        for (number, line) in (1..).zip(file.text.lines()) {
            for phrase in found(line) {
                let what = format!("\"{phrase}\" is not plain English; see docs/internals/words.md");
                let to = if file.has_extension("md") { &mut in_documents } else { &mut left };
                to.push(file.finding(number, what));
            }
        }
    }
    findings.append(&mut in_documents);
    if left.len() > MOST_LEFT {
        findings.append(&mut left);
    }
}

fn is_checked(path: &Path) -> bool {
    !LEFT_OUT.iter().any(|left_out| path.starts_with(left_out))
}

/// The phrases in a line.
fn found(line: &str) -> Vec<&'static str> {
    let line = line.to_lowercase();
    let mut found = Vec::new();
    for phrase in PHRASES {
        for (place, _) in line.match_indices(phrase) {
            let before = line.get(..place).unwrap_or_default();
            let after = line.get(place + phrase.len()..).unwrap_or_default();
            let is_word = !before.ends_with(is_letter) && !after.starts_with(is_letter);
            let is_plain =
                PLAIN_AFTER.iter().any(|(plain, words)| *plain == phrase && before.ends_with(words));
            if is_word && !is_plain {
                found.push(phrase);
            }
        }
    }
    found
}

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-'
}
