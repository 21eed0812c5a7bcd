//! Standard output that takes nothing, standard output that nobody reads, and terminals without colours: for every
//! command that there is.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use clap::CommandFactory;
use scrinium_fault::skip;
use scrinium_server::cli::Arguments;

use crate::common::{PASSWORD, SMALL, Server};

/// How a command writes data in this test.
enum Data {
    /// With these words behind its name. `{n}` is another number each time.
    Words(&'static [&'static str]),
    /// The same, of a server at work.
    OfServer(&'static [&'static str]),
    /// Only its help is looked at here, for this reason.
    HelpAlone(&'static str),
}

use Data::{HelpAlone, OfServer, Words};

const COMMANDS: &[(&str, Data)] = &[
    ("advise", OfServer(&["--for", "0s", "--all"])),
    ("backup", Words(&["repository"])),
    ("backup freeze", HelpAlone("it writes what `console` writes, by the same function")),
    ("backup keygen", Words(&["key-{n}"])),
    ("backup list", Words(&["repository"])),
    ("backup prune", Words(&["repository", "--keep", "1"])),
    ("backup thaw", HelpAlone("as of `backup freeze`")),
    ("backup verify", Words(&["repository"])),
    ("completions", Words(&["bash"])),
    ("config check", Words(&[])),
    ("config default", Words(&[])),
    ("config dump", Words(&[])),
    ("config explain", Words(&["memory.budget"])),
    ("console", OfServer(&["show server"])),
    ("demo", HelpAlone("it takes minutes; it writes by the function that all commands write by")),
    ("domain", HelpAlone("tested where people are")),
    ("domain add", HelpAlone("tested where people are")),
    ("domain check", HelpAlone("it asks name servers; tested where mail is set up")),
    ("domain list", HelpAlone("tested where people are")),
    ("domain remove", HelpAlone("tested where people are")),
    ("domain set", HelpAlone("tested where people are")),
    ("domain show", HelpAlone("tested where people are")),
    ("export eml", HelpAlone("tested where mail is exported")),
    ("export maildir", HelpAlone("tested where mail is exported")),
    ("export mbox", HelpAlone("tested where mail is exported")),
    ("fixup", Words(&[])),
    ("formula check", Words(&["1"])),
    ("formula eval", Words(&["1"])),
    ("formula help", Words(&["@Left"])),
    ("formula list", Words(&[])),
    ("group", HelpAlone("tested where people are")),
    ("group add", HelpAlone("tested where people are")),
    ("group list", HelpAlone("tested where people are")),
    ("group remove", HelpAlone("tested where names are changed")),
    ("group rename", HelpAlone("tested where names are changed")),
    ("group set", HelpAlone("tested where people are")),
    ("healthcheck", OfServer(&[])),
    ("import ics", HelpAlone("tested where calendars are imported")),
    ("import imap", HelpAlone("tested where mail is brought by IMAP")),
    ("import mail", HelpAlone("tested where mail is imported")),
    ("import vcf", HelpAlone("tested where calendars are imported")),
    ("inspect", Words(&["data"])),
    (
        "lab capture",
        HelpAlone("it needs a log of operations; it writes by the function that `lab list` writes by"),
    ),
    ("lab check", Words(&["r5mail"])),
    ("lab compare", HelpAlone("it needs reports of two runs")),
    ("lab drive", HelpAlone("it serves a controller, and writes nothing")),
    ("lab experiment", Words(&["transaction-logging", "--dry-run"])),
    ("lab experiments", Words(&[])),
    ("lab list", Words(&[])),
    ("lab load", HelpAlone("it takes a run; it writes by the function that `lab list` writes by")),
    ("lab probe", HelpAlone("it takes a view to be probed")),
    ("lab show", Words(&["r5mail"])),
    ("log salvage", Words(&[])),
    ("log verify", Words(&[])),
    ("mail", HelpAlone("tested where mail is imported")),
    ("mail-in list", HelpAlone("tested where people are")),
    ("mail-in remove", HelpAlone("tested where people are")),
    ("mail-in set", HelpAlone("tested where people are")),
    ("mail move", HelpAlone("tested where mail is searched")),
    ("mail purge", HelpAlone("tested where mail is searched")),
    ("mail quarantine", HelpAlone("tested where mail is kept back")),
    ("mail quarantine delete", HelpAlone("it writes what `console` writes, by the same function")),
    ("mail quarantine list", OfServer(&[])),
    ("mail quarantine release", HelpAlone("as of `mail quarantine delete`")),
    ("mail reread", HelpAlone("tested where mail is imported")),
    ("mail search", OfServer(&["--subject", "x"])),
    ("mail trace", HelpAlone("it writes what `console` writes, by the same function")),
    ("mail undelete", HelpAlone("tested where mail is restored")),
    ("manual-pages", HelpAlone("it writes files")),
    ("person", HelpAlone("tested where people are")),
    ("person add", HelpAlone("tested where people are")),
    ("person app-password add", HelpAlone("tested where people are")),
    ("person app-password list", HelpAlone("tested where people are")),
    ("person app-password remove", HelpAlone("tested where people are")),
    ("person disable", HelpAlone("tested where people are")),
    ("person enable", HelpAlone("tested where people are")),
    ("person erase", HelpAlone("tested where names are changed")),
    ("person export", HelpAlone("tested where names are changed")),
    ("person import", HelpAlone("tested where people come from a source")),
    ("person link", HelpAlone("tested where people are")),
    ("person list", HelpAlone("tested where people are")),
    ("person password", HelpAlone("tested where people are")),
    ("person remove", HelpAlone("tested where names are changed")),
    ("person rename", HelpAlone("tested where names are changed")),
    ("person set", HelpAlone("tested where people are")),
    ("person totp remove", HelpAlone("tested where people are")),
    ("person totp require", HelpAlone("tested where people are")),
    ("person totp show", HelpAlone("tested where people are")),
    ("person unlink", HelpAlone("tested where people are")),
    ("plan", Words(&["--example"])),
    ("plan calibrate", HelpAlone("it takes minutes")),
    ("plan check", HelpAlone("it takes minutes")),
    ("restore", Words(&["repository", "--into", "restored-{n}"])),
    ("serve", HelpAlone("it writes nothing on standard output")),
    ("upgrade", Words(&["--check"])),
];

/// The names of all commands that do something themselves.
fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mounted = mounted();
    let program = Arguments::command();
    let own = program.get_subcommands().filter(|command| !["lab", "plan"].contains(&command.get_name()));
    for command in own.chain(&mounted) {
        add(&mut names, command, "");
    }
    names
}

/// Commands that read their own command lines.
#[cfg(feature = "lab")]
fn mounted() -> Vec<clap::Command> {
    use clap::Args;
    vec![
        scrinium_lab::LabArguments::augment_args(clap::Command::new("lab")),
        scrinium_planner::PlanArguments::augment_args(clap::Command::new("plan")),
    ]
}

#[cfg(not(feature = "lab"))]
fn mounted() -> Vec<clap::Command> {
    Vec::new()
}

fn add(names: &mut BTreeSet<String>, command: &clap::Command, before: &str) {
    let name = format!("{before}{}", command.get_name());
    if !command.is_subcommand_required_set() {
        names.insert(name.clone());
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        add(names, inner, &format!("{name} "));
    }
}

fn scrinium(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium"));
    command.current_dir(folder).stdin(Stdio::null()).env_clear();
    command.env("SCRINIUM_ADMIN_PASSWORD", PASSWORD).envs(SMALL);
    command.env("SCRINIUM_SERVER__DATA_DIR", folder.join("data"));
    command
}

/// On a full disk, and behind a pipe that nobody reads.
fn written_in_vain(mut command: impl FnMut() -> Command) -> (Output, Output) {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let full = command().stdout(full).stderr(Stdio::piped()).output().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = command().stdout(writer).stderr(Stdio::piped()).output().unwrap();
    (full, closed)
}

fn check(words: &[String], (full, closed): &(Output, Output)) -> Result<(), String> {
    let talk = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    if full.status.code() != Some(1) || !talk(full).contains("standard output") {
        return Err(format!("{words:?} on a full disk: {:?}, {}", full.status.code(), talk(full)));
    }
    let is_silent = !talk(closed).contains("error") && !talk(closed).contains("panicked");
    if closed.status.code() != Some(0) || !is_silent {
        return Err(format!("{words:?} that nobody reads: {:?}, {}", closed.status.code(), talk(closed)));
    }
    Ok(())
}

#[test]
fn a_command_whose_output_is_lost_says_so_and_one_that_nobody_reads_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    let names = names();
    let known: BTreeSet<String> = COMMANDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let strange: Vec<&String> = names.difference(&known).collect();
    assert!(strange.is_empty(), "say in COMMANDS how these write data: {strange:?}");
    let mut wrong = Vec::new();
    let mut number = 0;
    let mut attempt = |name: &str, behind: &[&str], url: Option<String>| {
        let mut shown = Vec::new();
        let both = written_in_vain(|| {
            number += 1;
            let words = name.split(' ').chain(behind.iter().copied());
            shown = words.map(|word| word.replace("{n}", &number.to_string())).collect();
            let mut command = scrinium(folder.path());
            command.args(&shown).envs(url.iter().map(|url| ("SCRINIUM_URL", url)));
            command
        });
        wrong.extend(check(&shown, &both).err());
    };
    for (name, data) in COMMANDS.iter().filter(|(name, _)| names.contains(*name)) {
        attempt(name, &["--help"], None);
        if let OfServer(words) = data {
            attempt(name, words, Some(format!("http://{}", server.address())));
        }
    }
    server.terminate(std::time::Duration::from_secs(60));
    for (name, data) in COMMANDS.iter().filter(|(name, _)| names.contains(*name)) {
        match data {
            Words(words) => attempt(name, words, None),
            OfServer(_) => {}
            HelpAlone(reason) => assert!(!reason.is_empty()),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a command writes at a terminal, which util-linux's `script` makes; none where there is no such program.
fn at_terminal(folder: &Path, words: &str, environment: &[(&str, &str)]) -> Option<String> {
    let line = format!("{} {words}", env!("CARGO_BIN_EXE_scrinium"));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(folder).stdin(Stdio::null());
    command.env_remove("TERM").env_remove("NO_COLOR").env("SCRINIUM_CONFIG", "/dev/null");
    command.envs(environment.iter().copied());
    let output = command.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn terminals_without_colours_are_sent_characters_alone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.display();
    let commands = [
        format!("import mail /none --person nobody --data-dir {data}"),
        "formula eval '1 + '".to_owned(),
        "lab check no-such-script".to_owned(),
        "config explain no.such.key".to_owned(),
        "serv".to_owned(),
        "--help".to_owned(),
        "lab --help".to_owned(),
        format!("serve --data-dir {data} --config /none"),
    ];
    let escape = '\u{1b}';
    let Some(coloured) = at_terminal(folder.path(), &commands[0], &[("TERM", "xterm-256color")]) else {
        skip("there is no program `script` (util-linux), which makes a terminal");
        return;
    };
    assert!(coloured.contains(escape), "an error strikes the eye: {coloured}");
    for command in &commands {
        for plain in [&[("TERM", "dumb")][..], &[("TERM", "xterm-256color"), ("NO_COLOR", "1")]] {
            let said = at_terminal(folder.path(), command, plain).unwrap();
            assert!(!said.is_empty() && !said.contains(escape), "{command}, {plain:?}: {said:?}");
        }
    }
    let plain = format!("--no-color {}", commands[0]);
    let said = at_terminal(folder.path(), &plain, &[("TERM", "xterm-256color")]).unwrap();
    assert!(!said.contains(escape), "{said:?}");
}

/// A router that had just begun told of a round that panicked, when the port could not be had.
#[test]
fn a_start_that_fails_tells_its_reason_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    let causes = [
        [("SCRINIUM_HTTP__LISTEN", port.as_str()), ("SCRINIUM_HTTP__TLS", "false")],
        [
            ("SCRINIUM_HTTPS__LISTEN", "127.0.0.1:0"),
            ("SCRINIUM_HTTP__TLS_CERTIFICATE", "/none/certificate.pem"),
        ],
    ];
    for cause in causes {
        for _ in 0..5 {
            let output = scrinium(folder.path()).arg("serve").envs(cause).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{said}");
            let errors = said.lines().filter(|line| line.contains("ERROR") || line.starts_with("error:"));
            assert_eq!(errors.count(), 1, "{said}");
            assert!(!said.contains("panicked") && !said.contains("the router has stopped"), "{said}");
        }
    }
}
