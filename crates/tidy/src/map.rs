//! ARCHITECTURE.md as data: one paragraph a crate, from the ground up, and what each says that the crate may use.

use std::collections::BTreeSet;

use crate::File;

/// The page that is the map.
pub(crate) const PAGE: &str = "ARCHITECTURE.md";

/// The longest map that people still read.
pub(crate) const MAX_BYTES: usize = 20 << 10;

/// What each paragraph says, in this order.
pub(crate) const PARTS: [&str; 3] = ["*Entry:*", "*Invariant:*", "*Absent:*"];

const USES_ONLY: &str = "*Uses only:*";
const ABSENT: &str = "*Absent:*";

/// What the page says of one crate.
#[derive(Clone, Debug)]
pub(crate) struct Paragraph {
    pub(crate) name: String,
    /// The line that it begins on, from 1.
    pub(crate) line: usize,
    /// The paragraph on one line.
    pub(crate) text: String,
}

impl Paragraph {
    /// The crates that it may use, if the page names all of them.
    pub(crate) fn uses_only(&self) -> Option<BTreeSet<&str>> {
        self.part(USES_ONLY).map(|part| words_in_code(part).collect())
    }

    /// What the page says that the crate does not know.
    pub(crate) fn absent(&self) -> BTreeSet<&str> {
        self.part(ABSENT).map(|part| words_in_code(part).collect()).unwrap_or_default()
    }

    /// The parts that it has not, and an entry that links no file.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let mut missing: Vec<_> = PARTS.into_iter().filter(|part| self.part(part).is_none()).collect();
        if self.part("*Entry:*").is_some_and(|entry| !entry.contains("](crates/")) {
            missing.push("a link in *Entry:*");
        }
        missing
    }

    /// The text from a mark to the next one.
    fn part(&self, mark: &str) -> Option<&str> {
        let (_, rest) = self.text.split_once(mark)?;
        Some(rest.split(" *").next().unwrap_or(rest))
    }
}

/// The paragraphs of the page in their order.
pub(crate) fn paragraphs(page: &File) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(page.text.lines()) {
        if let Some(name) = begun(line) {
            found.push(Paragraph { name: name.to_owned(), line: number, text: line.to_owned() });
            is_inside = true;
        } else if line.trim().is_empty() {
            is_inside = false;
        } else if let (true, Some(paragraph)) = (is_inside, found.last_mut()) {
            paragraph.text.push(' ');
            paragraph.text.push_str(line);
        }
    }
    found
}

/// The name in a line that begins a crate's paragraph: `**name**: …`.
fn begun(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("**")?.split_once("**: ")?;
    let legal = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    (!name.is_empty() && name.chars().all(legal)).then_some(name)
}

/// What stands between backticks.
fn words_in_code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
