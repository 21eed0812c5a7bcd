//! A message as a memo and as Python read it, and where the two differ.

use std::fmt;

use serde_json::{Map, Value};

/// A memo's subject is cut at 2,000 characters.
const COMPARED_SUBJECT: usize = 1_900;

/// What the program `python_email.py` says of one message.
pub struct Theirs(pub Value);

pub struct Pair<'a> {
    pub source: &'a [u8],
    pub memo: &'a Map<String, Value>,
    pub theirs: &'a Theirs,
}

/// A field of which the two say different things, each in the form in which it was compared.
pub struct Difference {
    pub field: &'static str,
    pub theirs: String,
    pub ours: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let common = self.theirs.chars().zip(self.ours.chars()).take_while(|(a, b)| a == b).count();
        let shown = |text: &str| text.chars().skip(common.saturating_sub(30)).take(160).collect::<String>();
        write!(out, "{}\n   theirs {:?}\n   ours   {:?}", self.field, shown(&self.theirs), shown(&self.ours))
    }
}

impl Theirs {
    pub fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    pub fn is(&self, name: &str) -> bool {
        self.0[name] == true
    }

    /// A header field as it stands in the source, a character for each byte.
    pub fn raw(&self, name: &str) -> &str {
        self.0["raw"][name].as_str().unwrap_or_default()
    }

    fn addresses(&self, name: &str) -> Vec<String> {
        let list = self.0[name].as_array().unwrap();
        list.iter().map(|address| address.as_str().unwrap().to_lowercase()).collect()
    }

    fn files(&self) -> Vec<(String, Option<u64>)> {
        let file = |file: &Value| (file_name(file[0].as_str().unwrap()), file[1].as_u64());
        self.0["files"].as_array().unwrap().iter().map(file).collect()
    }
}

/// The character set in which a memo says that it read what declares none.
pub fn guessed_set(memo: &Map<String, Value>) -> Option<&str> {
    notes(memo).find_map(|note| note.strip_prefix("text of an undeclared character set was read as "))
}

pub fn notes(memo: &Map<String, Value>) -> impl Iterator<Item = &str> {
    memo.get("$ParseNotes").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

impl Pair<'_> {
    pub fn differences(&self) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |field: &'static str, theirs: String, ours: String| {
            if theirs != ours {
                found.push(Difference { field, theirs, ours });
            }
        };
        let subject = |text: &str| line(text).chars().take(COMPARED_SUBJECT).collect::<String>();
        compare("Subject", subject(self.theirs.text("subject")), subject(self.text("Subject")));
        for (name, field) in [("from", "From"), ("to", "SendTo"), ("cc", "CopyTo")] {
            compare(field, list(self.theirs.addresses(name)), list(self.addresses(field)));
        }
        compare(
            "PostedDate",
            format!("{:?}", self.theirs.0["date"].as_i64()),
            format!("{:?}", self.moment()),
        );
        let (theirs, ours) = self.bodies();
        compare("Body", theirs, ours);
        if let Some((theirs, ours)) = self.first_text() {
            compare("first text", theirs, ours);
        }
        let (theirs, ours) = self.files();
        compare("$FileNames", theirs, ours);
        found
    }

    pub fn text(&self, field: &str) -> &str {
        self.memo.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn has_note(&self, beginning: &str) -> bool {
        notes(self.memo).any(|note| note.starts_with(beginning))
    }

    fn addresses(&self, field: &str) -> Vec<String> {
        // Another field stands in for one that is missing.
        if field == "From" && self.has_note("From is missing") {
            return Vec::new();
        }
        let written = match self.memo.get(field) {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(text)) => vec![text.as_str()],
            _ => Vec::new(),
        };
        let address = |text: &str| scrinium_mail::WrittenAddress::read(text).address.to_lowercase();
        written.into_iter().map(address).filter(|address| address.contains('@')).collect()
    }

    /// Seconds since 1970, where the memo's date is that of the field `Date`.
    fn moment(&self) -> Option<i64> {
        let beginnings = ["Date is missing", "Date cannot", "Date names no possible"];
        if beginnings.iter().any(|beginning| self.has_note(beginning)) {
            return None;
        }
        self.text("PostedDate").parse::<jiff::Timestamp>().ok().map(|moment| moment.as_second())
    }

    /// The two bodies with what may differ left out: blanks, and how HTML and flowed text are laid out.
    fn bodies(&self) -> (String, String) {
        let form = |text: &str| {
            if self.theirs.is("html") {
                without_layout(text)
            } else if self.theirs.is("flowed") {
                without_blanks(text)
            } else {
                words(text)
            }
        };
        let (mut theirs, mut ours) = (form(self.theirs.text("body")), form(self.text("Body")));
        if self.memo.contains_key("$BodyTruncated") {
            ours = ours.chars().take(ours.chars().count().saturating_sub(100)).collect();
            theirs = theirs.chars().take(ours.chars().count()).collect();
        }
        (theirs, ours)
    }

    /// The text that Python chooses as the body, where the memo's body does not hold it.
    fn first_text(&self) -> Option<(String, String)> {
        let first = without_blanks(self.theirs.text("first"));
        let ours = without_blanks(self.text("Body"));
        let is_there = ours.contains(&first) || self.memo.contains_key("$BodyTruncated");
        (!is_there).then_some((first, ours))
    }

    fn files(&self) -> (String, String) {
        let theirs = self.theirs.files();
        let list = |name: &str| self.memo.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let sizes = list("$FileSizes");
        let names = list("$FileNames");
        let mut ours: Vec<(String, Option<u64>)> = names
            .iter()
            .zip(&sizes)
            .map(|(name, size)| (file_name(name.as_str().unwrap()), size.as_u64()))
            .collect();
        // Of messages in messages Python does not tell the size.
        for (file, theirs) in ours.iter_mut().zip(&theirs) {
            if theirs.1.is_none() && file.0 == theirs.0 {
                file.1 = None;
            }
        }
        (format!("{theirs:?}"), format!("{ours:?}"))
    }
}

fn list(mut addresses: Vec<String>) -> String {
    addresses.sort();
    addresses.dedup();
    addresses.join(" ")
}

/// A text with single blanks, and without characters that no memo keeps.
pub fn words(text: &str) -> String {
    let is_kept = |character: &char| {
        *character != '\u{feff}' && (!character.is_control() || character.is_ascii_whitespace())
    };
    text.chars().filter(is_kept).collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text of one line, in which memos have blanks for characters that they do not keep.
fn line(text: &str) -> String {
    let blank = |character: char| if character.is_control() { ' ' } else { character };
    words(&text.chars().map(blank).collect::<String>())
}

fn without_blanks(text: &str) -> String {
    words(text).chars().filter(|character| !matches!(character, ' ' | '>')).collect()
}

/// Letters and digits, without the addresses of links that memos put behind their texts.
fn without_layout(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        kept.push_str(&rest[..start]);
        let inside = &rest[start + 1..];
        let end = inside.find(|character: char| character.is_whitespace() || "<>".contains(character));
        let is_link =
            end.is_some_and(|end| inside[end..].starts_with('>') && inside[..end].contains([':', '@']));
        rest = if is_link { &inside[end.unwrap() + 1..] } else { inside };
    }
    kept.push_str(rest);
    kept.chars().filter(|character| character.is_alphanumeric()).collect()
}

fn file_name(name: &str) -> String {
    line(name).chars().take(255).collect::<String>().trim().to_owned()
}
