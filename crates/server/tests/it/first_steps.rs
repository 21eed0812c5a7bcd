//! What README and the pages of docs/ tell people to type works as it is written: in order, on a fresh data folder, against one
//! server.
//!
//! Every block of commands is run, or an HTML comment right before it says why not: `<!-- not run: … -->`. Blocks of `sh` are for a
//! shell, those of `console` for the server's console. The order is that of README's links.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::PASSWORD;

/// Beginnings of lines that people type.
const COMMANDS: [&str; 9] =
    ["scrinium ", "curl ", "make ", "sudo ", "target/release/", "podman ", "$ ", "set config ", "load "];

/// Places of the pages' machines, which are folders of the test here. The second folders are empty before each block: what is
/// restored wants a new one.
const PLACES: [&str; 3] = ["/backups/mail", "/media/stick", "/mnt/attachments"];
const EMPTY_PLACES: [&str; 1] = ["/srv/new"];

/// What the pages have in the server's configuration file.
const CONFIGURATION: &str = r#"
backup.targets = ["/backups/mail"]
attachment.store = "file:///mnt/attachments"
"#;

/// What a shell has to be told before: the password that curl would ask for, and what commands load, and that a server in the
/// foreground is a second one, which is looked at and ended.
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
scrinium() {
  if [ "$1" != serve ]; then
    command scrinium "$@" || return
    [[ "$*" != "console load "* ]] || at_rest
  elif [ "$BASHPID" != $$ ]; then
    exec scrinium "$@"
  else
    second "$@"
  fi
}
# What a command loads comes to its end before the next one, as people wait for it: two at once may be refused.
at_rest() {
  for _ in $(seq 300); do
    if command scrinium console "show tasks" | grep -q "No task is running"; then return; fi
    sleep 0.1
  done
  echo "a task does not end" >&2
  return 1
}
second() (
  export SCRINIUM_HTTP__LISTEN=127.0.0.1:$SECOND_PORT
  command scrinium "$@" &
  trap 'kill $!; wait $!' EXIT
  for _ in $(seq 300); do
    if command scrinium healthcheck >/dev/null 2>&1; then echo "the second server is up"; exit 0; fi
    sleep 0.1
  done
  echo "the second server does not come up" >&2
  exit 1
)
"#;

const MESSAGE: &str =
    "From: Ann <ann@example.org>\nSubject: Hello\nDate: Mon, 02 Mar 2020 10:00:00 +0000\n\nHello.\n";

struct Block {
    page: String,
    line: usize,
    language: String,
    text: String,
    is_run: bool,
}

impl Block {
    fn is_of_commands(&self) -> bool {
        let begins = |line: &str| COMMANDS.iter().any(|command| line.starts_with(command));
        match self.language.as_str() {
            "sh" | "console" => true,
            "" => self.text.lines().any(begins),
            _ => false,
        }
    }

    /// What a shell runs.
    fn script(&self) -> String {
        if self.language == "sh" {
            return self.text.clone();
        }
        // What stands behind two blanks is a remark for the reader.
        let command = |line: &str| line.split("  ").next().unwrap_or_default().trim().to_owned();
        let quoted = |line: &str| format!("scrinium console '{}'\n", command(line));
        self.text.lines().filter(|line| !line.trim().is_empty()).map(quoted).collect()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README, the pages that it links in that order, and then all others.
fn pages() -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let linked = readme.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let mut all = BTreeSet::new();
    collect(Path::new("docs"), &mut all);
    let mut pages = vec!["README.md".to_owned()];
    for page in linked.map(str::to_owned).filter(|page| all.contains(page)).chain(all.iter().cloned()) {
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    pages
}

fn collect(folder: &Path, pages: &mut BTreeSet<String>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            pages.insert(path.to_str().unwrap().to_owned());
        }
    }
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

#[test]
fn every_block_of_commands_is_run_or_says_why_not() {
    let blocks: Vec<Block> = pages().iter().flat_map(|page| blocks(page)).collect();
    let commands = blocks.iter().filter(|block| block.is_of_commands() && block.is_run);
    let forgotten: Vec<String> = commands
        .filter(|block| block.language.is_empty())
        .map(|block| format!("{}:{}", block.page, block.line))
        .collect();
    assert!(
        forgotten.is_empty(),
        "neither `sh` nor `console`, and not marked by <!-- not run: reason -->: {forgotten:?}"
    );
}

/// What people have before they begin: mail of other programs, and a compressed archive.
fn fill_home(folder: &Path) {
    let home = folder.join("home");
    let folders = "home/.thunderbird/abcd.default/Mail/Local Folders";
    for place in ["home/Maildir/cur", "home/Maildir/new", "home/Maildir/tmp", "bin", folders] {
        fs::create_dir_all(folder.join(place)).unwrap();
    }
    fs::write(home.join("Maildir/cur/1.host:2,S"), MESSAGE).unwrap();
    for (number, name) in
        [&*format!("{folders}/Inbox"), "All mail Including Spam and Trash.mbox", "archive.mbox"]
            .iter()
            .enumerate()
    {
        let message = MESSAGE.replace("Hello", &format!("Hello again, {number}"));
        let mbox = format!("From ann@example.org Mon Mar  2 10:00:00 2020\n{message}\n");
        fs::write(folder.join(name), mbox).unwrap();
    }
    let packed = Command::new("gzip").arg(folder.join("archive.mbox")).status().unwrap();
    assert!(packed.success());
}

/// All blocks as one script, which says on its standard error where it is.
fn script(folder: &Path, port: u16) -> String {
    let in_folder = |text: &str| {
        let places = PLACES.iter().chain(&EMPTY_PLACES);
        places
            .fold(text.to_owned(), |text, place| text.replace(place, &format!("{}{place}", folder.display())))
    };
    for place in PLACES {
        fs::create_dir_all(folder.join(place.trim_start_matches('/'))).unwrap();
    }
    fs::write(folder.join("scrinium.toml"), in_folder(CONFIGURATION)).unwrap();
    let mut script = PREPARE.to_owned();
    let blocks = pages().into_iter().flat_map(|page| blocks(&page));
    for block in blocks.filter(|block| block.is_run && block.is_of_commands()) {
        script.push_str(&format!("echo '=== {}:{}' >&2\n", block.page, block.line));
        for place in EMPTY_PLACES {
            script.push_str(&in_folder(&format!("rm -rf '{place}'; mkdir -p '{place}'\n")));
        }
        script.push_str(&in_folder(&block.script()).replace(":5984", &format!(":{port}")));
    }
    script
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn commands_of_the_documentation_work_as_written() {
    for tool in ["curl", "gzip"] {
        if Command::new(tool).arg("--version").stdout(Stdio::null()).status().is_err() {
            return scrinium_fault::skip(format_args!("there is no {tool}"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (home, bin) = (folder.path().join("home"), folder.path().join("bin"));
    fill_home(folder.path());
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_scrinium"), bin.join("scrinium")).unwrap();
    let port = free_port();
    fs::write(folder.path().join("steps.sh"), script(folder.path(), port)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("timeout")
        .args(["180", "bash", "steps.sh"])
        .current_dir(folder.path())
        .env("PATH", path)
        .env("HOME", &home)
        .env("SCRINIUM_ADMIN_PASSWORD", PASSWORD)
        .env("SCRINIUM_HTTP__LISTEN", format!("127.0.0.1:{port}"))
        .env("SECOND_PORT", free_port().to_string())
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
        "the second server is up",
    ] {
        assert!(said.contains(told), "{told}:\n{said}\n{talk}");
    }
}
