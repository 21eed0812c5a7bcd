//! Rules for the crates: their order, their lints, their line in ARCHITECTURE.md.

use toml_edit::{Document, TableLike};

use crate::{File, Finding};

pub(crate) const PREFIX: &str = "scrinium-";

/// From the ground up: a crate may use only crates before it. The laboratory uses none but the pure grammar of
/// protocols, since it measures any server over its ports; the server mounts it as a command.
const ORDER: [&str; 35] = [
    "line-wire",
    "smtp-wire",
    "pop3-wire",
    "imap-wire",
    "dav-wire",
    "clock",
    "accounting",
    "statistics",
    "worker",
    "log",
    "store",
    "objects",
    "backup",
    "document",
    "formula",
    "javascript",
    "mango",
    "index",
    "database",
    "directory",
    "mail",
    "calendar",
    "http",
    "smtp",
    "imap",
    "dav",
    "cluster",
    "advise",
    "lab",
    "planner",
    "server",
    "bench",
    "fault",
    "tidy",
    "fuzz",
];

/// Crates that use no other but these.
const ALONE: [(&str, &[&str]); 9] = [
    ("advise", &[]),
    ("lab", &["smtp-wire", "pop3-wire", "imap-wire", "dav-wire"]),
    ("fault", &[]),
    ("tidy", &[]),
    ("line-wire", &[]),
    ("smtp-wire", &["line-wire"]),
    ("pop3-wire", &["line-wire"]),
    ("imap-wire", &["line-wire"]),
    ("dav-wire", &[]),
];

/// The crate that may bind what is not Rust.
const MAY_BE_UNSAFE: &str = "store";

/// What is begun before `main`, and closes descriptors that nobody owns.
const ALSO_UNSAFE: [&str; 2] = ["crates/javascript/src/entry.rs", "crates/javascript/src/confine.rs"];

pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) {
    let architecture = files.iter().find(|file| file.path.as_os_str() == "ARCHITECTURE.md");
    for manifest in files {
        let Some(name) = crate_of(manifest) else { continue };
        match Document::parse(manifest.text.as_str()) {
            Ok(parsed) => check_manifest(manifest, name, &parsed, findings),
            Err(error) => findings.push(manifest.finding(0, error.message())),
        }
        if let Some(architecture) = architecture
            && !has_invariant(architecture, name)
        {
            findings.push(architecture.finding(0, format!("no line tells the invariant of `{name}`")));
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

/// The crate whose manifest this is.
fn crate_of(file: &File) -> Option<&str> {
    let mut parts = file.path.iter().map(|part| part.to_str().unwrap_or_default());
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some(name), Some("Cargo.toml"), None) => Some(name),
        _ => None,
    }
}

fn check_manifest(manifest: &File, name: &str, parsed: &Document<&str>, findings: &mut Vec<Finding>) {
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
    let Some(place) = ORDER.iter().position(|known| *known == name) else {
        findings.push(manifest.finding(0, format!("`{name}` has no place in the order of crates")));
        return;
    };
    let used = table("dependencies").into_iter().flat_map(|table| table.iter());
    for used in used.filter_map(|(used, _)| used.strip_prefix(PREFIX)) {
        let below = ORDER.iter().position(|known| *known == used).is_some_and(|used| used < place);
        let alone = ALONE.iter().find(|(alone, _)| *alone == name);
        if !below || alone.is_some_and(|(_, but)| !but.contains(&used)) {
            findings.push(manifest.finding(0, format!("`{name}` may not use `{used}`")));
        }
    }
}

fn text(table: Option<&dyn TableLike>, key: &str) -> Option<String> {
    table?.get(key)?.as_str().map(str::to_owned)
}

/// Whether a line speaks of the invariant of the crate called `name`, in bold or in code.
fn has_invariant(architecture: &File, name: &str) -> bool {
    let marked = [format!("`{name}`"), format!("**{name}**")];
    let mut lines = architecture.text.lines().filter(|line| line.to_lowercase().contains("invariant"));
    lines.any(|line| marked.iter().any(|marked| line.contains(marked)))
}
