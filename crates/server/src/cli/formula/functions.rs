//! `scrinium formula list` and `scrinium formula help`.

use std::fmt::Write;

use scrinium_formula::{
    FunctionEntry, FunctionName, RefusedEntry, function_named, functions, refused_functions,
};
use serde_json::{Value, json};

use super::super::{Failure, Terminal};

/// Texts are wrapped there.
const WIDTH: usize = 100;

/// Names are shorter than this, with a blank behind them; two are longer.
const NAME_WIDTH: usize = 20;

pub(super) fn list(pattern: Option<&str>, terminal: &Terminal) -> Result<(), Failure> {
    let wanted = pattern.unwrap_or("").to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&wanted);
    let found: Vec<FunctionEntry> = functions().filter(|entry| has(entry.name) || has(entry.help)).collect();
    let refused: Vec<RefusedEntry> = refused_functions().filter(|entry| has(entry.name)).collect();
    if found.is_empty() && refused.is_empty() {
        return Err(Failure::Work(format!("no function has '{wanted}' in its name or description")));
    }
    let data: Vec<Value> = found.iter().map(entry_json).chain(refused.iter().map(refused_json)).collect();
    terminal.data(&listed(&found, &refused, terminal), &data.into())
}

fn listed(found: &[FunctionEntry], refused: &[RefusedEntry], terminal: &Terminal) -> String {
    let mut text = String::new();
    let mut category = "";
    for entry in found {
        if entry.category != category {
            category = entry.category;
            // Writing into a text cannot fail.
            let _ = writeln!(text, "{}{category}", if text.is_empty() { "" } else { "\n" });
        }
        let padding = " ".repeat(NAME_WIDTH.saturating_sub(entry.name.len()).max(1));
        let _ = writeln!(text, "  {}{padding}{}", terminal.emphasised(entry.name), beginning(entry.help));
    }
    if !refused.is_empty() {
        let _ = writeln!(text, "{}Not available", if text.is_empty() { "" } else { "\n" });
    }
    for reason in reasons(refused) {
        let names = refused.iter().filter(|entry| entry.reason == reason).map(|entry| entry.name);
        let line = format!("{reason}: {}", names.collect::<Vec<_>>().join(", "));
        let _ = writeln!(text, "{}", wrapped(&line, "  "));
    }
    text
}

/// The first sentence, or as much of it as a line has room for.
fn beginning(help: &str) -> String {
    let sentence = help.split_inclusive(". ").next().unwrap_or("").trim_end();
    let room = WIDTH - NAME_WIDTH - "  ".len();
    match sentence.char_indices().nth(room) {
        None => sentence.to_owned(),
        Some((end, _)) => {
            let cut = sentence.get(..end).and_then(|part| part.rsplit_once(' ')).map_or("", |(part, _)| part);
            format!("{cut} …")
        }
    }
}

/// Each once, in the order of the functions.
fn reasons(refused: &[RefusedEntry]) -> Vec<&'static str> {
    let mut reasons: Vec<&str> = refused.iter().map(|entry| entry.reason).collect();
    reasons.dedup();
    reasons
}

pub(super) fn help(name: &str, terminal: &Terminal) -> Result<(), Failure> {
    let name = if name.starts_with('@') { name.to_owned() } else { format!("@{name}") };
    match function_named(&name) {
        FunctionName::Known(entry) => terminal.data(&described(&entry, terminal), &entry_json(&entry)),
        FunctionName::Refused(entry) => {
            let sentence = format!("is not available: {}; {}.", entry.reason, entry.advice);
            let text = format!("{}\n", wrapped(&format!("{} {sentence}", entry.name), ""));
            terminal.data(&text, &refused_json(&entry))
        }
        FunctionName::Unknown(Some(similar)) => {
            Err(Failure::Use(format!("there is no function {name}; did you mean {similar}?")))
        }
        FunctionName::Unknown(None) => {
            Err(Failure::Use(format!("there is no function {name}; scrinium formula list shows all")))
        }
    }
}

fn described(entry: &FunctionEntry, terminal: &Terminal) -> String {
    let mut text =
        format!("{}\n{}\n\n{}\n", terminal.emphasised(&entry.usage), entry.category, wrapped(entry.help, ""));
    for note in &entry.notes {
        let _ = writeln!(text, "{}", wrapped(note, ""));
    }
    text.push('\n');
    for (formula, result) in entry.examples {
        let _ = writeln!(text, "  {formula}  →  {result}");
    }
    text
}

/// The text in lines of at most [`WIDTH`] characters where its words allow it, indented.
fn wrapped(text: &str, indent: &str) -> String {
    let mut result = indent.to_owned();
    let mut used = indent.len();
    for (number, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 && used + 1 + length > WIDTH {
            result.push('\n');
            result.push_str(indent);
            used = indent.len();
        } else if number > 0 {
            result.push(' ');
            used += 1;
        }
        result.push_str(word);
        used += length;
    }
    result
}

fn entry_json(entry: &FunctionEntry) -> Value {
    let examples = entry.examples.iter();
    json!({
        "name": entry.name,
        "available": true,
        "category": entry.category,
        "usage": entry.usage,
        "help": entry.help,
        "notes": entry.notes,
        "examples": examples.map(|(formula, result)| json!({"formula": formula, "result": result})).collect::<Vec<_>>(),
    })
}

fn refused_json(entry: &RefusedEntry) -> Value {
    json!({"name": entry.name, "available": false, "reason": entry.reason, "advice": entry.advice})
}
