//! docs/internals/where.md: each question names a crate, files and functions that there are.

use std::path::{Path, PathBuf};

use crate::files::normal;
use crate::text::link_targets;
use crate::{File, Finding, map};

const PAGE: &str = "docs/internals/where.md";

/// A map that answers fewer is no map.
const LEAST_QUESTIONS: usize = 10;

/// What declares a name in Rust, before the name.
const DECLARES: [&str; 6] = ["fn ", "const ", "static ", "struct ", "enum ", "trait "];

/// One line of the table.
struct Row<'a> {
    line: usize,
    crate_name: &'a str,
    paths: Vec<PathBuf>,
    names: Vec<&'a str>,
}

pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) {
    let Some(page) = files.iter().find(|file| file.path.as_os_str() == PAGE) else { return };
    let rows: Vec<Row<'_>> =
        (1..).zip(page.text.lines()).filter_map(|(line, text)| row(line, text)).collect();
    if rows.len() < LEAST_QUESTIONS {
        findings.push(page.finding(0, format!("{} questions; at least {LEAST_QUESTIONS}", rows.len())));
    }
    let map = files.iter().find(|file| file.path.as_os_str() == map::PAGE);
    if let Some(map) = map
        && !map.text.contains(&format!("]({PAGE})"))
    {
        findings.push(map.finding(0, format!("it does not link {PAGE}")));
    }
    let paragraphs = map.map(map::paragraphs).unwrap_or_default();
    for row in &rows {
        if !paragraphs.iter().any(|paragraph| paragraph.name == row.crate_name) {
            findings.push(page.finding(row.line, format!("the map has no crate `{}`", row.crate_name)));
        }
        check_row(page, row, files, findings);
    }
}

fn check_row(page: &File, row: &Row<'_>, files: &[File], findings: &mut Vec<Finding>) {
    let mut sources = Vec::new();
    for path in &row.paths {
        if !path.starts_with(Path::new("crates").join(row.crate_name)) {
            let what = format!("{} is not in the crate `{}`", path.display(), row.crate_name);
            findings.push(page.finding(row.line, what));
        }
        match files.iter().find(|file| file.path == *path) {
            Some(file) => sources.push(file),
            None => findings.push(page.finding(row.line, format!("there is no file {}", path.display()))),
        }
    }
    if row.paths.is_empty() || row.names.is_empty() {
        findings.push(page.finding(row.line, "it names no file or no function"));
    }
    for name in &row.names {
        if !sources.iter().any(|file| declares(&file.text, name)) {
            findings.push(page.finding(row.line, format!("none of its files has `{name}`")));
        }
    }
}

/// A line of the table that is neither its head nor the line below it.
fn row(line: usize, text: &str) -> Option<Row<'_>> {
    let mut cells = text.strip_prefix('|')?.split('|').map(str::trim);
    let (question, crate_name) = (cells.next()?, cells.next()?);
    let (linked, names) = (cells.next()?, cells.next()?);
    if !question.ends_with('?') {
        return None;
    }
    let folder = Path::new(PAGE).parent()?;
    let paths = link_targets(linked).filter_map(|target| normal(&folder.join(target))).collect();
    Some(Row { line, crate_name, paths, names: names.split('`').skip(1).step_by(2).collect() })
}

/// Whether a source has an item of this name, comments apart.
fn declares(text: &str, name: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut after = lines.flat_map(|line| {
        DECLARES.into_iter().filter_map(move |word| line.split_once(word)).map(|(_, rest)| rest)
    });
    after.any(|rest| rest.strip_prefix(name).is_some_and(ends))
}
