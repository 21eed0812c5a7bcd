//! The page `docs/operate/advise.md`.

use std::fmt::Write;

use crate::rules::rules;

const INTRODUCTION: &str = "\
<!-- Generated from the rules: change crates/advise/src/rules or crates/advise/src/page.rs, then run
     UPDATE=1 cargo test -p scrinium-server --test it documentation -->

# Advice

`scrinium advise` looks at a running server for a minute and names what to change, the most effective first. It changes
nothing itself.

    scrinium advise                        the server of this configuration, for a minute
    scrinium advise --for 10m              for longer: an hour with usual work says more than a quiet minute
    scrinium advise --for 0                since the server's start, without waiting
    scrinium advise --url https://mail.example.com --credentials FILE
    scrinium advise --all                  also what was found to be fine, and what is no problem here
    scrinium advise --json                 everything, for programs

Each piece of advice has these parts:

| | |
|---|---|
| Seen | the figures that it rests on, under the names of `show statistics`, `show transactions` and the configuration |
| Means | what they say, in a sentence |
| Change | commands to be pasted, and whether the server is to be started again |
| Expect | how much is won, at least and at most. What is computed from the time that was looked at is a bound, and no promise |
| See | the experiment that shows it on your machine (`scrinium lab experiment`), a benchmark, or a page |
| Until | what takes it off the list |

Change one thing at a time, and ask again afterwards: what was the second bottleneck may be gone, or be the first now.

Exit code 0: nothing is to be changed; 1: something is, or the server could not be asked; 2: the command line or the
configuration is wrong.

## What it looks at

Twice, with the time of `--for` between: `show statistics`, `show transactions` and `show databases` (the fifty that did
most). Once: `show configuration`, `show volumes`, of databases that are written to whether they are logged, and of the
log database the warnings of the last day and the tasks of the last thirty days. All of it is asked on the console, so
it needs an administrator. Figures of log and pool are those of the first store; of [volumes](volumes.md) it looks at
their room and at their databases.

It knows nothing of what happens outside of the server: of its network, of clients, of backups that something else makes.

These statistics are there for it:

| statistic | |
|---|---|
| `Mem.PhysicalRAM`, `Mem.Available`, `Mem.Swapped.Process` | memory of the machine or the control group, what of it could still be had, what of the server is swapped out |
| `Platform.System.Processors`, `Platform.Process.CPU.Seconds`, `Platform.System.CPU.Seconds` | processors, and the time of them that the server, and all programs of the machine, have used |
| `Disk.Data.Free`, `.Size`, `Disk.Log.Free`, `.Size` | the file systems of databases and log |
| `Log.OwnDevice`, `View.RebuildDir.OwnDevice`, `View.RebuildDir.InMemory` | 1: on another file system than the databases; in memory |
| `Database.Files.Bytes` | the databases' files |
| `HTTP.Connections`, `HTTP.Handshakes` | connections that were accepted, and those of them that began with TLS |
| `View.Builds`, `.Milliseconds`, `.SpilledBytes` | views built from all documents; sorted files in `view.rebuild_dir` |
| `View.ReadAgain` | indexes that were read after they had been discarded |
| `View.Refreshes`, `.Milliseconds` | views with `@Now` or `@Today` evaluated again |
| `View.Scripts.Milliseconds`, `.Failures` | map functions in JavaScript, in all processes together |
| `Javascript.Processes`, `.Busy`, `.Started`, `.Lost` | processes that run JavaScript: now, with something to do, started, and ended otherwise than because nobody needed them |
| `View.Updates`, `.Changes`, `.Milliseconds` | how often readers waited until indexes had been brought up to date, how many changes these were behind, and how long the readers waited |

## The order

Advice has a weight, `weight` in JSON: the share of the time of requests that is about to be won, or of processor time or
room. What could be lost or refused has a fixed one: a disk that is almost full or damage comes before everything about
speed. If two rules want the same key changed, the one that comes first says how.

## The rules
";

/// The page.
#[must_use]
pub fn documentation() -> String {
    let mut page = String::from(INTRODUCTION);
    let mut subject = None;
    for rule in rules() {
        if subject != Some(rule.subject) {
            let _ = write!(page, "\n### {}\n\n", capital(&rule.subject.to_string()));
            page.push_str("| rule | speaks if | changes or looks at | rests on |\n|---|---|---|---|\n");
            subject = Some(rule.subject);
        }
        let keys: Vec<String> = rule.keys.iter().map(|key| format!("`{key}`")).collect();
        let support: Vec<String> = rule.support.iter().map(|support| linked(&support.to_string())).collect();
        let _ = writeln!(
            page,
            "| `{}`: {} | {} | {} | {} |",
            rule.name,
            rule.title,
            rule.speaks_if,
            keys.join(", "),
            support.join(", ")
        );
    }
    page
}

/// Pages are linked from where `docs/operate/advise.md` is; the rest are commands, of which the name is enough.
fn linked(support: &str) -> String {
    let named = |page: &str, folder: &str| {
        format!("[{}]({folder}{page})", page.rsplit('/').next().unwrap_or(page).trim_end_matches(".md"))
    };
    match (support.strip_prefix("docs/operate/"), support.strip_prefix("docs/")) {
        (Some(page), _) => named(page, ""),
        (None, Some(page)) => named(page, "../"),
        (None, None) => {
            let name = support.trim_start_matches("scrinium lab ").trim_end_matches(" --quick");
            format!("`{}`", name.replace("make bench NAME=", "benchmark "))
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
