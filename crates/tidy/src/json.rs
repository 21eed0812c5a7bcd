//! JSON is put together by one writer, which escapes: nowhere in what serves is it pieced together from text.

use crate::{File, Finding};

/// Crates of which clients read what they write.
const CRATES: [&str; 7] = ["database", "directory", "document", "http", "mail", "server", "statistics"];

/// What puts text together.
const JOINING: [&str; 5] = ["format!(", "push_str(", "write!(", "writeln!(", "extend_from_slice("];

/// What stands in a literal that is a piece of JSON: a member's name with its colon, or the first one of an object.
const PIECES: [&str; 2] = ["\\\":", "{\\\""];

/// Ways into JSON text for what was checked when it was stored, and where alone they may be taken.
const STORED: [(&str, &str); 3] = [
    (".entry_value(", "crates/database/src/view/"),
    ("::of_entry(", "crates/database/src/view/"),
    (".outside_value(", "crates/database/src/read/"),
];

pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) {
    for file in files.iter().filter(|file| is_product(file)) {
        for (number, line) in (1..).zip(file.text.lines()) {
            if joins_json(line) {
                findings.push(file.finding(number, "JSON is put together by JsonWriter, which escapes"));
            }
            for (way, folder) in STORED.iter().filter(|(way, _)| line.contains(way)) {
                if !file.path.starts_with(folder) {
                    findings.push(
                        file.finding(number, format!("{way} takes what is not checked: only for {folder}")),
                    );
                }
            }
        }
    }
}

fn is_product(file: &File) -> bool {
    let path = file.path.to_string_lossy();
    let in_source = CRATES.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
    in_source && file.has_extension("rs") && !path.contains("/tests") && !path.ends_with("json/writer.rs")
}

/// Whether the first literal behind something that puts text together is a piece of JSON.
fn joins_json(line: &str) -> bool {
    JOINING.iter().any(|joining| {
        let literal =
            line.split_once(joining).and_then(|(_, rest)| rest.split_once('"')).map(|(_, rest)| rest);
        literal.is_some_and(|rest| PIECES.iter().any(|piece| within_literal(rest).contains(piece)))
    })
}

/// A literal's text, up to the quotation mark that ends it.
fn within_literal(rest: &str) -> &str {
    let mut is_escaped = false;
    let end = rest.find(|character| {
        let ends = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        ends
    });
    end.and_then(|end| rest.get(..end)).unwrap_or(rest)
}
