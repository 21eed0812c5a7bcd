//! Rules for lines of text.

use std::path::Path;

use crate::{File, Finding};

/// What git writes around two versions that it could not merge.
const MERGED: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];

/// Written in halves, so that this file passes.
const LEFTOVERS: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("db", "g!("),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
];

/// Checks one file by itself.
pub(crate) fn check(file: &File, findings: &mut Vec<Finding>) {
    let code = ["rs", "ts", "tsx", "sh"].iter().any(|extension| file.has_extension(extension));
    let script = file.text.starts_with("#!");
    let strict = if file.text.starts_with("#!/bin/sh") { "set -eu" } else { "set -euo pipefail" };
    if script && !file.text.lines().any(|line| line == strict) {
        findings.push(file.finding(1, format!("a script begins with {strict}")));
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push(file.finding(file.text.lines().count(), "the last line does not end"));
    }
    let may_have_tabs = file.path.ends_with("Makefile");
    for (number, line) in (1..).zip(file.text.lines()) {
        if !may_have_tabs && line.contains('\t') {
            findings.push(file.finding(number, "a tab; indent by spaces"));
        }
        if MERGED.iter().any(|mark| line.starts_with(mark)) {
            findings.push(file.finding(number, "a merge was left unfinished"));
        }
        if line.ends_with(' ') && !file.has_extension("md") {
            findings.push(file.finding(number, "spaces at the end of the line"));
        }
        if code || script {
            for leftover in LEFTOVERS.iter().filter(|leftover| begins_a_word(line, leftover)) {
                findings.push(file.finding(number, format!("{leftover} was left over")));
            }
        }
    }
}

/// Whether a word begins so: calendars have a component whose name ends like the first of the leftovers.
fn begins_a_word(line: &str, leftover: &str) -> bool {
    line.match_indices(leftover).any(|(place, _)| {
        let before = line.get(..place).unwrap_or_default();
        !before.ends_with(|letter: char| letter.is_ascii_alphanumeric())
    })
}

/// Links of one page to another file lead somewhere.
pub(crate) fn check_links(root: &Path, files: &[File], findings: &mut Vec<Finding>) {
    for file in files.iter().filter(|file| file.has_extension("md")) {
        let folder = root.join(&file.path).parent().map(Path::to_owned).unwrap_or_default();
        for (number, line) in (1..).zip(file.text.lines()) {
            for target in link_targets(line) {
                let path = target.split('#').next().unwrap_or_default();
                let elsewhere = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
                if !elsewhere && !folder.join(path).exists() {
                    findings.push(file.finding(number, format!("the link to {target} leads nowhere")));
                }
            }
        }
    }
}

/// What stands in `](…)`.
pub(crate) fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}
