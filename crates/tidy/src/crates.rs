//! Rules for the crates: their paragraph in ARCHITECTURE.md, which gives their order and what they may use, and their lints.

use toml_edit::{Document, TableLike};

use crate::map::{self, Paragraph};
use crate::{File, Finding};

pub(crate) const PREFIX: &str = "scrinium-";

/// The crate that may bind what is not Rust.
const MAY_BE_UNSAFE: &str = "store";

/// What is begun before `main`, and closes descriptors that nobody owns.
const ALSO_UNSAFE: [&str; 3] =
    ["crates/confinement/src/lib.rs", "crates/extraction/src/entry.rs", "crates/javascript/src/entry.rs"];

pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) {
    let page = files.iter().find(|file| file.path.as_os_str() == map::PAGE);
    let paragraphs = page.map(map::paragraphs).unwrap_or_default();
    if let Some(page) = page {
        check_map(page, &paragraphs, files, findings);
    }
    for manifest in files {
        let Some(name) = crate_of(manifest) else { continue };
        match Document::parse(manifest.text.as_str()) {
            Ok(parsed) => check_manifest(manifest, name, &parsed, &paragraphs, findings),
            Err(error) => findings.push(manifest.finding(0, error.message())),
        }
    }
    for file in files.iter().filter(|file| file.has_extension("rs")) {
        let in_crate = |name: &str| file.path.starts_with(format!("crates/{name}"));
        let is_known = ALSO_UNSAFE.iter().any(|path| file.path.as_os_str() == *path);
        if in_crate(MAY_BE_UNSAFE) || in_crate("tidy") || is_known {
            continue;
        }
        for (number, line) in (1..).zip(file.text.lines()) {
            let code = line.split("//").next().unwrap_or_default();
            if ["unsafe {", "unsafe fn ", "unsafe impl ", "allow(unsafe_code"]
                .iter()
                .any(|word| code.contains(word))
            {
                findings.push(file.finding(number, format!("only `{MAY_BE_UNSAFE}` may be unsafe")));
            }
        }
    }
}

/// Each paragraph is of a crate that there is, stands once, and says what it must.
fn check_map(page: &File, paragraphs: &[Paragraph], files: &[File], findings: &mut Vec<Finding>) {
    if page.text.len() > map::MAX_BYTES {
        let what = format!("{} bytes; a map has at most {}", page.text.len(), map::MAX_BYTES);
        findings.push(page.finding(0, what));
    }
    for (place, paragraph) in paragraphs.iter().enumerate() {
        let name = &paragraph.name;
        if !files.iter().any(|file| crate_of(file) == Some(name)) {
            findings.push(page.finding(paragraph.line, format!("there is no crate `{name}`")));
        }
        if paragraphs.iter().take(place).any(|earlier| earlier.name == *name) {
            findings.push(page.finding(paragraph.line, format!("`{name}` has two paragraphs")));
        }
        for missing in paragraph.missing() {
            findings.push(page.finding(paragraph.line, format!("the paragraph of `{name}` lacks {missing}")));
        }
    }
}

/// The crate whose manifest this is.
fn crate_of(file: &File) -> Option<&str> {
    let mut parts = file.path.iter().map(|part| part.to_str().unwrap_or_default());
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some(name), Some("Cargo.toml"), None) => Some(name),
        _ => None,
    }
}

fn check_manifest(
    manifest: &File,
    name: &str,
    parsed: &Document<&str>,
    paragraphs: &[Paragraph],
    findings: &mut Vec<Finding>,
) {
    let table = |name: &str| parsed.get(name).and_then(|item| item.as_table_like());
    let text =
        |table: &str, key: &str| self::text(parsed.get(table).and_then(|item| item.as_table_like()), key);
    if text("package", "name") != Some(format!("{PREFIX}{name}")) {
        findings.push(manifest.finding(0, format!("its package must be called {PREFIX}{name}")));
    }
    if text("package", "description").is_none_or(|description| description.is_empty()) {
        findings.push(manifest.finding(0, "its package has no description"));
    }
    let inherits = table("lints").and_then(|lints| lints.get("workspace")).and_then(|item| item.as_bool());
    if inherits != Some(true) && name != MAY_BE_UNSAFE {
        findings.push(manifest.finding(0, "it must take the workspace's lints: [lints] workspace = true"));
    }
    let place_of = |name: &str| paragraphs.iter().position(|paragraph| paragraph.name == name);
    let Some((place, paragraph)) = place_of(name).and_then(|place| Some((place, paragraphs.get(place)?)))
    else {
        findings.push(manifest.finding(0, format!("`{name}` has no paragraph in {}", map::PAGE)));
        return;
    };
    let (uses_only, absent) = (paragraph.uses_only(), paragraph.absent());
    let used = table("dependencies").into_iter().flat_map(|table| table.iter());
    for used in used.filter_map(|(used, _)| used.strip_prefix(PREFIX)) {
        let below = place_of(used).is_some_and(|used| used < place);
        let is_named = uses_only.as_ref().is_none_or(|uses_only| uses_only.contains(used));
        if !below || !is_named || absent.contains(used) {
            findings.push(manifest.finding(0, format!("`{name}` may not use `{used}`")));
        }
    }
}

fn text(table: Option<&dyn TableLike>, key: &str) -> Option<String> {
    table?.get(key)?.as_str().map(str::to_owned)
}
