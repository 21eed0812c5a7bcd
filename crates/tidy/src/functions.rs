//! A function fits on a screen.

use crate::{File, Finding};

/// Lines of code, without empty ones and comments.
const LINES_LIMIT: usize = 70;

/// Stands with its reason at a function that is a list: one line for each command, one row for each case.
const EXCEPTION: &str = "#[allow(clippy::too_many_lines, reason = ";

/// Finds functions that are too long. The text is as rustfmt leaves it: a function ends with the first brace that stands
/// where the function begins.
pub(crate) fn check(file: &File, findings: &mut Vec<Finding>) {
    let lines: Vec<&str> = file.text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let length = length(&lines, number);
        let attributes = lines.iter().take(number).rev().take_while(|line| is_attribute(line));
        if length > LINES_LIMIT && !attributes.into_iter().any(|line| line.contains(EXCEPTION)) {
            findings.push(file.finding(
                number + 1,
                format!("{name} has {length} lines; a function has at most {LINES_LIMIT}"),
            ));
        }
    }
}

fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let before_name = words.by_ref().find(|word| {
        !matches!(*word, "async" | "const" | "unsafe" | "extern" | "\"C\"")
            && !word.starts_with("pub")
            && *word != "in"
            && !word.ends_with(')')
    });
    (before_name == Some("fn")).then(|| words.next())??.split(['(', '<']).next()
}

/// Comments stand between attributes, too.
fn is_attribute(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[") || line.starts_with("//") || line.starts_with(')')
}

/// Counted as clippy does: between the braces.
fn length(lines: &[&str], first: usize) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let Some(begin) = lines.get(first).map(|line| indent(line)) else { return 0 };
    let ends = |line: &&&str| indent(line) == begin && line.ends_with([';', '}']);
    let opens = |line: &&&str| indent(line) == begin && line.ends_with('{');
    let Some(last) = lines.iter().skip(first).position(|line| ends(&line)) else { return 0 };
    let whole = lines.iter().skip(first).take(last);
    let body = whole.skip_while(|line| !opens(line)).skip(1).map(|line| line.trim());
    body.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}
