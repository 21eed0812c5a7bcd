//! What README and the pages of docs/ tell people to type works as it is written, in order, on a fresh data folder.
//!
//! Each block of commands is run, or an HTML comment right before it says why it is not: `<!-- not run: … -->`.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::PASSWORD;

/// Pages with blocks that are run, in this order.
const RUN: [&str; 3] = ["README.md", "docs/start/people.md", "docs/reference/http.md"];

/// Folders of pages; what the laboratory writes into `docs/results` has no commands to follow.
const PAGES: [&str; 5] = ["docs", "docs/start", "docs/operate", "docs/reference", "docs/internals"];

/// Beginnings of lines that people type.
const COMMANDS: [&str; 6] = ["scrinium ", "curl ", "make ", "sudo ", "target/release/", "podman "];

/// What a shell has to be told before: whose binary it is, and the password that curl would ask for.
const PREPARE: &str = r#"
set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
curl() {
  local arguments=() argument
  for argument in "$@"; do
    [ "$argument" = admin ] && argument="admin:$SCRINIUM_ADMIN_PASSWORD"
    arguments+=("$argument")
  done
  command curl --fail-with-body --silent --show-error "${arguments[@]}"
}
"#;

struct Block {
    page: String,
    line: usize,
    language: String,
    text: String,
    is_run: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut before = "";
    while let Some((number, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inner: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
            let reason = before.strip_prefix("<!-- not run: ").and_then(|rest| rest.strip_suffix(" -->"));
            blocks.push(Block {
                page: page.to_owned(),
                line: number + 1,
                language: language.to_owned(),
                text: inner.join("\n") + "\n",
                is_run: reason.is_none_or(|reason| reason.trim().is_empty()),
            });
        }
        before = line.trim();
    }
    blocks
}

fn is_of_commands(block: &Block) -> bool {
    let begins = |line: &str| COMMANDS.iter().any(|command| line.starts_with(command));
    block.language == "sh" || (block.language.is_empty() && block.text.lines().any(begins))
}

#[test]
fn every_block_of_commands_is_run_or_says_why_not() {
    let mut pages = vec!["README.md".to_owned()];
    for folder in PAGES {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    let mut forgotten = Vec::new();
    for page in &pages {
        for block in blocks(page).into_iter().filter(|block| is_of_commands(block) && block.is_run) {
            if !RUN.contains(&page.as_str()) || block.language != "sh" {
                forgotten.push(format!("{}:{}", block.page, block.line));
            }
        }
    }
    assert!(
        forgotten.is_empty(),
        "neither run nor marked by <!-- not run: reason -->: {forgotten:?}; a page is run when it stands in RUN"
    );
}

#[test]
fn commands_of_the_documentation_work_as_written() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        return scrinium_fault::skip("there is no curl");
    }
    let folder = tempfile::tempdir().unwrap();
    let (home, bin) = (folder.path().join("home"), folder.path().join("bin"));
    for place in ["home/Maildir/cur", "home/Maildir/new", "home/Maildir/tmp", "bin"] {
        fs::create_dir_all(folder.path().join(place)).unwrap();
    }
    let message =
        "From: Ann <ann@example.org>\nSubject: Hello\nDate: Mon, 02 Mar 2020 10:00:00 +0000\n\nHello.\n";
    fs::write(home.join("Maildir/cur/1.host:2,S"), message).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_scrinium"), bin.join("scrinium")).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();

    let mut script = PREPARE.to_owned();
    for block in
        RUN.iter().flat_map(|page| blocks(page)).filter(|block| block.language == "sh" && block.is_run)
    {
        script.push_str(&format!("echo '=== {}:{}' >&2\n", block.page, block.line));
        script.push_str(&block.text.replace(":5984", &format!(":{port}")));
    }
    fs::write(folder.path().join("steps.sh"), &script).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("timeout")
        .args(["180", "bash", "steps.sh"])
        .current_dir(folder.path())
        .env("PATH", path)
        .env("HOME", &home)
        .env("SCRINIUM_ADMIN_PASSWORD", PASSWORD)
        .env("SCRINIUM_HTTP__LISTEN", format!("127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (said, talk) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{said}\n{talk}", output.status);
    for told in [
        "1 messages read for ada: 1 new",
        "Ada Lovelace",
        "bob has another password",
        "Everybody has 2 members",
    ] {
        assert!(said.contains(told), "{told}:\n{said}\n{talk}");
    }
}
