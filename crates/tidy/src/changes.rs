//! The list of changes: one file a change in `changes/next/`, joined into CHANGELOG.md at a release.
//!
//! A file `changes/next/NAME.md` begins with a line `KIND: Sentence.`; after an empty line it may tell more.

use std::fmt::Write;
use std::io;
use std::path::Path;

use crate::{File, Finding, files};

const FOLDER: &str = "changes/next";
const LIST: &str = "CHANGELOG.md";

/// The kinds of changes, in the order in which a release lists them.
const KINDS: [&str; 5] = ["Security", "Changed", "Added", "Fixed", "Removed"];

/// The longest first line.
const MAX_LETTERS: usize = 200;

/// One change, as its file tells it.
struct Change<'a> {
    kind: usize,
    sentence: &'a str,
    more: &'a str,
}

impl<'a> Change<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let (first, more) = text.split_once('\n').unwrap_or((text, ""));
        let (kind, sentence) = first.split_once(": ").ok_or_else(expected)?;
        let kind = KINDS.iter().position(|known| *known == kind).ok_or_else(expected)?;
        if sentence.trim() != sentence || !sentence.ends_with('.') {
            return Err("its first line is no sentence with a full stop".to_owned());
        }
        let letters = first.chars().count();
        if letters > MAX_LETTERS {
            return Err(format!("its first line has {letters} letters; at most {MAX_LETTERS}"));
        }
        if !more.is_empty() && !more.starts_with('\n') {
            return Err("its second line is not empty".to_owned());
        }
        if more.lines().any(|line| line.starts_with('#')) {
            return Err("a change has no headings".to_owned());
        }
        Ok(Self { kind, sentence, more: more.trim() })
    }
}

fn expected() -> String {
    format!("its first line is not `KIND: Sentence.`; kinds are {}", KINDS.join(", "))
}

/// The files of changes, without the page about them.
fn changes(files: &[File]) -> impl Iterator<Item = &File> {
    files
        .iter()
        .filter(|file| file.path.starts_with(FOLDER) && file.path != Path::new(FOLDER).join("README.md"))
}

pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) {
    for file in changes(files) {
        let name = file.path.file_stem().unwrap_or_default().to_string_lossy();
        let legal = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if !file.has_extension("md") || !name.chars().all(legal) {
            findings.push(file.finding(0, "a change is called like-this.md"));
        }
        if let Err(reason) = Change::parse(&file.text) {
            findings.push(file.finding(1, reason));
        }
    }
}

/// The changes that are not released yet, by kind, as Markdown.
///
/// # Errors
/// If a file cannot be read or is not well formed.
pub fn next(root: &Path) -> io::Result<String> {
    let files = files::read(root)?;
    let mut parsed = Vec::new();
    for file in changes(&files) {
        let wrong = |reason| io::Error::other(format!("{}: {reason}", file.path.display()));
        parsed.push(Change::parse(&file.text).map_err(wrong)?);
    }
    let mut text = String::new();
    for (number, kind) in KINDS.iter().enumerate() {
        let mut of_kind = parsed.iter().filter(|change| change.kind == number).peekable();
        if of_kind.peek().is_some() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n### {kind}\n\n");
        }
        for change in of_kind {
            let _ = writeln!(text, "- {}", change.sentence);
            for line in change.more.lines() {
                let _ = if line.is_empty() { writeln!(text) } else { writeln!(text, "  {line}") };
            }
        }
    }
    Ok(text)
}

/// Puts the changes before those of earlier releases in CHANGELOG.md, and removes their files.
///
/// # Errors
/// If there are none, the list has this version already, or a file cannot be read, written or removed.
pub fn release(root: &Path, version: &str, date: &str) -> io::Result<()> {
    let (changed, path) = (next(root)?, root.join(LIST));
    let list = std::fs::read_to_string(&path)?;
    let heading = format!("## {version}");
    if changed.is_empty() {
        return Err(io::Error::other(format!("there are no changes in {FOLDER}")));
    }
    if list.lines().any(|line| line == heading || line.starts_with(&format!("{heading} "))) {
        return Err(io::Error::other(format!("{LIST} has {version} already")));
    }
    let place = list.find("\n## ").map_or(list.len(), |place| place + 1);
    let (before, earlier) = list.split_at(place);
    let gap = if earlier.is_empty() { "" } else { "\n" };
    std::fs::write(&path, format!("{before}{heading} ({date})\n{changed}{gap}{earlier}"))?;
    let files = files::read(root)?;
    changes(&files).try_for_each(|file| std::fs::remove_file(root.join(&file.path)))
}
