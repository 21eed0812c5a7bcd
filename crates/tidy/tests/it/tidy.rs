//! The repository keeps its own rules, and breaking one is seen.

use std::path::Path;

#[test]
fn the_repository_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let findings = scrinium_tidy::check(&root).unwrap();
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} rules are broken:\n{}", lines.len(), lines.join("\n"));
}

/// What is found in a repository of these files.
fn found(files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let findings = scrinium_tidy::check(folder.path()).unwrap();
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

#[test]
fn broken_rules_for_text_are_seen() {
    let body = |lines: usize| format!("{{\n{}    }}\n", "        // Why.\n\n        step();\n".repeat(lines));
    let reason = "    #[allow(clippy::too_many_lines, reason = \"a table\")]\n";
    let long = format!(
        "impl X {{\n    fn short() {}    pub(crate) async fn long<T>(x: T) {}{reason}    fn table() {}}}\n",
        body(70),
        body(71),
        body(80)
    );
    let left_over = concat!("fn main() {} // TO", "DO: more\n\tdb", "g!(1);  \n");
    assert_eq!(
        found(&[
            ("crates/log/src/long.rs", &long),
            ("crates/log/src/leftOver.rs", left_over),
            ("scripts/run-it", "#!/usr/bin/env bash\necho"),
            ("Makefile", "all:\n\techo\n"),
            ("README.md", "[a](docs/a.md) [b](https://example.com) [c](#c) [d](Makefile#d)\n"),
            ("docs/merged.md", "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n"),
            ("target/ignored.rs", left_over),
        ]),
        concat!(
            "README.md:1: the link to docs/a.md leads nowhere\n",
            "crates/log/src/leftOver.rs: leftOver is not snake_case\n",
            "crates/log/src/leftOver.rs:1: TO",
            "DO was left over\n",
            "crates/log/src/leftOver.rs:2: a tab; indent by spaces\n",
            "crates/log/src/leftOver.rs:2: db",
            "g!( was left over\n",
            "crates/log/src/leftOver.rs:2: spaces at the end of the line\n",
            "crates/log/src/long.rs:214: long has 71 lines; a function has at most 70\n",
            "docs/merged.md:1: a merge was left unfinished\n",
            "docs/merged.md:5: a merge was left unfinished\n",
            "scripts/run-it:1: a script begins with set -euo pipefail\n",
            "scripts/run-it:2: the last line does not end\n",
        )
    );
}

fn manifest(name: &str, dependencies: &str) -> String {
    format!(
        "[package]\nname = \"scrinium-{name}\"\ndescription = \"x\"\n[dependencies]\n{dependencies}\n[lints]\nworkspace = true\n"
    )
}

/// A crate's paragraph of the map.
fn paragraph(name: &str, more: &str) -> String {
    format!(
        "**{name}**: what it is. *Entry:* [`x`](crates/{name}/Cargo.toml).\n*Invariant:* holds. {more}\n\n"
    )
}

#[test]
fn broken_rules_for_crates_are_seen() {
    let log = manifest("log", "scrinium-store.workspace = true");
    let store = manifest("store", "scrinium-log.workspace = true");
    let lab = manifest("lab", "scrinium-log.workspace = true\nscrinium-store.workspace = true");
    let server = manifest("server", "scrinium-lab.workspace = true\nscrinium-log.workspace = true");
    let odd = "[package]\nname = \"odd\"\n";
    let map = [
        paragraph("log", "*Absent:* `words`."),
        paragraph("store", "*Absent:* documents."),
        paragraph("lab", "*Uses only:* `store`. *Absent:* `server`."),
        paragraph("server", "*Absent:* `lab`."),
        paragraph("gone", ""),
        paragraph("log", "*Absent:* `words`."),
    ];
    assert_eq!(
        found(&[
            ("ARCHITECTURE.md", &map.concat()),
            ("crates/log/Cargo.toml", &log),
            ("crates/store/Cargo.toml", &store),
            ("crates/lab/Cargo.toml", &lab),
            ("crates/server/Cargo.toml", &server),
            ("crates/odd/Cargo.toml", odd),
            ("crates/odd/src/lib.rs", "// unsafe { in words }\nunsafe { x() }\n"),
            ("crates/store/src/lib.rs", "unsafe { x() }\n"),
        ]),
        "ARCHITECTURE.md:13: the link to crates/gone/Cargo.toml leads nowhere\n\
         ARCHITECTURE.md:13: the paragraph of `gone` lacks *Absent:*\n\
         ARCHITECTURE.md:13: there is no crate `gone`\n\
         ARCHITECTURE.md:16: `log` has two paragraphs\n\
         crates/lab/Cargo.toml: `lab` may not use `log`\n\
         crates/log/Cargo.toml: `log` may not use `store`\n\
         crates/odd/Cargo.toml: `odd` has no paragraph in ARCHITECTURE.md\n\
         crates/odd/Cargo.toml: it must take the workspace's lints: [lints] workspace = true\n\
         crates/odd/Cargo.toml: its package has no description\n\
         crates/odd/Cargo.toml: its package must be called scrinium-odd\n\
         crates/odd/src/lib.rs:2: only `store` may be unsafe\n\
         crates/server/Cargo.toml: `server` may not use `lab`\n"
    );
}

#[test]
fn a_map_that_is_too_long_or_says_too_little_is_seen() {
    let map = format!("**log**: the log. *Entry:* `Log`.\n\n{}", "A sentence more of many. ".repeat(900));
    assert_eq!(
        found(&[("ARCHITECTURE.md", &(map + "\n")), ("crates/log/Cargo.toml", &manifest("log", ""))]),
        "ARCHITECTURE.md: 22536 bytes; a map has at most 20480\n\
         ARCHITECTURE.md:1: the paragraph of `log` lacks *Absent:*\n\
         ARCHITECTURE.md:1: the paragraph of `log` lacks *Invariant:*\n\
         ARCHITECTURE.md:1: the paragraph of `log` lacks a link in *Entry:*\n"
    );
}

#[test]
fn places_that_are_not_there_are_seen() {
    let questions: String = (0..8)
        .map(|number| format!("| What is {number}? | log | [a](../../crates/log/src/a.rs) | `append` |\n"))
        .collect();
    let wrong = "| Where? | log | [b](../../crates/log/src/b.rs) | `append` |\n\
                 | Who? | gone | [a](../../crates/log/src/a.rs) | `appended`, `LIMIT` |\n";
    let map = format!("[where](docs/internals/where.md)\n\n{}", paragraph("log", "*Absent:* x."));
    let source = "// fn appended\nconst LIMIT: usize = 3;\npub(crate) fn append(x: u8) {}\n";
    let page =
        format!("# Where\n\n| question | crate | file | function |\n|---|---|---|---|\n{questions}{wrong}");
    let files = |page: &str| {
        found(&[
            ("ARCHITECTURE.md", &map),
            ("docs/internals/where.md", page),
            ("crates/log/Cargo.toml", &manifest("log", "")),
            ("crates/log/src/a.rs", source),
        ])
    };
    assert_eq!(
        files(&page),
        "docs/internals/where.md:13: none of its files has `append`\n\
         docs/internals/where.md:13: the link to ../../crates/log/src/b.rs leads nowhere\n\
         docs/internals/where.md:13: there is no file crates/log/src/b.rs\n\
         docs/internals/where.md:14: crates/log/src/a.rs is not in the crate `gone`\n\
         docs/internals/where.md:14: none of its files has `appended`\n\
         docs/internals/where.md:14: the map has no crate `gone`\n"
    );
    assert_eq!(files(&questions), "docs/internals/where.md: 8 questions; at least 10\n");
}

#[test]
fn a_crate_that_asks_the_system_for_the_time_is_seen() {
    let asks =
        "let a = SystemTime::now();\nlet b = time.duration_since(UNIX_EPOCH);\nlet c = Timestamp::now();\n";
    let may = "// SystemTime::now()\nlet a = Instant::now();\nlet b = Timestamp::UNIX_EPOCH;\nlet c = Clock::default();\n";
    let tested = format!("fn x() {{}}\n\n#[cfg(test)]\nmod tests {{\n{asks}}}\n");
    let made = "let clock = Clock::system();\n";
    let reason = "the time comes from the clock that came with the options";
    assert_eq!(
        found(&[
            ("crates/log/src/log.rs", asks),
            ("crates/log/src/may.rs", may),
            ("crates/log/src/tested.rs", &tested),
            ("crates/log/src/log/tests.rs", asks),
            ("crates/log/src/log/tests/more.rs", asks),
            ("crates/log/tests/log.rs", asks),
            ("crates/log/benches/log.rs", asks),
            ("crates/lab/src/lib.rs", asks),
            ("crates/clock/src/lib.rs", asks),
            ("crates/store/src/made.rs", made),
            ("crates/server/src/made.rs", made),
        ]),
        format!(
            "crates/log/src/log.rs:1: SystemTime::now: {reason}\n\
             crates/log/src/log.rs:2: UNIX_EPOCH: {reason}\n\
             crates/log/src/log.rs:3: Timestamp::now: {reason}\n\
             crates/store/src/made.rs:1: only `server` makes Clock::system(); take the clock that came with the options\n"
        )
    );
}

#[test]
fn json_that_is_pieced_together_is_seen() {
    let source = r#"fn f() {
    let text = format!("{{\"rev\":\"{revision}\"}}");
    out.push_str(",\"doc\":");
    out.literal(",\"doc\":").string(document);
    let words = format!("name {name:?}, \"quoted\"");
    out.entry_value(raw);
}
"#;
    let found = found(&[("crates/http/src/a.rs", source), ("crates/lab/src/a.rs", source)]);
    let lines: Vec<&str> =
        found.lines().filter(|line| line.contains("JSON") || line.contains("checked")).collect();
    assert_eq!(
        lines,
        [
            "crates/http/src/a.rs:2: JSON is put together by JsonWriter, which escapes",
            "crates/http/src/a.rs:3: JSON is put together by JsonWriter, which escapes",
            "crates/http/src/a.rs:6: .entry_value( takes what is not checked: only for crates/database/src/view/",
        ]
    );
}

/// Documents have none of the phrases; sources have those that were there, and no more.
#[test]
fn phrases_that_no_administrator_writes_are_seen() {
    let said = |line: &str| format!("{line} is not plain English; see docs/internals/words.md\n");
    let page = concat!(
        "An",
        "ew, who",
        "ever came: there is n",
        "one.\n",
        "It has c",
        "ome, and is n",
        "one. Renewed, it is tol",
        "erant.\n"
    );
    let quoted = |phrase: &str| format!("\"{phrase}\"");
    let expected = [
        format!("docs/a.md:1: {}", said(&quoted(concat!("an", "ew")))),
        format!("docs/a.md:1: {}", said(&quoted(concat!("who", "ever")))),
        format!("docs/a.md:2: {}", said(&quoted(concat!("has c", "ome")))),
        format!("docs/a.md:2: {}", said(&quoted(concat!("is n", "one")))),
    ];
    assert_eq!(
        found(&[("docs/a.md", page), ("docs/results/a.md", page), ("BENCHMARKS.md", page)]),
        expected.concat()
    );

    let line = concat!("// so m", "any\n");
    assert_eq!(found(&[("crates/log/src/a.rs", &line.repeat(40))]), "");
    assert_eq!(found(&[("crates/log/src/a.rs", &line.repeat(500))]).lines().count(), 500);
}
